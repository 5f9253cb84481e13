//! Conversations with all kinds of parts in every format: read, and edited by turn (CX-3).
//!
//! After an intended change, run `UPDATE_GOLDEN=1 cargo test -p endmark-wire --test conversation` to rewrite the
//! expectations in `tests/conversation`, and review the difference.

#![expect(clippy::unwrap_used, reason = "a failure here is a failure of the test")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use endmark_context::conversation::{
    CallPairs, Content, Conversation, Edit, EditError, InsertedMessage, NewResult, PartPosition, Role, Turn,
};
use endmark_wire::conversation::{ConversationError, Dialogue};
use endmark_wire::format::{FORMATS, WireFormat, find_by_name};
use endmark_wire::json::Value;
use proptest::prelude::*;

fn fixture_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conversation")
}

fn body(format: &dyn WireFormat) -> Vec<u8> {
    std::fs::read(fixture_folder().join(format!("{}.json", format.name()))).unwrap()
}

fn assert_matches_golden(name: &str, rendered: &[u8]) {
    let path = fixture_folder().join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, rendered).unwrap();
    }
    let expected = std::fs::read(&path).unwrap_or_default();
    let [rendered, expected] = [rendered, &expected].map(String::from_utf8_lossy);
    assert!(rendered == expected, "{name}\n--- expected\n{expected}\n--- rendered\n{rendered}");
}

#[test]
fn every_kind_of_part_is_read() {
    for format in FORMATS {
        let body = body(format);
        let dialogue = Dialogue::read(format, &body).unwrap();
        let conversation = dialogue.conversation();
        check_spans(conversation, &body);
        let pairs = CallPairs::of(conversation);
        let mut out = String::new();
        for (position, turn) in conversation.turns.iter().enumerate() {
            writeln!(out, "{position} {:?}", turn.role).unwrap();
            for (part, standing) in turn.parts.iter().enumerate() {
                let place = PartPosition { turn: position, part };
                let with = pairs.result_of(place).or_else(|| pairs.call_of(place));
                let with = with.map(|with| format!(" <> {}.{}", with.turn, with.part)).unwrap_or_default();
                let raw = std::str::from_utf8(&body[standing.span.clone()]).unwrap();
                writeln!(out, "  {part}{with} {:?}\n      {raw}", standing.content).unwrap();
            }
        }
        writeln!(out, "unanswered {:?}, orphans {:?}", pairs.unanswered(), pairs.orphan_results()).unwrap();
        assert_matches_golden(&format!("{}.txt", format.name()), out.as_bytes());
    }
}

fn position(conversation: &Conversation<'_>, is_it: impl Fn(&Turn<'_>) -> bool) -> usize {
    conversation.turns.iter().position(is_it).unwrap()
}

fn contains_text(turn: &Turn<'_>, text: &str) -> bool {
    turn.texts().any(|part_text| part_text == text)
}

/// Returns the same list of edits in every format. It drops a part and a turn, changes the text of a result,
/// and replaces turns. It moves the results of a call after the call, and adds a result to a call that has
/// none.
fn edits(conversation: &Conversation<'_>) -> Vec<Edit> {
    let pairs = CallPairs::of(conversation);
    let media =
        position(conversation, |turn| turn.parts.iter().any(|p| matches!(p.content, Content::Media(_))));
    let in_turn = |turn: usize, is_it: fn(&Content<'_>) -> bool| {
        let part = conversation.turns[turn].parts.iter().position(|part| is_it(&part.content)).unwrap();
        PartPosition { turn, part }
    };
    // Parallel calls are in one turn, or in consecutive turns.
    let calling = position(conversation, |turn| turn.calls().next().is_some());
    let next = |(call, _): &(PartPosition, PartPosition)| call.turn == calling || call.turn == calling + 1;
    let called: Vec<(PartPosition, PartPosition)> = pairs.pairs().filter(next).collect();
    let behind_calls = called.iter().map(|(call, _)| call.turn + 1).max().unwrap();
    let mut results: Vec<PartPosition> = called.into_iter().map(|(_, result)| result).collect();
    results.sort();
    let shortened = results[0];
    let crashed = *pairs.unanswered().last().unwrap();
    let last = conversation.turns.len() - 1;
    vec![
        Edit::DropPart(in_turn(media, |content| matches!(content, Content::Media(_)))),
        Edit::DropPart(in_turn(media, |content| matches!(content, Content::Unknown { .. }))),
        Edit::SetText { place: shortened, text: "[short \"ened\"]".to_owned() },
        Edit::Insert {
            before: behind_calls,
            message: InsertedMessage::Results(results.into_iter().map(NewResult::Moved).collect()),
        },
        Edit::Replace {
            turns: position(conversation, |turn| contains_text(turn, "middle begins"))
                ..position(conversation, |turn| contains_text(turn, "middle ends")) + 1,
            message: InsertedMessage::User("the middle,\nin short".to_owned()),
        },
        Edit::Insert {
            before: crashed.turn + 1,
            message: InsertedMessage::Results(vec![NewResult::Absent {
                call: crashed,
                text: "no result".into(),
            }]),
        },
        Edit::Insert { before: last + 1, message: InsertedMessage::User("one more".to_owned()) },
    ]
}

