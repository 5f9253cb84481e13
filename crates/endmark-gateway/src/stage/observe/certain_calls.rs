//! Remembers which tool calls were certainly whole when an earlier event reported an end. A server may report
//! an end with each event, and these tool calls need not be judged again.

use std::collections::HashMap;

use endmark_wire::reply::{Event, Piece, Received};

/// The number of leading tool calls of each choice that are certainly whole. `None` if one of them was
/// continued later.
#[derive(Debug, Default)]
pub(super) struct CertainCalls(HashMap<u32, Option<usize>>);

impl CertainCalls {
    /// Returns the index of the first tool call to judge in a choice. Returns `None` if all of them are in
    /// doubt.
    pub(super) fn first_doubtful_call(&self, choice: u32) -> Option<usize> {
        self.0.get(&choice).copied().unwrap_or(Some(0))
    }

    /// Records that these choices were certain when they ended, with the number of their tool calls. The last
    /// tool call is judged again at the next end, because that end may belong to it.
    pub(super) fn note_certain(&mut self, choices: Vec<(u32, usize)>) {
        for (choice, calls) in choices.into_iter().filter(|(_, calls)| *calls > 0) {
            self.0.insert(choice, Some(calls - 1));
        }
    }

    /// Processes an event. If it continues one of these tool calls, that tool call was not complete.
    pub(super) fn observe_event(&mut self, received: &Received, event: &Event) {
        for delta in &event.pieces {
            let Piece::ToolCall { index, .. } = &delta.piece else { continue };
            let sure = self.0.get_mut(&delta.choice);
            let position = received.call_position(delta.choice, *index);
            if let Some(sure) =
                sure.filter(|sure| position.zip(**sure).is_some_and(|(position, sure)| position < sure))
            {
                *sure = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use endmark_wire::reply::ChoicePiece;

    use super::*;

    #[test]
    fn a_call_that_continues_after_its_end_makes_its_choice_uncertain() {
        let piece = |index| Event {
            pieces: vec![ChoicePiece {
                choice: 0,
                piece: Piece::ToolCall { index, id: None, name: None, arguments: "}".to_owned() },
            }],
            ..Event::default()
        };
        let found = endmark_wire::format::find("/v1/chat/completions", None).unwrap();
        let request =
            endmark_wire::request::Request::parse(found.format, b"{\"messages\":[]}", &found.address);
        let mut reader = request.unwrap().stream(1 << 20);
        let calls = r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f"}},{"index":1,"function":{"name":"g"}}]}}]}"#;
        let frame = endmark_wire::sse::Frame::read(format!("data: {calls}\n\n").into_bytes());
        reader.read_frame(&frame).unwrap();
        let mut sure = CertainCalls::default();
        assert_eq!(sure.first_doubtful_call(0), Some(0));
        sure.note_certain(vec![(0, 2)]);
        assert_eq!(sure.first_doubtful_call(0), Some(1));
        sure.observe_event(reader.received(), &piece(1));
        assert_eq!(
            sure.first_doubtful_call(0),
            Some(1),
            "the last call may be the one that the next end is about"
        );
        sure.observe_event(reader.received(), &piece(0));
        assert_eq!(sure.first_doubtful_call(0), None);
    }
}
