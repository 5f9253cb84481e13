//! Tokens in Responses: the `usage` object.

use std::fmt::Write as _;

use crate::edit::Edits;
use crate::json::{Fields, Kind, Value};
use crate::reply::{Details, StatedCounts, Usage};

/// The counts that have their own field in [`Usage`].
const MODELLED_COUNTS: [&str; 5] = [
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "input_tokens_details.cached_tokens",
    "output_tokens_details.reasoning_tokens",
];

/// Returns the counts of a response, or `None` if it has no counts.
pub(crate) fn read(response: Value<'_>) -> Option<Usage> {
    let usage = response.field("usage")?;
    let count = |path| usage.at(path).and_then(Value::as_u64);
    let (prompt, completion) = (count("input_tokens"), count("output_tokens"));
    if prompt.is_none() && completion.is_none() {
        // With only a total, prompt and reply are estimated later.
        return count("total_tokens").map(|total| Usage { total, ..Usage::default() });
    }
    let cached = count("input_tokens_details.cached_tokens");
    let reasoning = count("output_tokens_details.reasoning_tokens");
    let stated = StatedCounts {
        prompt: prompt.unwrap_or(0),
        completion: completion.unwrap_or(0),
        total: count("total_tokens"),
        in_cache: cached.unwrap_or(0),
        reasoning,
    };
    let (prompt, completion, total) = stated.with_parts_within();
    Some(Usage {
        prompt,
        completion,
        total,
        written: None,
        cached,
        reasoning,
        details: Details::read(&Fields::new(usage), &MODELLED_COUNTS),
    })
}

/// Writes the counts into the usage of this response, and keeps its other fields.
pub(super) fn write<'a>(edits: &mut Edits<'a>, response: Value<'a>, counts: &Usage) {
    let Some(own) = response.field("usage").and_then(|own| own.as_kind(Kind::Object)) else {
        edits.set_field(response, "usage", &json(counts));
        return;
    };
    counts.details.write(edits, own);
    edits.set_field(own, "input_tokens", &counts.prompt.to_string());
    edits.set_field(own, "output_tokens", &counts.completion.to_string());
    edits.set_field(own, "total_tokens", &counts.total.to_string());
    let mut detail = |details: &str, name: &str, count: Option<u64>| {
        let Some(count) = count else { return };
        match own.field(details).and_then(|details| details.as_kind(Kind::Object)) {
            Some(details) => edits.set_field(details, name, &count.to_string()),
            None => edits.set_field(own, details, &format!("{{\"{name}\":{count}}}")),
        }
    };
    detail("input_tokens_details", "cached_tokens", counts.cached);
    detail("output_tokens_details", "reasoning_tokens", counts.reasoning);
}

/// Returns the counts as a `usage` object.
pub(super) fn json(counts: &Usage) -> String {
    let mut json = format!(
        "{{\"input_tokens\":{},\"output_tokens\":{},\"total_tokens\":{}",
        counts.prompt, counts.completion, counts.total
    );
    // Writing to a string cannot fail.
    if let Some(cached) = counts.cached {
        let _ = write!(json, ",\"input_tokens_details\":{{\"cached_tokens\":{cached}}}");
    }
    if let Some(reasoning) = counts.reasoning {
        let _ = write!(json, ",\"output_tokens_details\":{{\"reasoning_tokens\":{reasoning}}}");
    }
    json.push('}');
    counts.details.add_to_json(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_counts_round_trip() {
        let counts = Usage {
            prompt: 40,
            completion: 8,
            total: 48,
            written: None,
            cached: Some(5),
            reasoning: Some(3),
            ..Usage::default()
        };
        let made = format!("{{\"usage\":{}}}", json(&counts));
        assert_eq!(read(Value::parse_str(&made).unwrap()), Some(counts.clone()));
        for own in [
            "{}",
            r#"{"usage":null}"#,
            r#"{"usage":{"input_tokens":1,"x":2,"input_tokens_details":{"cached_tokens":0}}}"#,
        ] {
            let root = Value::parse_str(own).unwrap();
            let mut edits = Edits::for_document(root);
            write(&mut edits, root, &counts);
            let written = String::from_utf8(edits.finish()).unwrap();
            assert_eq!(read(Value::parse_str(&written).unwrap()), Some(counts.clone()), "{own}");
        }
        assert_eq!(read(Value::parse_str(r#"{"usage":{}}"#).unwrap()), None);
    }
}
