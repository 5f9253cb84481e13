//! Reads how a choice ended, from its finish reason and the fields next to it.

use std::borrow::Cow;

use endmark_recovery::Stop;

use super::error::states_error;
use crate::finish_reasons::Meaning;
use crate::json::{Fields, Kind, Value};
use crate::reply::Finish;

/// Reads the end of a choice object, or returns `None` if it has no `finish_reason`, or one that states no end. Some
/// servers send `""` or `"null"` instead of null on every chunk.
///
/// `stop` counts as a stop sequence if the request has any, because most servers cannot distinguish the two. It does
/// not if the server reports the model's own end. An error in the choice, which `OpenRouter` sends, breaks it off
/// whatever its word is. `refused` is whether the choice has a refusal, which overrides the word.
pub(super) fn read_finish(choice: &Fields<'_>, index: u32, has_stop: bool, refused: bool) -> Option<Finish> {
    let is_failed = choice.get("error").as_ref().is_some_and(states_error);
    let word = choice.get("finish_reason").and_then(Value::text).map(Cow::into_owned);
    let word = match word.filter(|word| Meaning::find("openai_chat", word) != Meaning::NotEnded) {
        None if is_failed => "error".to_owned(),
        word => word?,
    };
    let may_be_sequence = match stop_cause(choice) {
        StopCause::Sequence => true,
        StopCause::Model => false,
        StopCause::Unstated => has_stop,
    };
    let finish = Finish::read("openai_chat", index, word, may_be_sequence)?;
    Some(match finish.stop {
        _ if refused => Finish { stop: Some(Stop::Refused), ..finish },
        Some(Stop::Refused) | None => finish,
        Some(_) if is_failed => Finish { stop: None, meaning: Meaning::BrokenOff, ..finish },
        Some(_) => finish,
    })
}

/// The cause of the stop, which a server reports in addition to the word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StopCause {
    /// No report: the server has no field for it.
    Unstated,
    /// The model's own end of turn.
    Model,
    /// One of the request's stop sequences or stop tokens.
    Sequence,
}

/// Reads vLLM's `stop_reason` (null: the model's own end) and SGLang's `matched_stop`. In both, a string is the
/// request's stop sequence. A number is a token: the request's, or one of several that end a turn.
fn stop_cause(choice: &Fields<'_>) -> StopCause {
    if let Some(reason) = choice.get("stop_reason") {
        return match reason.kind() {
            Kind::String => StopCause::Sequence,
            Kind::Null => StopCause::Model,
            Kind::Number | Kind::Object | Kind::Array | Kind::Bool => StopCause::Unstated,
        };
    }
    let matched = choice.get("matched_stop").map(Value::kind);
    if matched == Some(Kind::String) { StopCause::Sequence } else { StopCause::Unstated }
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
