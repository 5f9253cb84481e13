//! Properties that hold for any input from a server.

use proptest::prelude::*;
use serde_json::{Value as Tree, json};

use super::*;

/// A value of any shape, for a field of a chunk.
fn any_field() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        Just(json!(null)),
        Just(json!("text")),
        Just(json!("")),
        Just(json!("length")),
        (0..3).prop_map(Tree::from),
        Just(json!(true)),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let name = prop::sample::select(vec![
            "index",
            "delta",
            "message",
            "content",
            "tool_calls",
            "function",
            "arguments",
            "name",
            "id",
            "finish_reason",
            "refusal",
            "reasoning",
            "type",
            "text",
            "error",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Tree::from),
            prop::collection::btree_map(name.prop_map(str::to_owned), inner, 0..6).prop_map(Tree::from_iter),
        ]
    })
}

/// Returns whether every call in a delta could be a function call, by its type.
fn calls_only_functions(delta: &Tree) -> bool {
    delta["tool_calls"].as_array().into_iter().flatten().all(|call| match &call["type"] {
        Tree::Null => true,
        Tree::String(word) => word.is_empty() || word == "function",
        _ => false,
    })
}

/// A delta of any shape, or one with calls.
fn any_delta() -> impl Strategy<Value = Tree> {
    let calls = prop::collection::vec(any_field(), 0..3).prop_map(|calls| json!({"tool_calls": calls}));
    let kinds = prop::collection::vec(any_field(), 1..3).prop_map(|kinds| {
        let calls: Vec<Tree> = kinds.iter().map(|kind| json!({"type": kind})).collect();
        json!({"tool_calls": calls})
    });
    prop_oneof![4 => any_field(), 1 => calls, 1 => kinds]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// For any chunks, the assembled reply is exactly the content of the pieces.
    #[test]
    fn the_received_content_is_kept_exactly(
        chunks in prop::collection::vec(prop::collection::vec((0..2_u32, any_delta(), any_field()), 0..3), 0..5),
    ) {
        let request = ChatRequest::parse(br#"{"messages":[]}"#).unwrap();
        let mut stream = ChatStream::new(&request, 1 << 20);
        let mut texts = [String::new(), String::new()];
        let mut arguments = texts.clone();
        let mut only_functions = [true; 2];
        for choices in &chunks {
            let choices: Vec<Tree> = choices.iter().map(|(index, delta, finish)| {
                only_functions[*index as usize] &= calls_only_functions(delta);
                json!({"index": index, "delta": delta, "finish_reason": finish})
            }).collect();
            let chunk = stream.read_chunk(&json!({"choices": choices}).to_string()).unwrap();
            for delta in chunk.pieces {
                match delta.piece {
                    Piece::Text(text) => texts[delta.choice as usize].push_str(&text),
                    Piece::ToolCall { arguments: more, .. } => arguments[delta.choice as usize].push_str(&more),
                    Piece::Reasoning(_) | Piece::Refusal(_) => {}
                }
            }
        }
        for choice in stream.choices() {
            let index = choice.index as usize;
            prop_assert_eq!(&choice.text, &texts[index]);
            let kept: usize = choice.tool_calls.iter().map(|call| call.arguments.len()).sum();
            prop_assert_eq!(kept, arguments[index].len());
            prop_assert_eq!(choice.received_bytes, kept + choice.text.len());
            prop_assert!(choice.is_mendable);
            // No request can contain a call of another kind.
            prop_assert_eq!(choice.has_unrequestable_part, !only_functions[index]);
        }
    }

    /// Any response can be edited, and the result is JSON.
    #[test]
    fn any_response_can_be_edited(choices in prop::collection::vec((any_field(), any_field()), 0..3), usage in any_field()) {
        let choices: Vec<Tree> =
            choices.iter().map(|(message, finish)| json!({"message": message, "finish_reason": finish})).collect();
        let body = json!({"choices": choices, "usage": usage}).to_string();
        let request = ChatRequest::parse(br#"{"messages":[]}"#).unwrap();
        let response = ChatResponse::parse(body.as_bytes(), &request).unwrap();
        let mut edit = response.edit();
        for choice in &response.choices {
            edit.set_text(choice.index, "new");
            edit.set_finish(choice.index, "stop");
            for call in &choice.tool_calls {
                edit.set_arguments(choice.index, call.index, "{}");
            }
        }
        edit.set_usage(&Usage { prompt: 1, completion: 2, total: 3, written: None, cached: Some(4), reasoning: Some(5), ..Usage::default() });
        let changed = ChatResponse::parse(&edit.finish(), &request).unwrap();
        prop_assert_eq!(changed.usage.unwrap().reasoning, Some(5));
        for (choice, before) in changed.choices.iter().zip(&choices) {
            if before["message"].is_object() {
                prop_assert_eq!(&choice.text, "new");
            }
            prop_assert_eq!(&choice.finish.as_ref().unwrap().reason, "stop");
            let set = choice.tool_calls.iter().all(|call| call.arguments.is_empty() || call.arguments == "{}");
            prop_assert!(set);
        }
    }
}