#[test]
fn edits_by_turn_leave_all_remaining_bytes_unchanged() {
    for format in FORMATS {
        let body = body(format);
        let dialogue = Dialogue::read(format, &body).unwrap();
        let conversation = dialogue.conversation();
        let edits = edits(conversation);
        let edited = dialogue.edit(&edits).unwrap();
        assert_matches_golden(&format!("{}.edited.json", format.name()), &edited);
        let again = Dialogue::read(format, &edited).unwrap();
        assert_eq!(again.surroundings(), dialogue.surroundings(), "{}", format.name());
        // The parts without an edit keep their order and their bytes.
        let changes = endmark_context::conversation::ConversationChanges::new(conversation, &edits).unwrap();
        let mut rest = edited.as_slice();
        for (position, turn) in conversation.turns.iter().enumerate() {
            let is_kept = |part| !changes.drops_part(PartPosition { turn: position, part });
            let is_new = |part| changes.text(PartPosition { turn: position, part }).is_some();
            if !(0..turn.parts.len()).all(|part| is_kept(part) && !is_new(part)) {
                continue;
            }
            let raw = &body[turn.span.clone()];
            let at = rest.windows(raw.len()).position(|window| window == raw);
            rest = &rest[at.unwrap_or_else(|| panic!("turn {position} of {}", format.name())) + raw.len()..];
        }
        // Edits of the data and edits of the bytes have the same result.
        let applied = changes.apply(conversation);
        assert_eq!(
            content_descriptions(&applied),
            content_descriptions(again.conversation()),
            "{}",
            format.name()
        );
        let pairs = CallPairs::of(again.conversation());
        let open = CallPairs::of(conversation).unanswered().len() - 1;
        assert_eq!((pairs.unanswered().len(), pairs.orphan_results().len()), (open, 0), "{}", format.name());
    }
}

/// Returns the contents in order, without those parts of a new result that a format cannot represent.
fn content_descriptions(conversation: &Conversation<'_>) -> Vec<String> {
    let parts = conversation.turns.iter().flat_map(|turn| &turn.parts);
    let part_text = parts.map(|part| match &part.content {
        Content::Result(result) => format!("{:?} says {:?}", result.call_id, result.text),
        other => format!("{other:?}"),
    });
    part_text.collect()
}

fn check_spans(conversation: &Conversation<'_>, body: &[u8]) {
    let mut end = 0;
    for turn in &conversation.turns {
        assert!(turn.span.start >= end && turn.span.end <= body.len());
        end = turn.span.end;
        let mut spans: Vec<_> = turn.parts.iter().map(|part| part.span.clone()).collect();
        spans.sort_by_key(|span| (span.start, span.end));
        let mut inside = turn.span.start;
        for span in spans {
            assert!(span.start >= inside && span.end <= turn.span.end && !span.is_empty(), "{span:?}");
            assert!(Value::parse(&body[span.clone()]).is_ok());
            inside = span.end;
        }
    }
}

#[test]
fn a_bare_list_of_messages_is_a_conversation() {
    for format in FORMATS {
        let body = body(format);
        let of_body = Dialogue::read(format, &body).unwrap();
        let list = of_body.source().to_owned();
        let of_list = Dialogue::read(format, list.as_bytes()).unwrap();
        assert_eq!(of_list.surroundings(), ["", ""]);
        assert_eq!(
            content_descriptions(of_list.conversation()),
            content_descriptions(of_body.conversation())
        );
        let edited = of_list.edit(&edits(of_list.conversation())).unwrap();
        let whole = of_body.edit(&edits(of_body.conversation())).unwrap();
        assert_eq!(
            [of_body.surroundings()[0].as_bytes(), &edited, of_body.surroundings()[1].as_bytes()].concat(),
            whole
        );
    }
}

