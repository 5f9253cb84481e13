//! The tokens that a response of any kind reports.

use crate::json::{Kind, Value};
use crate::reply::Usage;
use crate::{gemini, openai_chat, openai_responses};

/// Returns the usage in a JSON response or in an event of a stream. If the response is an array, its last
/// item has the usage. A service that reports only a total has no output.
///
/// ```
/// use endmark_wire::{json::Value, paths::read_usage};
/// let of = |answer| read_usage(Value::parse_str(answer).unwrap()).map(|usage| (usage.prompt, usage.completion));
/// assert_eq!(of(r#"{"object":"list","usage":{"prompt_tokens":8,"total_tokens":8}}"#), Some((8, 0)));
/// assert_eq!(of(r#"{"results":[],"usage":{"total_tokens":15}}"#), Some((15, 0)));
/// assert_eq!(of(r#"[{},{"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":4}}]"#), Some((3, 4)));
/// assert_eq!(of(r#"{"usage":null}"#), None);
/// ```
pub fn read_usage(answer: Value<'_>) -> Option<Usage> {
    let answer = match answer.kind() {
        Kind::Array => answer.items().last()?,
        _ => answer,
    };
    let of_chat = || openai_chat::usage_of(answer.field("usage")?);
    // Both formats have a field `usage`. Chat's field names are more common, so they are tried first.
    let usage = gemini::usage_of(answer).or_else(of_chat).filter(|usage| !usage.has_only_total());
    let usage = usage.or_else(|| openai_responses::usage_of(answer))?;
    Some(if usage.has_only_total() { Usage { prompt: usage.total, ..usage } } else { usage })
}

/// Returns whether an event of a stream contains only token counts, such as the event that `include_usage`
/// adds.
///
/// ```
/// use endmark_wire::{json::Value, paths::only_counts};
/// let of = |event| only_counts(Value::parse_str(event).unwrap());
/// assert!(of(r#"{"choices":[],"usage":{"prompt_tokens":8,"completion_tokens":1}}"#));
/// assert!(!of(r#"{"choices":[{"text":"x"}],"usage":{"prompt_tokens":8,"completion_tokens":1}}"#));
/// assert!(!of(r#"{"choices":[],"usage":null}"#));
/// ```
pub fn only_counts(event: Value<'_>) -> bool {
    let has_no_choices = event
        .field("choices")
        .is_some_and(|choices| choices.kind() == Kind::Array && choices.items().next().is_none());
    has_no_choices && event.field("error").is_none_or(Value::is_null) && read_usage(event).is_some()
}
