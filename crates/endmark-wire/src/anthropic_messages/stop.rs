//! The end of a message.

use endmark_recovery::Stop;

use crate::json::Value;
use crate::reply::Finish;
use crate::writer::ReportedEnd;

/// Reads the end of a reply from the `stop_reason` of an object, or returns `None` if that is missing or
/// blank.
pub(super) fn read(object: Value<'_>) -> Option<Finish> {
    let finish = Finish::read("anthropic_messages", 0, object.non_empty_text("stop_reason")?, false)?;
    let sequence = object.non_empty_text("stop_sequence").filter(|_| finish.stop == Some(Stop::Sequence));
    Some(Finish { sequence, ..finish })
}

/// Returns the stop reason for an end. `sequence` is the client's stop sequence that ended the reply, if any.
pub(super) fn stop_reason(end: ReportedEnd, sequence: Option<&str>) -> &'static str {
    match (end, sequence) {
        (ReportedEnd::Turn, Some(_)) => "stop_sequence",
        (ReportedEnd::Turn, None) => "end_turn",
        (ReportedEnd::ToolCalls, _) => "tool_use",
        (ReportedEnd::Cut, _) => "max_tokens",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blank_stop_reason_is_not_a_finish() {
        for word in [r#""""#, r#"" ""#, "null", "0"] {
            let delta = format!("{{\"stop_reason\":{word}}}");
            assert_eq!(read(Value::parse_str(&delta).unwrap()), None, "{word}");
        }
    }
}
