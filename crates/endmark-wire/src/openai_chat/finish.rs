//! Reads how a choice ended, from its finish reason and the fields next to it.

use std::borrow::Cow;

use endmark_recovery::Stop;

use super::error::states_error;
use crate::finish_reasons::FinishMeaning;
use crate::json::{Fields, Kind, Value};
use crate::reply::Finish;

/// Reads the end of a choice object, or returns `None` if its `finish_reason` is missing or does not state an
/// end. Some servers send `""` or `"null"` instead of null in every chunk.
///
/// If the request has stop sequences, `stop` counts as one of them, because most servers do not distinguish
/// the two. It does not if the server reports that the model itself ended. An error in the choice, which
/// `OpenRouter` sends, overrides the finish reason. So does a refusal (`refused`).
pub(super) fn read_finish(choice: &Fields<'_>, index: u32, has_stop: bool, refused: bool) -> Option<Finish> {
    let is_failed = choice.get("error").as_ref().is_some_and(states_error);
    let word = choice.get("finish_reason").and_then(Value::text).map(Cow::into_owned);
    let word = match word.filter(|word| FinishMeaning::find("openai_chat", word) != FinishMeaning::NotEnded) {
        None if is_failed => "error".to_owned(),
        word => word?,
    };
    let may_be_sequence = match stop_cause(choice) {
        StopCause::Sequence => true,
        StopCause::Model => false,
        StopCause::Unreported => has_stop,
    };
    let finish = Finish::read("openai_chat", index, word, may_be_sequence)?;
    Some(match finish.stop {
        _ if refused => Finish { stop: Some(Stop::Refused), ..finish },
        Some(Stop::Refused) | None => finish,
        Some(_) if is_failed => Finish { stop: None, meaning: FinishMeaning::BrokenOff, ..finish },
        Some(_) => finish,
    })
}

/// The cause of a stop, if a server reports it in addition to the finish reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StopCause {
    /// The server has no field for the cause.
    Unreported,
    /// The model's own end of turn.
    Model,
    /// One of the request's stop sequences or stop tokens.
    Sequence,
}

/// Reads vLLM's `stop_reason` (null means that the model ended) and SGLang's `matched_stop`. In both, a
/// string is the request's stop sequence. A number is a stop token of the request, or one of several tokens
/// that end a turn.
fn stop_cause(choice: &Fields<'_>) -> StopCause {
    if let Some(reason) = choice.get("stop_reason") {
        return match reason.kind() {
            Kind::String => StopCause::Sequence,
            Kind::Null => StopCause::Model,
            Kind::Number | Kind::Object | Kind::Array | Kind::Bool => StopCause::Unreported,
        };
    }
    let matched = choice.get("matched_stop").map(Value::kind);
    if matched == Some(Kind::String) { StopCause::Sequence } else { StopCause::Unreported }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blank_finish_reason_is_not_a_finish() {
        for word in [r#""""#, r#"" ""#, r#""\n\t""#, r#""null""#, r#""None""#, "null", "0"] {
            let choice = format!("{{\"finish_reason\":{word},\"stop_reason\":null}}");
            let choice = Fields::new(Value::parse_str(&choice).unwrap());
            assert_eq!(read_finish(&choice, 0, false, false), None, "{word}");
            assert_eq!(read_finish(&choice, 0, true, true), None, "{word}");
        }
    }

    #[test]
    fn finish_reasons_identify_who_stopped() {
        let stop = |fields: &str, has_stop| {
            let choice = format!("{{\"finish_reason\":\"stop\"{fields}}}");
            let choice = Fields::new(Value::parse_str(&choice).unwrap());
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
