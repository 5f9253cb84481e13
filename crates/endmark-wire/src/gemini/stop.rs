//! What a `finishReason` means.

use endmark_recovery::Stop;

use crate::json::Value;
use crate::reply::Finish;

/// What a `finishReason` means (PC-8). `has_stop` is whether the request names stop sequences: `STOP` is said
/// of them, too, and a reply its client stopped must never be resumed.
///
/// - `CONTINUATION` is a turn that the provider paused, for the client to go on with.
/// - A function call or a response that the provider calls malformed is an end of the model's own: the client
///   gets the provider's word for it.
/// - `OTHER` is none: the reply was broken off.
///
/// ```
/// use endmark_recovery::Stop;
/// use endmark_wire::gemini::stop_of;
/// assert_eq!(stop_of("MAX_TOKENS", false), Some(Stop::Limit));
/// assert_eq!(stop_of("STOP", true), Some(Stop::Sequence));
/// assert_eq!(stop_of("CONTINUATION", false), Some(Stop::Paused));
/// ```
pub fn stop_of(word: &str, has_stop: bool) -> Option<Stop> {
    match word {
        "STOP" if has_stop => Some(Stop::Sequence),
        "MAX_TOKENS" => Some(Stop::Limit),
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "MODEL_ARMOR"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => Some(Stop::Refused),
        "CONTINUATION" => Some(Stop::Paused),
        "OTHER" => None,
        _ => Some(Stop::Normal),
    }
}

/// How a candidate ended; none while it says nothing of it.
pub(super) fn read(candidate: Value<'_>, choice: u32, has_stop: bool) -> Option<Finish> {
    let unsaid = |word: &String| word.trim().is_empty() || word == "FINISH_REASON_UNSPECIFIED";
    let word = candidate.word("finishReason").filter(|word| !unsaid(word))?;
    Some(Finish { choice, stop: stop_of(&word, has_stop), word, sequence: None })
}

/// The refusal of a prompt, which has no candidate.
pub(super) fn blocked(root: Value<'_>) -> Option<Finish> {
    let word = root.field("promptFeedback")?.word("blockReason")?;
    Some(Finish { choice: 0, stop: Some(Stop::Refused), word, sequence: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_has_a_meaning() {
        for word in ["STOP", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "FUNCTION_CALL", "NEW"] {
            assert_eq!(stop_of(word, false), Some(Stop::Normal), "{word}");
        }
        for word in ["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"] {
            assert_eq!(stop_of(word, true), Some(Stop::Refused), "{word}");
        }
        assert_eq!(stop_of("OTHER", false), None);
    }

    #[test]
    fn a_word_that_says_nothing_is_no_finish() {
        for word in [r#""""#, "null", r#""FINISH_REASON_UNSPECIFIED""#, "0"] {
            let candidate = format!("{{\"finishReason\":{word}}}");
            assert_eq!(read(Value::parse_str(&candidate).unwrap(), 0, false), None, "{word}");
        }
    }
}
