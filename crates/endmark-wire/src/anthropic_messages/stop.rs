//! What a `stop_reason` means.

use endmark_recovery::Stop;

use crate::json::Value;
use crate::reply::Finish;
use crate::writer::End;

/// What a `stop_reason` means (PC-8).
///
/// `model_context_window_exceeded` is a limit like `max_tokens`: the reply is cut. That asking for more finds
/// no room in the window is told apart by the word, which [`Finish::word`] keeps.
///
/// A word that is not known is [`Stop::Normal`]: the server did end the reply, and a demanded grammar still
/// finds a cut behind it.
///
/// ```
/// use endmark_recovery::Stop;
/// use endmark_wire::anthropic_messages::stop_of;
/// assert_eq!(stop_of("max_tokens"), Stop::Limit);
/// assert_eq!(stop_of("pause_turn"), Stop::Paused);
/// ```
pub fn stop_of(word: &str) -> Stop {
    match word {
        "max_tokens" | "model_context_window_exceeded" => Stop::Limit,
        "stop_sequence" => Stop::Sequence,
        "refusal" => Stop::Refused,
        // A compaction that was asked to stop there is the caller's to go on with, as a paused turn is.
        "pause_turn" | "compaction" => Stop::Paused,
        _ => Stop::Normal,
    }
}

/// The end that an object with a `stop_reason` tells; none while it has none, or a blank one.
pub(super) fn read(object: Value<'_>) -> Option<Finish> {
    let word = object.word("stop_reason").filter(|word| !word.trim().is_empty())?;
    let sequence = object.word("stop_sequence").filter(|_| stop_of(&word) == Stop::Sequence);
    Some(Finish { choice: 0, stop: Some(stop_of(&word)), word, sequence })
}

/// The word for an end at which the model may have met a stop sequence of the client's.
pub(super) fn word_of(end: End, sequence: Option<&str>) -> &'static str {
    match (end, sequence) {
        (End::Turn, Some(_)) => "stop_sequence",
        (End::Turn, None) => "end_turn",
        (End::ToolCalls, _) => "tool_use",
        (End::Cut, _) => "max_tokens",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_has_a_meaning() {
        for word in ["end_turn", "tool_use", "a word nobody knows"] {
            assert_eq!(stop_of(word), Stop::Normal, "{word}");
        }
        assert_eq!(stop_of("model_context_window_exceeded"), Stop::Limit);
        assert_eq!(stop_of("stop_sequence"), Stop::Sequence);
        assert_eq!(stop_of("refusal"), Stop::Refused);
    }

    #[test]
    fn a_blank_word_is_no_finish() {
        for word in [r#""""#, r#"" ""#, "null", "0"] {
            let delta = format!("{{\"stop_reason\":{word}}}");
            assert_eq!(read(Value::parse_str(&delta).unwrap()), None, "{word}");
        }
    }
}
