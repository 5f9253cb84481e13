//! The end of a response.

use crate::finish_reasons::FinishMeaning;
use crate::json::Value;
use crate::reply::Finish;

const FORMAT: &str = "openai_responses";

/// Reads how a response ended, or returns `None` before its end (PC-8). `has_stop` is whether the request has
/// stop sequences. Servers that accept stop sequences report `completed` for them.
///
/// An incomplete response without a reason is treated as cut at its limit, because servers are known to omit
/// that reason.
pub(super) fn read(response: Value<'_>, has_stop: bool) -> Option<Finish> {
    let status = response.non_empty_text("status")?;
    let reason = response.field("incomplete_details").and_then(|details| details.non_empty_text("reason"));
    let word = if status == "incomplete" { reason.unwrap_or(status) } else { status };
    Finish::read(FORMAT, 0, word, has_stop)
}

/// Returns whether a response is queued or in progress, so that more of it will follow.
pub(super) fn is_in_progress(response: Value<'_>) -> bool {
    let status = response.non_empty_text("status").filter(|status| !status.trim().is_empty());
    status.is_some_and(|status| FinishMeaning::find(FORMAT, &status) == FinishMeaning::NotEnded)
}

#[cfg(test)]
mod tests {
    use endmark_recovery::Stop;

    use super::*;

    fn read_text(response: &str, has_stop: bool) -> Option<Finish> {
        read(Value::parse_str(response).unwrap(), has_stop)
    }

    #[test]
    fn every_status_has_a_meaning() {
        let stop = |response: &str, has_stop| read_text(response, has_stop).unwrap().stop;
        let reason = |reason: &str| {
            stop(&format!(r#"{{"status":"incomplete","incomplete_details":{{"reason":"{reason}"}}}}"#), false)
        };
        assert_eq!(stop(r#"{"status":"completed"}"#, false), Some(Stop::Normal));
        assert_eq!(stop(r#"{"status":"completed"}"#, true), Some(Stop::Sequence));
        assert_eq!(reason("max_output_tokens"), Some(Stop::Limit));
        assert_eq!(reason("content_filter"), Some(Stop::Refused));
        assert_eq!(reason("steered"), Some(Stop::Paused));
        assert_eq!(stop(r#"{"status":"incomplete","incomplete_details":null}"#, false), Some(Stop::Limit));
        for broken in ["failed", "cancelled"] {
            assert_eq!(stop(&format!(r#"{{"status":"{broken}"}}"#), false), None, "{broken}");
        }
        for open in [r#"{"status":"in_progress"}"#, r#"{"status":""}"#, r#"{"status":null}"#, "{}"] {
            assert_eq!(read_text(open, true), None, "{open}");
        }
    }
}
