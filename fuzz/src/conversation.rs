//! Conversations in every format, and edits by turn: the input is a request body or a list of messages (CX-3).

use endmark_context::conversation::{Changes, Content, Conversation, Edit, Message, NewResult, Pairs, Place};
use endmark_wire::conversation::Dialogue;
use endmark_wire::format::FORMATS;
use endmark_wire::json::Value;

use crate::input::Numbers;

/// Upper bound, exclusive, of edits made at once.
const MAX_EDITS: usize = 6;
/// Upper bound, exclusive, of items that replace a beginning.
const MAX_ITEMS: usize = 4;

/// Checks that spans are disjoint and nested correctly, and that no edit means no change. A replaced beginning leaves
/// the rest unchanged, and edited text reads back as the edited data.
pub fn check(bytes: &[u8]) {
    let mut numbers = Numbers::of(bytes);
    for format in FORMATS {
        let Ok(dialogue) = Dialogue::read(format, bytes) else { continue };
        let conversation = dialogue.conversation();
        spans(conversation, bytes);
        assert_eq!(dialogue.edit(&[]).unwrap(), bytes);
        let items: Vec<&str> = dialogue.items().collect();
        let (turns, new) = beginning(&items, &mut numbers);
        let shorter = dialogue.with_beginning(turns, &new);
        let again = Dialogue::read(format, &shorter).unwrap();
        assert_eq!(again.surroundings(), dialogue.surroundings());
        assert!(again.items().eq(new.iter().chain(items.iter().skip(turns)).copied()), "{turns} by {new:?}");
        let edits: Vec<Edit> =
            (0..numbers.below(MAX_EDITS)).filter_map(|_| edit(conversation, &mut numbers)).collect();
        let Ok(edited) = dialogue.edit(&edits) else { continue };
        assert!(Value::parse_body(&edited).is_ok());
        let again = Dialogue::read(format, &edited).unwrap();
        assert_eq!(again.surroundings(), dialogue.surroundings());
        let applied = Changes::new(conversation, &edits).unwrap().apply(conversation);
        assert_eq!(texts(&applied), texts(again.conversation()), "{edits:?}");
    }
}

/// Returns how many items to replace, sometimes more than there are, and their replacements, which are copies of
/// items.
fn beginning<'i>(items: &[&'i str], numbers: &mut Numbers) -> (usize, Vec<&'i str>) {
    let count = if items.is_empty() { 0 } else { numbers.below(MAX_ITEMS) };
    let new = (0..count).map(|_| *numbers.pick(items)).collect();
    (numbers.below(items.len() + 2), new)
}

fn spans(conversation: &Conversation<'_>, bytes: &[u8]) {
    let mut end = 0;
    for turn in &conversation.turns {
        assert!(turn.span.start >= end && turn.span.end <= bytes.len());
        end = turn.span.end;
        let mut spans: Vec<_> = turn.parts.iter().map(|part| part.span.clone()).collect();
        spans.sort_by_key(|span| (span.start, span.end));
        let mut inside = turn.span.start;
        for span in spans {
            assert!(span.start >= inside && span.start < span.end && span.end <= turn.span.end);
            inside = span.end;
        }
    }
}

/// Returns the texts in order. Other parts may read differently after a neighbouring part is removed.
fn texts<'c>(conversation: &'c Conversation<'_>) -> Vec<&'c str> {
    let parts = conversation.turns.iter().flat_map(|turn| &turn.parts);
    let texts = parts.filter_map(|part| match &part.content {
        Content::Text(text) => Some(text.as_ref()),
        _ => None,
    });
    texts.collect()
}

fn edit(conversation: &Conversation<'_>, numbers: &mut Numbers) -> Option<Edit> {
    let turn = numbers.below(conversation.turns.len());
    let parts = conversation.turns.get(turn)?.parts.len();
    let place = Place { turn, part: numbers.below(parts) };
    let call = Pairs::of(conversation).unanswered().first().copied();
    Some(match numbers.below(5) {
        0 => Edit::DropTurn(turn),
        1 => Edit::Replace { turns: turn..turn + 1, message: Message::User("new \"one\"\n".to_owned()) },
        2 if parts > 0 => Edit::SetText { place, text: "\u{0}other\u{1f600}".to_owned() },
        3 => {
            let absent = NewResult::Absent { call: call?, text: "none".to_owned() };
            Edit::Insert { before: call?.turn + 1, message: Message::Results(vec![absent]) }
        }
        _ => Edit::Insert { before: turn, message: Message::User(String::new()) },
    })
}
