//! Tokens in Chat Completions: the `usage` object.

use crate::edit::Edits;
use crate::json::{Fields, Kind, Value};
use crate::reply::{Details, Usage};

/// The counts that have a field of their own in [`Usage`].
const KNOWN: [&str; 5] = [
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "prompt_tokens_details.cached_tokens",
    "completion_tokens_details.reasoning_tokens",
];

/// Reads a `usage` object; none if it counts nothing.
pub(crate) fn read_usage(value: Value<'_>) -> Option<Usage> {
    let fields = Fields::of(value);
    let count = |name| fields.get(name).and_then(Value::as_u64);
    let detail = |of, name| fields.get(of)?.field(name)?.as_u64();
    let (prompt, completion) = (count("prompt_tokens"), count("completion_tokens"));
    if prompt.is_none() && completion.is_none() {
        return None;
    }
    let (prompt, completion) = (prompt.unwrap_or(0), completion.unwrap_or(0));
    Some(Usage {
        prompt,
        completion,
        total: count("total_tokens").unwrap_or_else(|| prompt.saturating_add(completion)),
        written: None,
        cached: detail("prompt_tokens_details", "cached_tokens").or_else(|| count("prompt_cache_hit_tokens")),
        reasoning: detail("completion_tokens_details", "reasoning_tokens"),
        details: Details::read(&fields, &KNOWN),
    })
}

/// The counts as a `usage` object.
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
    usage.details.added_to(json)
}

/// Writes the counts over those of the document's `usage`, whose other details stay.
pub(super) fn write_usage(counts: &Usage, edits: &mut Edits<'_>) {
    let root = edits.original();
    let Some(usage) = root.field("usage").filter(|usage| usage.kind() == Kind::Object) else {
        edits.set_field(root, "usage", &usage_json(counts));
        return;
    };
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
    fn counts_under_every_name() {
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
