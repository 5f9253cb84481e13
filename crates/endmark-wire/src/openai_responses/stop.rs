//! What the status of a response means.

use endmark_recovery::Stop;

use crate::json::Value;
use crate::reply::Finish;

/// How a response ended; none while it has not (PC-8). `has_stop` is whether the request names stop sequences,
/// which some servers take: they say `completed` of them, too.
///
/// An incomplete response without a reason is cut at its limit: of the reasons there are, it is the one that
/// servers have left out. One that was cancelled was broken off.
pub(super) fn read(response: Value<'_>, has_stop: bool) -> Option<Finish> {
    let status = response.word("status").filter(|status| !status.trim().is_empty())?;
    let reason = response.field("incomplete_details").and_then(|details| details.word("reason"));
    let (stop, word) = match status.as_str() {
        "queued" | "in_progress" => return None,
        "incomplete" => {
            let word = reason.unwrap_or(status);
            (Some(reason_of(&word)), word)
        }
        "failed" | "cancelled" => (None, status),
        _ => (Some(if has_stop { Stop::Sequence } else { Stop::Normal }), status),
    };
    Some(Finish { choice: 0, stop, word, sequence: None })
}

/// Why a response is incomplete. Of a reason that is not known, as of those by which the server hands over to
/// another response, it is the client's business to go on.
fn reason_of(word: &str) -> Stop {
    match word {
        "incomplete" | "max_output_tokens" | "max_tokens" | "length" => Stop::Limit,
        "content_filter" => Stop::Refused,
        _ => Stop::Paused,
    }
}

#[cfg(test)]
mod tests {
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
