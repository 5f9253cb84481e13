//! Tokens in Anthropic's `usage`. `input_tokens` does not include tokens that were read from a cache or
//! written to one.

use endmark_context::{ADVISED_TIER, is_standard_tier};

use crate::edit::Edits;
use crate::json::{Fields, Kind, Value};
use crate::reply::{Details, Usage};

/// The counts of a `usage` object. The beginning of a stream has the counts of the prompt, and its end has
/// those of the reply. Some servers send all of them at the end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct UsageCounts {
    input: Option<u64>,
    cache_written: Option<u64>,
    cache_read: Option<u64>,
    output: Option<u64>,
    details: Details,
}

/// The counts that have their own field in [`Usage`].
const MODELLED_COUNTS: [&str; 4] =
    ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"];

/// Values that allow inference in any region, at the standard price.
const GLOBAL_REGIONS: [&str; 3] = ["", "global", "not_available"];

/// Returns the service tier of a message. Fast mode, inference in a single country and advice from another
/// model each have their own prices.
pub(super) fn tier(usage: Value<'_>) -> Option<String> {
    let speed = usage.non_empty_text("speed").filter(|speed| speed == "fast");
    let tier = speed.or_else(|| usage.non_empty_text("service_tier"));
    let geo = usage.non_empty_text("inference_geo").filter(|geo| !GLOBAL_REGIONS.contains(&geo.as_str()));
    let mut steps = usage.field("iterations").into_iter().flat_map(Value::items);
    let advised = steps.any(|step| step.has_text("type", "advisor_message")).then(|| ADVISED_TIER.to_owned());
    let named = tier.iter().filter(|tier| !is_standard_tier(tier)).chain(&geo).chain(&advised);
    let words: Vec<&str> = named.map(String::as_str).collect();
    if words.is_empty() { tier } else { Some(words.join("+")) }
}

impl UsageCounts {
    /// Reads a `usage` object.
    ///
    /// The counts at the top level lack those of compactions, which are billed; `iterations` has all steps of
    /// the model. In the example at
    /// <https://platform.claude.com/docs/en/build-with-claude/compaction-threshold> the top level has 23,000
    /// input tokens. Its `iterations` have those and 180,000 of a compaction. A resumed reply has the sum of
    /// its calls at the top level. So use the larger of the two counts.
    pub(super) fn read(usage: Value<'_>) -> Self {
        let fields = Fields::new(usage);
        let iterations = fields.get("iterations");
        let count = |name| {
            let own = fields.get(name).and_then(Value::as_u64);
            let counts = iterations.into_iter().flat_map(Value::items);
            let counts = counts.filter_map(|iteration| iteration.field(name)?.as_u64());
            // `None` is less than any count.
            own.max(counts.reduce(u64::saturating_add))
        };
        Self {
            input: count("input_tokens"),
            cache_written: count("cache_creation_input_tokens"),
            cache_read: count("cache_read_input_tokens"),
            output: count("output_tokens"),
            details: Details::read(&fields, &MODELLED_COUNTS),
        }
    }

    /// Returns whether the output is counted.
    pub(super) fn has_output(&self) -> bool {
        self.output.is_some()
    }

    /// Returns these counts, replaced by those of a later object. Some proxies fill the end of a stream with zeros,
    /// which must not replace a counted prompt. The output count at the beginning is only a placeholder.
    pub(super) fn updated_by(self, later: &Self) -> Self {
        let counted = |later: Option<u64>, before| later.filter(|count| *count > 0).or(before).or(later);
        Self {
            input: counted(later.input, self.input),
            cache_written: counted(later.cache_written, self.cache_written),
            cache_read: counted(later.cache_read, self.cache_read),
            output: later.output.or(self.output),
            details: self.details.updated_by(&later.details),
        }
    }

    /// Returns the tokens of the whole reply. Returns `None` if nothing was counted.
    pub(super) fn usage(&self) -> Option<Usage> {
        if self.input.is_none() && self.output.is_none() {
            return None;
        }
        let parts = [self.input, self.cache_written, self.cache_read];
        let prompt = parts.into_iter().flatten().fold(0, u64::saturating_add);
        let completion = self.output.unwrap_or(0);
        let total = prompt.saturating_add(completion);
        Some(Usage {
            prompt,
            completion,
            total,
            written: self.cache_written,
            cached: self.cache_read,
            reasoning: None,
            details: self.details.clone(),
        })
    }
}

/// Writes the counts into this object's `usage`, and keeps its other fields.
pub(super) fn write<'a>(edits: &mut Edits<'a>, object: Value<'a>, counts: &Usage) {
    let own = object.field("usage").and_then(|usage| usage.as_kind(Kind::Object));
    let Some(own) = own else {
        edits.set_field(object, "usage", &json(counts));
        return;
    };
    counts.details.write(edits, own);
    for (name, count) in named_counts(counts) {
        if let Some(count) = count {
            edits.set_field(own, name, &count.to_string());
        }
    }
}

/// Returns the counts as a `usage` object.
pub(super) fn json(counts: &Usage) -> String {
    let fields =
        named_counts(counts).into_iter().filter_map(|(name, count)| Some(format!("\"{name}\":{}", count?)));
    counts.details.add_to_json(format!("{{{}}}", fields.collect::<Vec<_>>().join(",")))
}