#[test]
fn the_error_contains_the_position_of_an_invalid_item() {
    let error = |name: &str, body: &str| {
        let error = Dialogue::read(find_by_name(name).unwrap(), body.as_bytes()).unwrap_err();
        assert!(!matches!(error, ConversationError::Json(_)) || body.starts_with('{'));
        error.to_string()
    };
    for (format, body, expected) in [
        ("openai_chat", r#"{"messages":[{"role":"user"}"#, "invalid JSON at byte 28"),
        ("openai_chat", r#"{"input":[]}"#, "a request with `messages`"),
        ("openai_chat", r#"[{"role":"user","content":"x"},7]"#, "item 1 (byte 31) has no `role`"),
        (
            "openai_chat",
            r#"[{"role":"user","parts":[{"text":"x"}]}]"#,
            "item 0 (byte 1) has `parts` and no `content`",
        ),
        ("openai_responses", r#"{"input":{}}"#, "a request with `input`"),
        ("openai_responses", r#"[{"content":"x"}]"#, "has neither `type` nor `role`"),
        ("anthropic_messages", r#"[{"role":"tool","content":"x"}]"#, "has the role `tool`"),
        (
            "gemini",
            r#"{"contents":[{"role":"user","content":"x"}]}"#,
            "item 0 (byte 13) has no list of `parts`",
        ),
        ("gemini", "null", "a request with `contents`"),
    ] {
        assert!(error(format, body).contains(expected), "{}", error(format, body));
    }
}

#[test]
fn an_input_of_one_text_is_one_turn() {
    let format = find_by_name("openai_responses").unwrap();
    let body = br#"{"model":"m","input":"Hi"}"#;
    let dialogue = Dialogue::read(format, body).unwrap();
    assert!(dialogue.conversation().turns[0].is_from_user());
    let new = Edit::SetText { place: PartPosition { turn: 0, part: 0 }, text: "Ho".to_owned() };
    assert_eq!(dialogue.edit(&[new]).unwrap(), br#"{"model":"m","input":"Ho"}"#);
    assert_eq!(dialogue.edit(&[Edit::DropTurn(0)]), Err(EditError::NotAList));
}

#[test]
fn conflicting_edits_are_refused() {
    let format = find_by_name("openai_chat").unwrap();
    let body = br#"[{"role":"user","content":"Hi"},{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f"}}]}]"#;
    let dialogue = Dialogue::read(format, body).unwrap();
    let place = PartPosition { turn: 1, part: 0 };
    let refused = |edit| dialogue.edit(&[edit]).unwrap_err().to_string();
    assert_eq!(refused(Edit::DropTurn(2)), "there is no part 0 in turn 2 of 2");
    assert_eq!(
        refused(Edit::SetText { place, text: String::new() }),
        "part 0 of turn 1 is of another kind than this edit needs"
    );
    let moved = InsertedMessage::Results(vec![NewResult::Moved(place)]);
    assert!(refused(Edit::Insert { before: 2, message: moved }).contains("another kind"));
    let message = InsertedMessage::User(String::new());
    assert!(refused(Edit::Replace { turns: 1..3, message }).contains("turn 2 of 2"));
    assert_eq!(dialogue.conversation().turns[1].role, Role::Assistant);
}

/// JSON with the formats' names and words in valid and invalid positions.
fn any_json() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "messages",
        "input",
        "contents",
        "role",
        "user",
        "assistant",
        "model",
        "tool",
        "system",
        "content",
        "parts",
        "text",
        "type",
        "tool_calls",
        "function",
        "arguments",
        "id",
        "call_id",
        "tool_call_id",
        "function_call",
        "function_call_output",
        "reasoning",
        "compaction",
        "tool_use",
        "tool_result",
        "tool_use_id",
        "functionCall",
        "functionResponse",
        "response",
        "name",
        "image_url",
        "inlineData",
        "thought",
        "thinking",
        "signature",
        "x",
    ]);
    let leaf = prop_oneof![
        4 => words.clone().prop_map(|word| format!("{word:?}")),
        1 => Just("null".to_owned()),
        1 => Just("1.50".to_owned()),
        1 => Just("\"\\ud83d\"".to_owned()),
    ];
    leaf.prop_recursive(6, 96, 6, move |inner| {
        let field = (words.clone(), inner.clone()).prop_map(|(name, value)| format!("{name:?} : {value}"));
        prop_oneof![
            prop::collection::vec(inner, 0..5).prop_map(|items| format!("[{}]", items.join(", "))),
            prop::collection::vec(field, 0..6).prop_map(|fields| format!("{{{}}}", fields.join(","))),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_is_read_or_rejected(json in any_json(), list in "(messages|input|contents)") {
        for json in [&json, &format!("{{\"{list}\":[{json}],\"x\":[]}}"), &format!("[{json}]")] {
            for format in FORMATS {
                let Ok(dialogue) = Dialogue::read(format, json.as_bytes()) else { continue };
                let conversation = dialogue.conversation();
                check_spans(conversation, json.as_bytes());
                prop_assert_eq!(dialogue.edit(&[]).unwrap(), json.as_bytes());
                let pairs = CallPairs::of(conversation);
                for (call, result) in pairs.pairs() {
                    prop_assert!(call < result);
                    prop_assert_eq!((pairs.call_of(result), pairs.result_of(call)), (Some(call), Some(result)));
                }
                // After dropping any turn, the remaining ones have the same content.
                for turn in 0..conversation.turns.len() {
                    let Ok(edited) = dialogue.edit(&[Edit::DropTurn(turn)]) else { continue };
                    let left = Dialogue::read(format, &edited).unwrap();
                    let mut expected = conversation.clone();
                    expected.turns.remove(turn);
                    prop_assert_eq!(content_descriptions(left.conversation()), content_descriptions(&expected));
                }
            }
        }
    }
}
