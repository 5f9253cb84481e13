//! Conversations in every format, and edits by turn (CX-3). The input is a request body or a list of
//! messages.

use endmark_context::conversation::{
    CallPairs, Content, Conversation, ConversationChanges, Edit, InsertedMessage, NewResult, PartPosition,
};
use endmark_wire::conversation::Dialogue;
use endmark_wire::format::FORMATS;
use endmark_wire::json::Value;

use crate::input::Numbers;

/// Upper bound (exclusive) of the number of edits that are made at once.
const MAX_EDITS: usize = 6;
/// Upper bound (exclusive) of the number of items that replace a beginning.
const MAX_ITEMS: usize = 4;

/// Checks that spans are disjoint or nested, and that an empty edit changes nothing. Replacing the beginning
/// must not change the rest, and an edited text must be read back as the edited data.
pub fn check(bytes: &[u8]) {
    let mut numbers = Numbers::of(bytes);
    for format in FORMATS {
        let Ok(dialogue) = Dialogue::read(format, bytes) else { continue };
        let conversation = dialogue.conversation();
        check_spans(conversation, bytes);
        assert_eq!(dialogue.edit(&[]).unwrap(), bytes);
        let items: Vec<&str> = dialogue.items().collect();
        let (turns, new) = new_beginning(&items, &mut numbers);
        let shorter = dialogue.with_replaced_beginning(turns, &new);
        let again = Dialogue::read(format, &shorter).unwrap();
        assert_eq!(again.surroundings(), dialogue.surroundings());
        assert!(again.items().eq(new.iter().chain(items.iter().skip(turns)).copied()), "{turns} by {new:?}");
        let edits: Vec<Edit> =
            (0..numbers.below(MAX_EDITS)).filter_map(|_| random_edit(conversation, &mut numbers)).collect();
        let Ok(edited) = dialogue.edit(&edits) else { continue };
        assert!(Value::parse_body(&edited).is_ok());
        let again = Dialogue::read(format, &edited).unwrap();
        assert_eq!(again.surroundings(), dialogue.surroundings());
        let applied = ConversationChanges::new(conversation, &edits).unwrap().apply(conversation);
        assert_eq!(texts(&applied), texts(again.conversation()), "{edits:?}");
    }
}

/// Returns the number of items to replace, which may exceed the number of items, and copies of items to
/// replace them.
fn new_beginning<'i>(items: &[&'i str], numbers: &mut Numbers) -> (usize, Vec<&'i str>) {
    let count = if items.is_empty() { 0 } else { numbers.below(MAX_ITEMS) };
    let new = (0..count).map(|_| *numbers.pick(items)).collect();
    (numbers.below(items.len() + 2), new)
}

fn check_spans(conversation: &Conversation<'_>, bytes: &[u8]) {
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

/// Returns the texts in order. Other parts may be read differently after a neighbouring part was removed.
fn texts<'c>(conversation: &'c Conversation<'_>) -> Vec<&'c str> {
    let parts = conversation.turns.iter().flat_map(|turn| &turn.parts);
    let texts = parts.filter_map(|part| match &part.content {
        Content::Text(text) => Some(text.as_ref()),
        _ => None,
    });
    texts.collect()
}

fn random_edit(conversation: &Conversation<'_>, numbers: &mut Numbers) -> Option<Edit> {
    let turn = numbers.below(conversation.turns.len());
    let parts = conversation.turns.get(turn)?.parts.len();
    let place = PartPosition { turn, part: numbers.below(parts) };
    let call = CallPairs::of(conversation).unanswered().first().copied();
    Some(match numbers.below(5) {
        0 => Edit::DropTurn(turn),
        1 => Edit::Replace {
            turns: turn..turn + 1,
            message: InsertedMessage::User("new \"one\"\n".to_owned()),
        },
        2 if parts > 0 => Edit::SetText { place, text: "\u{0}other\u{1f600}".to_owned() },
        3 => {
            let absent = NewResult::Absent { call: call?, text: "none".to_owned() };
            Edit::Insert { before: call?.turn + 1, message: InsertedMessage::Results(vec![absent]) }
        }
        _ => Edit::Insert { before: turn, message: InsertedMessage::User(String::new()) },
    })
}
