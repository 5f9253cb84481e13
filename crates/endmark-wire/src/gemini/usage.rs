//! Tokens in Gemini's `usageMetadata`. The counts of the candidates exclude thoughts, and the count of the
//! prompt excludes tokens that tools added to it.

use std::fmt::Write as _;

use crate::edit::Edits;
use crate::json::{Fields, Kind, Value};
use crate::reply::{Details, Usage};

/// The counts that have their own field in [`Usage`].
const MODELLED_COUNTS: [&str; 5] = [
    "promptTokenCount",
    "candidatesTokenCount",
    "totalTokenCount",
    "cachedContentTokenCount",
    "thoughtsTokenCount",
];

/// The count of tokens that tools added to the prompt.
const TOOL_PROMPT_COUNT: &str = "toolUsePromptTokenCount";

/// Returns the counts of a response, or `None` if it has no counts.
pub(crate) fn read(root: Value<'_>) -> Option<Usage> {
    counts(root.field("usageMetadata")?)
}

/// Returns the counts of this `usageMetadata`, or `None` if it has no counts.
pub(super) fn counts(metadata: Value<'_>) -> Option<Usage> {
    let fields = Fields::new(metadata);
    let count = |name| fields.get(name).and_then(Value::as_u64);
    let (prompt, candidates) = (count("promptTokenCount"), count("candidatesTokenCount"));
    if prompt.is_none() && candidates.is_none() {
        // With only a total, prompt and reply are estimated later.
        return count("totalTokenCount").map(|total| Usage { total, ..Usage::default() });
    }
    let reasoning = count("thoughtsTokenCount");
    let prompt = prompt.unwrap_or(0).saturating_add(count(TOOL_PROMPT_COUNT).unwrap_or(0));
    let completion = candidates.unwrap_or(0).saturating_add(reasoning.unwrap_or(0));
    Some(Usage {
        prompt,
        completion,
        total: count("totalTokenCount")
            .filter(|total| *total > 0)
            .unwrap_or_else(|| prompt.saturating_add(completion)),
        written: None,
        cached: count("cachedContentTokenCount"),
        reasoning,
        details: Details::read(&fields, &MODELLED_COUNTS),
    })
}

/// Returns the service tier of a reply. `ON_DEMAND` is the standard tier. Other tiers add a suffix to it.
pub(super) fn tier(root: Value<'_>) -> Option<String> {
    let traffic = root.field("usageMetadata")?.non_empty_text("trafficType")?;
    let tier = traffic.strip_prefix("ON_DEMAND").unwrap_or(&traffic);
    Some(tier.trim_start_matches('_').to_ascii_lowercase())
}

/// Writes the counts into the document's `usageMetadata`, and keeps its other fields.
pub(super) fn write(edits: &mut Edits<'_>, counts: &Usage) {
    let root = edits.original();
    let Some(own) = root.field("usageMetadata").and_then(|own| own.as_kind(Kind::Object)) else {
        edits.set_field(root, "usageMetadata", &json(counts));
        return;
    };
    counts.details.write(edits, own);
    let by_tools = counts
        .details
        .count(TOOL_PROMPT_COUNT)
        .or_else(|| own.field(TOOL_PROMPT_COUNT).and_then(Value::as_u64));
    let by_tools = by_tools.unwrap_or(0);
    let candidates = counts.completion.saturating_sub(counts.reasoning.unwrap_or(0));
    edits.set_field(own, "promptTokenCount", &counts.prompt.saturating_sub(by_tools).to_string());
    edits.set_field(own, "candidatesTokenCount", &candidates.to_string());
    edits.set_field(own, "totalTokenCount", &counts.total.to_string());
    if let Some(cached) = counts.cached {
        edits.set_field(own, "cachedContentTokenCount", &cached.to_string());
    }
    if let Some(reasoning) = counts.reasoning {
        edits.set_field(own, "thoughtsTokenCount", &reasoning.to_string());
    }
}

/// Returns the counts as a `usageMetadata` object.
pub(super) fn json(counts: &Usage) -> String {
    let candidates = counts.completion.saturating_sub(counts.reasoning.unwrap_or(0));
    let mut json = format!(
        "{{\"promptTokenCount\":{},\"candidatesTokenCount\":{candidates},\"totalTokenCount\":{}",
        counts.prompt.saturating_sub(counts.details.count(TOOL_PROMPT_COUNT).unwrap_or(0)),
        counts.total
    );
    // Writing to a string cannot fail.
    if let Some(cached) = counts.cached {
        let _ = write!(json, ",\"cachedContentTokenCount\":{cached}");
    }
    if let Some(reasoning) = counts.reasoning {
        let _ = write!(json, ",\"thoughtsTokenCount\":{reasoning}");
    }
    json.push('}');
    counts.details.add_to_json(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thoughts_count_as_output() {
        let message = r#"{"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":23,"totalTokenCount":334,"thoughtsTokenCount":302}}"#;
        let counts = read(Value::parse_str(message).unwrap()).unwrap();
        let expected = Usage {
            prompt: 9,
            completion: 325,
            total: 334,
            written: None,
            cached: None,
            reasoning: Some(302),
            ..Usage::default()
        };
        assert_eq!(counts, expected);
        let again = format!("{{\"usageMetadata\":{}}}", json(&counts));
        assert_eq!(read(Value::parse_str(&again).unwrap()), Some(counts.clone()));
        for nothing in [r#"{"usageMetadata":{"trafficType":"ON_DEMAND"}}"#, "{}", r#"{"usageMetadata":[]}"#] {
            assert_eq!(read(Value::parse_str(nothing).unwrap()), None, "{nothing}");
        }
    }

    #[test]
    fn written_counts_round_trip() {
        let message = r#"{"usageMetadata":{"promptTokenCount":9,"toolUsePromptTokenCount":4,"totalTokenCount":13,"trafficType":"X"}}"#;
        let mut edits = Edits::for_document(Value::parse_str(message).unwrap());
        let counts = Usage {
            prompt: 40,
            completion: 8,
            total: 48,
            written: None,
            cached: Some(5),
            reasoning: Some(3),
            ..Usage::default()
        };
        write(&mut edits, &counts);
        let written = String::from_utf8(edits.finish()).unwrap();
        let read = read(Value::parse_str(&written).unwrap()).unwrap();
        assert_eq!(read.details.count(TOOL_PROMPT_COUNT), Some(4));
        assert_eq!(Usage { details: Details::default(), ..read }, counts);
        assert!(written.contains("\"trafficType\":\"X\""));
    }
}
