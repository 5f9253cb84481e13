//! The tokens that an answer reports, whatever it is the answer to.

use crate::json::{Kind, Value};
use crate::reply::Usage;
use crate::{gemini, openai_chat, openai_responses};

/// The usage that a JSON answer, or an event of a stream, reports; of an array that of its last item. A service that
/// only reports a total has no output.
///
/// ```
/// use endmark_wire::{json::Value, paths::usage_in};
/// let of = |answer| usage_in(Value::parse_str(answer).unwrap()).map(|usage| (usage.prompt, usage.completion));
/// assert_eq!(of(r#"{"object":"list","usage":{"prompt_tokens":8,"total_tokens":8}}"#), Some((8, 0)));
/// assert_eq!(of(r#"{"results":[],"usage":{"total_tokens":15}}"#), Some((15, 0)));
/// assert_eq!(of(r#"[{},{"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":4}}]"#), Some((3, 4)));
/// assert_eq!(of(r#"{"usage":null}"#), None);
/// ```
pub fn usage_in(answer: Value<'_>) -> Option<Usage> {
    let answer = match answer.kind() {
        Kind::Array => answer.items().last()?,
        _ => answer,
    };
    if let Some(usage) = gemini::usage_of(answer).or_else(|| openai_responses::usage_of(answer)) {
        return Some(usage);
    }
    let usage = answer.field("usage")?;
    openai_chat::usage_of(usage).or_else(|| {
        let total = usage.field("total_tokens")?.as_u64()?;
        Some(Usage { prompt: total, total, ..Usage::default() })
    })
}
