//! What a server's words for the end of a choice mean.

use endmark_core::Stop;

use crate::json::{Kind, Value};

/// The end of a choice, as the server put it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// Which choice has ended.
    pub choice: u32,
    /// What the word means; none where it says that the server broke the reply off, which is no end of the
    /// model's: judge it as [`Ending::UpstreamError`](endmark_core::Ending::UpstreamError).
    pub stop: Option<Stop>,
    /// The server's word, as `stop` or `length`.
    pub word: String,
}

/// What a choice object says of its end; none while it has no `finish_reason`.
///
/// `refused` is whether the choice carries a refusal, which counts whatever the word is.
pub(super) fn read_finish(choice: Value<'_>, index: u32, has_stop: bool, refused: bool) -> Option<Finish> {
    let word = choice.field("finish_reason")?.text()?.into_owned();
    let stop = if refused { Some(Stop::Refused) } else { finish_of(&word, stopped_by(choice), has_stop) };
    Some(Finish { choice: index, stop, word })
}

/// What a server says, next to the word, about what made the model stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoppedBy {
    /// Nothing: the server has no field for it.
    Unsaid,
    /// The model's own end of turn.
    Model,
    /// One of the request's stop sequences or stop tokens.
    Sequence,
}

/// Reads vLLM's `stop_reason` (null: the model's own end; else the sequence or token of the request) and
/// SGLang's `matched_stop` (a number is the model's own end token; a string the sequence).
fn stopped_by(choice: Value<'_>) -> StoppedBy {
    if let Some(reason) = choice.field("stop_reason") {
        return match reason.kind() {
            Kind::String | Kind::Number => StoppedBy::Sequence,
            Kind::Null | Kind::Object | Kind::Array | Kind::Bool => StoppedBy::Model,
        };
    }
    match choice.field("matched_stop").map(Value::kind) {
        Some(Kind::String) => StoppedBy::Sequence,
        Some(Kind::Number) => StoppedBy::Model,
        _ => StoppedBy::Unsaid,
    }
}

/// What a `finish_reason` means (PC-8). `has_stop` is whether the request names stop sequences.
///
/// - `stop` with stop sequences in the request is [`Stop::Sequence`] unless the server says that it was the
///   model's own end: most servers cannot tell, and a reply its client stopped must never be resumed.
/// - A word that is not known is [`Stop::Normal`]: the server did end the reply. A demanded grammar still
///   finds a cut behind it; prose is handed on as the server gave it, with the server's own word.
/// - `error`, `abort` and DeepSeek's `insufficient_system_resource` are none: the reply was broken off.
///
/// ```
/// use endmark_core::Stop;
/// use endmark_wire::openai_chat::{StoppedBy, finish_of};
/// assert_eq!(finish_of("length", StoppedBy::Unsaid, false), Some(Stop::Limit));
/// assert_eq!(finish_of("stop", StoppedBy::Unsaid, true), Some(Stop::Sequence));
/// assert_eq!(finish_of("stop", StoppedBy::Model, true), Some(Stop::Normal));
/// ```
pub fn finish_of(word: &str, stopped_by: StoppedBy, has_stop: bool) -> Option<Stop> {
    match word.to_ascii_lowercase().as_str() {
        "stop" | "eos" | "end_turn" => match stopped_by {
            StoppedBy::Sequence => Some(Stop::Sequence),
            StoppedBy::Unsaid if has_stop => Some(Stop::Sequence),
            StoppedBy::Unsaid | StoppedBy::Model => Some(Stop::Normal),
        },
        "stop_sequence" => Some(Stop::Sequence),
        "length" | "max_tokens" | "max_output_tokens" | "model_length" | "incomplete" => Some(Stop::Limit),
        "content_filter" | "content-filter" | "safety" | "recitation" | "refusal" | "sensitive" => {
            Some(Stop::Refused)
        }
        "pause_turn" => Some(Stop::Paused),
        "error" | "abort" | "insufficient_system_resource" => None,
        _ => Some(Stop::Normal),
    }
}
