//! Tokens in Chat Completions: the `usage` object.

use super::choice::choice_index;
use crate::edit::Edits;
use crate::json::{Fields, Kind, Value};
use crate::reply::{Details, StatedCounts, Usage};

/// The counts that have their own field in [`Usage`].
const MODELLED_COUNTS: [&str; 5] = [
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "prompt_tokens_details.cached_tokens",
    "completion_tokens_details.reasoning_tokens",
];

/// Returns the counts of a response or a chunk, or `None` if it has no counts. Groq also reports them in
/// `x_groq`.
pub(super) fn usage_among(root: &Fields<'_>) -> Option<Usage> {
    let own = root.get("usage").and_then(read_usage);
    own.or_else(|| root.get("x_groq")?.field("usage").and_then(read_usage))
}

/// Returns the counts of each choice that has its own. For example, Moonshot sends them in the last chunk of
/// each choice.
pub(super) fn usage_by_choice(choices: Value<'_>) -> impl Iterator<Item = (u32, Usage)> {
    let choices = (0..).zip(choices.items());
    choices.filter_map(|(position, choice)| {
        let choice = Fields::new(choice);
        Some((choice_index(&choice, position), choice_usage(&choice)?))
    })
}

/// Returns the counts in this choice, or `None` if it has none of its own.
pub(super) fn choice_usage(choice: &Fields<'_>) -> Option<Usage> {
    choice.get("usage").and_then(read_usage)
}

/// Returns the counts of a reply as the sum over its choices, which share one prompt.
pub(super) fn sum_choices<'a>(usages: impl Iterator<Item = &'a Usage>) -> Option<Usage> {
    usages.cloned().reduce(|sum, next| {
        let (prompt, cached, written) = (sum.prompt.max(next.prompt), sum.cached, sum.written);
        let sum = sum + next;
        Usage { prompt, cached, written, total: prompt.saturating_add(sum.completion), ..sum }
    })
}

/// Reads a `usage` object. Returns `None` if it has no counts.
pub(crate) fn read_usage(value: Value<'_>) -> Option<Usage> {
    let fields = Fields::new(value);
    let count = |name| fields.get(name).and_then(Value::as_u64);
    let detail = |of, name| fields.get(of)?.field(name)?.as_u64();
    let (prompt, completion) = (count("prompt_tokens"), count("completion_tokens"));
    let total = count("total_tokens");
    if prompt.is_none() && completion.is_none() {
        // With only a total, prompt and reply are estimated later.
        return total.map(|total| Usage { total, ..Usage::default() });
    }
    let cached = [
        detail("prompt_tokens_details", "cached_tokens"),
        count("prompt_cache_hit_tokens"),
        count("cached_tokens"),
        count("cache_read_input_tokens"),
    ];
    let cached = cached.into_iter().flatten().max();
    let written = count("cache_creation_input_tokens");
    let reasoning =
        detail("completion_tokens_details", "reasoning_tokens").or_else(|| count("reasoning_tokens"));
    let stated = StatedCounts {
        prompt: prompt.unwrap_or(0),
        completion: completion.unwrap_or(0),
        total,
        in_cache: cached.unwrap_or(0).saturating_add(written.unwrap_or(0)),
        reasoning,
    };
    let (prompt, completion, total) = stated.with_parts_within();
    Some(Usage {
        prompt,
        completion,
        total,
        written,
        cached,
        reasoning,
        details: Details::read(&fields, &MODELLED_COUNTS),
    })
}

/// Returns the counts as a `usage` object.
pub(super) fn usage_json(usage: &Usage) -> String {
    use std::fmt::Write as _;
    let mut json = format!(
        "{{\"prompt_tokens\":{},\"completion_tokens\":{},\"total_tokens\":{}",
        usage.prompt, usage.completion, usage.total
    );
    // Writing to a string cannot fail.
    if let Some(cached) = usage.cached {
        let _ = write!(json, ",\"prompt_tokens_details\":{{\"cached_tokens\":{cached}}}");
    }
    if let Some(reasoning) = usage.reasoning {
        let _ = write!(json, ",\"completion_tokens_details\":{{\"reasoning_tokens\":{reasoning}}}");
    }
    json.push('}');
    usage.details.add_to_json(json)
}

/// Writes the counts into the document's `usage`, and into the usage of the choice if there is only one.
/// Several choices lose their own counts, because it is unknown which choice the further calls belong to.
pub(super) fn write_usage(counts: &Usage, edits: &mut Edits<'_>) {
    let root = edits.original();
    match root.field("usage").and_then(|usage| usage.as_kind(Kind::Object)) {
        Some(usage) => update_usage(usage, counts, edits),
        None => edits.set_field(root, "usage", &usage_json(counts)),
    }
    let choices: Vec<Value<'_>> = root.field("choices").into_iter().flat_map(Value::items).collect();
    for choice in &choices {
        match choice.field("usage").and_then(|usage| usage.as_kind(Kind::Object)) {
            Some(usage) if choices.len() == 1 => update_usage(usage, counts, edits),
            Some(_) => edits.remove_field(*choice, "usage"),
            None => {}
        }
    }
}

fn update_usage<'a>(usage: Value<'a>, counts: &Usage, edits: &mut Edits<'a>) {
    counts.details.write(edits, usage);
    edits.set_field(usage, "prompt_tokens", &counts.prompt.to_string());
    edits.set_field(usage, "completion_tokens", &counts.completion.to_string());
    edits.set_field(usage, "total_tokens", &counts.total.to_string());
    let mut detail = |details: &str, name: &str, count: Option<u64>| {
        let Some(count) = count else { return };
        match usage.field(details).filter(|details| details.kind() == Kind::Object) {
            Some(details) => edits.set_field(details, name, &count.to_string()),
            None => edits.set_field(usage, details, &format!("{{\"{name}\":{count}}}")),
        }
    };
    detail("prompt_tokens_details", "cached_tokens", counts.cached);
    detail("completion_tokens_details", "reasoning_tokens", counts.reasoning);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Option<Usage> {
        read_usage(Value::parse_str(json).unwrap())
    }

    #[test]
    fn counts_are_read_under_every_name() {
        let counts = Usage { prompt: 10, completion: 3, total: 13, cached: Some(8), ..Usage::default() };
        let other = read(r#"{"prompt_tokens":10,"completion_tokens":3,"prompt_cache_hit_tokens":8}"#);
        assert_eq!(other.map(|other| Usage { details: Details::default(), ..other }), Some(counts.clone()));
        assert_eq!(read(&usage_json(&counts)), Some(counts.clone()));
        assert_eq!(read(r#"{"prompt_tokens":1}"#), Some(Usage { prompt: 1, total: 1, ..Usage::default() }));
        for nothing in ["null", "{}", "[]", r#"{"prompt_tokens":"many"}"#] {
            assert_eq!(read(nothing), None, "{nothing}");
        }
    }
}
