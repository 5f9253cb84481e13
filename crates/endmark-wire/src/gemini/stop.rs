//! The end of a candidate.

use endmark_recovery::Stop;

use crate::finish_reasons::FinishMeaning;
use crate::json::Value;
use crate::reply::Finish;

/// Reads how a candidate ended, or returns `None` if it has not ended. `has_stop` is whether the request has
/// stop sequences. If so, `STOP` may mean one of them.
pub(super) fn read(candidate: Value<'_>, choice: u32, has_stop: bool) -> Option<Finish> {
    Finish::read("gemini", choice, candidate.non_empty_text("finishReason")?, has_stop)
}

/// Returns the refusal of a prompt. Such a response has no candidate.
pub(super) fn prompt_refusal(root: Value<'_>) -> Option<Finish> {
    let word = root.field("promptFeedback")?.non_empty_text("blockReason")?;
    let (stop, meaning) = (Some(Stop::Refused), FinishMeaning::Refused);
    Some(Finish { choice: 0, stop, reason: word, meaning, sequence: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unspecified_reason_is_not_a_finish() {
        for word in [r#""""#, "null", r#""FINISH_REASON_UNSPECIFIED""#, "0"] {
            let candidate = format!("{{\"finishReason\":{word}}}");
            assert_eq!(read(Value::parse_str(&candidate).unwrap(), 0, false), None, "{word}");
        }
    }
}