/// Returns the counts with their names, including zeros, because a client replaces the counts from a
/// stream's beginning by those from its end.
fn named_counts(counts: &Usage) -> [(&'static str, Option<u64>); 4] {
    let in_a_cache = counts.written.unwrap_or(0).saturating_add(counts.cached.unwrap_or(0));
    [
        ("input_tokens", Some(counts.prompt.saturating_sub(in_a_cache))),
        ("cache_creation_input_tokens", counts.written),
        ("cache_read_input_tokens", counts.cached),
        ("output_tokens", Some(counts.completion)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> UsageCounts {
        UsageCounts::read(Value::parse_str(json).unwrap())
    }

    #[test]
    fn cached_tokens_are_part_of_the_prompt() {
        let start = read(
            r#"{"input_tokens":5,"cache_creation_input_tokens":3,"cache_read_input_tokens":20,"output_tokens":1}"#,
        );
        let whole = start.updated_by(&read(r#"{"output_tokens":9}"#)).usage().unwrap();
        assert_eq!(
            whole,
            Usage {
                prompt: 28,
                completion: 9,
                total: 37,
                written: Some(3),
                cached: Some(20),
                reasoning: None,
                ..Usage::default()
            }
        );
        assert_eq!(read(&json(&whole)).usage().unwrap(), whole);
        for nothing in ["null", "{}", "[]", r#"{"input_tokens":"many"}"#] {
            assert_eq!(read(nothing).usage(), None, "{nothing}");
        }
    }

    #[test]
    fn zero_counts_at_the_end_do_not_erase_the_prompt() {
        let start = read(r#"{"input_tokens":300,"cache_read_input_tokens":1000,"output_tokens":1}"#);
        let end = read(r#"{"input_tokens":0,"cache_read_input_tokens":0,"output_tokens":222}"#);
        let usage = start.updated_by(&end).usage().unwrap();
        assert_eq!((usage.prompt, usage.cached, usage.completion), (1_300, Some(1_000), 222));
    }

    #[test]
    fn a_price_tier_includes_the_inference_country() {
        for (usage, expected) in [
            (r#"{"service_tier":"standard","inference_geo":"global"}"#, Some("standard")),
            (r#"{"service_tier":"standard","inference_geo":"not_available"}"#, Some("standard")),
            (r#"{"service_tier":"standard","inference_geo":"us"}"#, Some("us")),
            (r#"{"inference_geo":"us"}"#, Some("us")),
            (r#"{"speed":"fast","inference_geo":"us"}"#, Some("fast+us")),
            (r#"{"service_tier":"batch","inference_geo":null}"#, Some("batch")),
            (
                r#"{"service_tier":"standard","iterations":[{"type":"message","input_tokens":1}]}"#,
                Some("standard"),
            ),
            (
                r#"{"inference_geo":"us","iterations":[{"type":"advisor_message","model":"claude-opus-4-8"}]}"#,
                Some("us+advisor"),
            ),
            ("{}", None),
        ] {
            assert_eq!(tier(Value::parse_str(usage).unwrap()).as_deref(), expected, "{usage}");
        }
    }

    #[test]
    fn the_tokens_of_iterations_count_once() {
        let iterations = r#""iterations":[{"type":"compaction","input_tokens":180000,"output_tokens":3500},
            {"type":"message","input_tokens":23000,"output_tokens":1000}]"#;
        let of = |own: &str| read(&format!("{{{own},{iterations}}}")).usage().unwrap();
        let usage = of(r#""input_tokens":23000,"output_tokens":1000"#);
        assert_eq!((usage.prompt, usage.completion, usage.total), (203_000, 4_500, 207_500));
        // The top level of a resumed reply already includes the counts of its iterations.
        let usage = of(r#""input_tokens":230000,"output_tokens":4600"#);
        assert_eq!((usage.prompt, usage.completion), (230_000, 4_600));
    }

    #[test]
    fn written_counts_round_trip() {
        let message = r#"{"usage":{"input_tokens":5,"cache_creation_input_tokens":3,"cache_read_input_tokens":20,"output_tokens":1,"service_tier":"standard"}}"#;
        let root = Value::parse_str(message).unwrap();
        let counts = Usage {
            prompt: 60,
            completion: 7,
            total: 67,
            written: Some(4),
            cached: Some(41),
            reasoning: None,
            ..Usage::default()
        };
        let mut edits = Edits::for_document(root);
        write(&mut edits, root, &counts);
        let written = String::from_utf8(edits.finish()).unwrap();
        let usage = Value::parse_str(&written).unwrap().field("usage").unwrap();
        assert_eq!(UsageCounts::read(usage).usage(), Some(counts.clone()));
        assert!(usage.has_text("service_tier", "standard"));
        // The end of a stream may count only the output. The tokens written to a cache must still be counted
        // only once.
        let end = r#"{"usage":{"output_tokens":1}}"#;
        let root = Value::parse_str(end).unwrap();
        let mut edits = Edits::for_document(root);
        write(&mut edits, root, &counts);
        let written = String::from_utf8(edits.finish()).unwrap();
        let usage = Value::parse_str(&written).unwrap().field("usage").unwrap();
        assert_eq!(usage.field("input_tokens").and_then(Value::as_u64), Some(15));
        assert_eq!(UsageCounts::read(usage).usage(), Some(counts.clone()));
    }
}
