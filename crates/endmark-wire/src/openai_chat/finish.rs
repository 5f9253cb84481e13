//! What a server's words for the end of a choice mean.

use endmark_recovery::Stop;

use crate::json::{Fields, Kind, Value};
use crate::reply::Finish;

/// What a choice object says of its end; none while it has no `finish_reason`, or a blank one.
///
/// Some servers write `""` or `"null"` where others write null, on every chunk: read as an end, it would make a dropped
/// stream a whole reply.
///
/// `refused` is whether the choice carries a refusal, which counts whatever the word is.
pub(super) fn read_finish(choice: &Fields<'_>, index: u32, has_stop: bool, refused: bool) -> Option<Finish> {
    let says_nothing = |word: &str| matches!(word.trim(), "" | "null" | "None");
    let word = choice.get("finish_reason")?.text().filter(|word| !says_nothing(word))?.into_owned();
    let stop = if refused { Some(Stop::Refused) } else { finish_of(&word, stopped_by(choice), has_stop) };
    Some(Finish { choice: index, stop, word, sequence: None })
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

/// Reads vLLM's `stop_reason` (null: the model's own end) and SGLang's `matched_stop`. In both a string is
/// the request's stop sequence, and a number a token: the request's, or one of several that end a turn.
fn stopped_by(choice: &Fields<'_>) -> StoppedBy {
    if let Some(reason) = choice.get("stop_reason") {
        return match reason.kind() {
            Kind::String => StoppedBy::Sequence,
            Kind::Null => StoppedBy::Model,
            Kind::Number | Kind::Object | Kind::Array | Kind::Bool => StoppedBy::Unsaid,
        };
    }
    let matched = choice.get("matched_stop").map(Value::kind);
    if matched == Some(Kind::String) { StoppedBy::Sequence } else { StoppedBy::Unsaid }
}

/// What a `finish_reason` means (PC-8). `has_stop` is whether the request names stop sequences.
///
/// - `stop` with stop sequences in the request is [`Stop::Sequence`] unless the server says that it was the
///   model's own end: most servers cannot tell, and a reply its client stopped must never be resumed.
/// - A word that is not known is [`Stop::Normal`]: the server did end the reply. A demanded grammar still
///   finds a cut behind it; prose is handed on as the server gave it, with the server's own word.
/// - A blank word is no finish, and not for this function: [`Choice`](super::Choice) and
///   [`ChatStream`](super::ChatStream) read none there.
/// - `error`, `abort` and DeepSeek's `insufficient_system_resource` are none: the reply was broken off.
///
/// ```
/// use endmark_recovery::Stop;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_has_a_meaning() {
        let meaning = |word| finish_of(word, StoppedBy::Unsaid, false);
        for word in ["stop", "tool_calls", "function_call", "end_turn", "a word nobody knows"] {
            assert_eq!(meaning(word), Some(Stop::Normal), "{word}");
        }
        for word in ["length", "max_tokens", "MAX_TOKENS", "model_length", "incomplete"] {
            assert_eq!(meaning(word), Some(Stop::Limit), "{word}");
        }
        for word in ["content_filter", "SAFETY", "RECITATION", "refusal"] {
            assert_eq!(meaning(word), Some(Stop::Refused), "{word}");
        }
        for word in ["error", "abort", "insufficient_system_resource"] {
            assert_eq!(meaning(word), None, "{word}");
        }
        assert_eq!(meaning("pause_turn"), Some(Stop::Paused));
        assert_eq!(meaning("stop_sequence"), Some(Stop::Sequence));
    }

    #[test]
    fn a_blank_word_is_no_finish() {
        for word in [r#""""#, r#"" ""#, r#""\n\t""#, r#""null""#, r#""None""#, "null", "0"] {
            let choice = format!("{{\"finish_reason\":{word},\"stop_reason\":null}}");
            let choice = Fields::of(Value::parse_str(&choice).unwrap());
            assert_eq!(read_finish(&choice, 0, false, false), None, "{word}");
            assert_eq!(read_finish(&choice, 0, true, true), None, "{word}");
        }
    }

    #[test]
    fn who_stopped() {
        let stop = |fields: &str, has_stop| {
            let choice = format!("{{\"finish_reason\":\"stop\"{fields}}}");
            let choice = Fields::of(Value::parse_str(&choice).unwrap());
            read_finish(&choice, 0, has_stop, false).unwrap().stop
        };
        assert_eq!(stop("", false), Some(Stop::Normal));
        assert_eq!(stop("", true), Some(Stop::Sequence));
        assert_eq!(stop(r#","stop_reason":null"#, true), Some(Stop::Normal));
        assert_eq!(stop(r#","stop_reason":"END""#, true), Some(Stop::Sequence));
        assert_eq!(stop(r#","stop_reason":128009"#, false), Some(Stop::Normal));
        assert_eq!(stop(r#","stop_reason":128009"#, true), Some(Stop::Sequence));
        assert_eq!(stop(r#","matched_stop":2"#, true), Some(Stop::Sequence));
        assert_eq!(stop(r#","matched_stop":"END""#, true), Some(Stop::Sequence));
    }
}
