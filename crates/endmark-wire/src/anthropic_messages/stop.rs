//! The end of a message.

use endmark_recovery::Stop;

use crate::json::Value;
use crate::reply::Finish;
use crate::writer::End;

/// Reads the end that an object with a `stop_reason` states, or returns `None` if that is missing or blank.
pub(super) fn read(object: Value<'_>) -> Option<Finish> {
    let finish = Finish::read("anthropic_messages", 0, object.word("stop_reason")?, false)?;
    let sequence = object.word("stop_sequence").filter(|_| finish.stop == Some(Stop::Sequence));
    Some(Finish { sequence, ..finish })
}

/// Returns the stop reason for an end, at which the model may have reached a stop sequence of the client.
pub(super) fn finish_word(end: End, sequence: Option<&str>) -> &'static str {
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
    fn a_blank_stop_reason_is_not_a_finish() {
        for word in [r#""""#, r#"" ""#, "null", "0"] {
            let delta = format!("{{\"stop_reason\":{word}}}");
            assert_eq!(read(Value::parse_str(&delta).unwrap()), None, "{word}");
        }
    }
}
