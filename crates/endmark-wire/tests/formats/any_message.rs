//! For any input from clients and servers, nothing panics, and anything not edited stays unchanged.

use endmark_wire::ask::{Ask, Partial, PrefillVariant, Terms, ToolPrefill};
use endmark_wire::format::FORMATS;
use endmark_wire::reply::{Piece, ToolCall, Usage};
use endmark_wire::request::{Address, Request};
use endmark_wire::sse::event_frame;
use endmark_wire::writer::{ChoiceEnd, ReportedEnd, StreamEnd, StreamError};
use proptest::prelude::*;
use serde_json::{Value as Tree, json};

use crate::relay::{KEEP_BYTES, frames, is_held, request};

/// The formats' field names, so that most generated input is meaningful.
const NAMES: [&str; 44] = [
    "type",
    "role",
    "content",
    "text",
    "parts",
    "index",
    "delta",
    "message",
    "messages",
    "input",
    "contents",
    "output",
    "item",
    "item_id",
    "output_index",
    "content_index",
    "part",
    "arguments",
    "name",
    "id",
    "call_id",
    "functionCall",
    "args",
    "candidates",
    "finishReason",
    "usage",
    "usageMetadata",
    "promptFeedback",
    "stop_reason",
    "status",
    "incomplete_details",
    "reason",
    "error",
    "partial_json",
    "thinking",
    "content_block",
    "response",
    "generationConfig",
    "thought",
    "tools",
    "choices",
    "finish_reason",
    "sequence_number",
    "continuationToken",
];
const WORDS: [&str; 36] = [
    "",
    "x",
    "{\"a\":",
    "text",
    "message",
    "user",
    "assistant",
    "model",
    "tool_use",
    "text_delta",
    "input_json_delta",
    "thinking",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_start",
    "message_delta",
    "message_stop",
    "function_call",
    "output_text",
    "reasoning",
    "response.created",
    "response.output_item.added",
    "response.output_item.done",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.done",
    "response.function_call_arguments.delta",
    "response.completed",
    "completed",
    "incomplete",
    "max_tokens",
    "MAX_TOKENS",
    "STOP",
    "stop",
    "length",
];

fn any_value() -> BoxedStrategy<Tree> {
    let leaf = prop_oneof![
        2 => Just(json!(null)),
        6 => prop::sample::select(WORDS.to_vec()).prop_map(Tree::from),
        3 => (0..3).prop_map(Tree::from),
        1 => Just(json!(true)),
        1 => ".{0,4}".prop_map(Tree::from),
    ];
    let nested = leaf.prop_recursive(4, 24, 4, |inner| {
        let items = prop::collection::vec(inner.clone(), 0..4).prop_map(Tree::from);
        prop_oneof![items, any_object(inner)]
    });
    nested.boxed()
}

fn any_object(values: BoxedStrategy<Tree>) -> impl Strategy<Value = Tree> {
    let name = prop::sample::select(NAMES.to_vec()).prop_map(str::to_owned);
    prop::collection::btree_map(name, values, 0..7).prop_map(Tree::from_iter)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 32, ..ProptestConfig::default() })]

    /// Any request is either rejected or parsed. Every continuation request is valid, has the given terms, and keeps
    /// unrelated fields.
    #[test]
    fn any_request_is_rejected_or_has_valid_continuations(mut body in any_object(any_value()), so_far in ".{1,8}", stream: bool, path_stream: bool) {
        body["unknown"] = json!({"kept": 1.5});
        for list in ["messages", "contents", "input"] {
            if !body[list].is_array() {
                body[list] = json!([{"role": "user", "content": "Hi", "parts": [{"text": "Hi"}]}]);
            }
        }
        let bytes = body.to_string();
        for format in FORMATS {
            let address = Address { model: Some("m".to_owned()), stream: Some(path_stream), ..Address::default() };
            let Ok(request) = Request::parse(format, bytes.as_bytes(), &address) else { continue };
            prop_assert_eq!(request.body(), bytes.as_bytes());
            let terms = Terms { limit: 77, stream, include_usage: stream };
            let call = ToolCall { name: "f".to_owned(), arguments: so_far.clone(), ..ToolCall::default() };
            let call = Partial::ToolCall { call: &call, content_before: "x", calls_before: &[] };
            let text = Partial::Text(&so_far);
            let prefill = |so_far, tool| Ask::Prefill { so_far, variant: PrefillVariant::Plain, tool };
            for ask in [
                prefill(text, ToolPrefill::Hermes),
                prefill(call, ToolPrefill::Hermes),
                prefill(call, ToolPrefill::Calls),
                Ask::Prompt { so_far: text, prompt: "go on" },
                Ask::Prompt { so_far: call, prompt: "go on" },
                Ask::Again,
                Ask::Correction { wrong: text, prompt: "correct" },
                Ask::Correction { wrong: call, prompt: "correct" },
                Ask::Native { token: "t" },
            ] {
                let Some(asked) = request.continuation(&ask, terms) else { continue };
                prop_assert!(asked.unshown_bytes <= so_far.len());
                let tree: Tree = serde_json::from_slice(&asked.body).unwrap();
                prop_assert_eq!(&tree["unknown"], &body["unknown"]);
                let again = Request::parse(format, &asked.body, &address).unwrap();
                prop_assert_eq!(again.view().limit, Some(77), "{}: {}", format.name(), tree);
                prop_assert_eq!(again.view().choices, 1);
                if format.name() != "gemini" {
                    prop_assert_eq!(again.view().stream, stream);
                }
            }
            let _ = (request.tools(), request.echoes("x"), request.for_other_upstream(Some("other")));
        }
    }

    /// Any response is unchanged if it is not edited, and an edit takes effect.
    #[test]
    fn any_response_is_unchanged_without_an_edit(mut body in any_object(any_value()), text in ".{0,8}") {
        body["unknown"] = json!({"kept": 1.5});
        let bytes = body.to_string();
        for format in FORMATS {
            let request = request(format);
            let Ok(response) = request.response(bytes.as_bytes()) else { continue };
            let untouched = response.edit().finish();
            prop_assert_eq!(untouched, bytes.as_bytes());
            for choice in &response.reply().choices {
                let mut edit = response.edit();
                edit.set_text(choice.index, &text);
                edit.set_end(choice.index, ReportedEnd::Cut);
                edit.set_usage(&Usage { prompt: 1, completion: 2, total: 3, written: None, cached: Some(1), reasoning: None, ..Usage::default() });
                edit.set_endmark(&serde_json::value::to_raw_value(&1).unwrap());
                for call in &choice.tool_calls {
                    edit.set_arguments(choice.index, call.index, "{\"x\":1}");
                }
                let edited = edit.finish();
                let tree: Tree = serde_json::from_slice(&edited).unwrap();
                prop_assert_eq!((&tree["unknown"], &tree["endmark"]), (&body["unknown"], &json!(1)));
                request.response(&edited).unwrap();
            }
            let mut edit = response.edit();
            edit.add_calls(0, &[ToolCall { name: "f".to_owned(), arguments: "{}".to_owned(), ..ToolCall::default() }]);
            serde_json::from_slice::<Tree>(&edit.finish()).unwrap();
        }
    }

    /// For any stream, the content of its pieces is kept, and the client receives only JSON events.
    #[test]
    fn any_stream_keeps_its_content(events in prop::collection::vec(any_object(any_value()), 0..8), text in ".{1,8}") {
        for format in FORMATS {
            let request = request(format);
            let mut reader = request.stream(KEEP_BYTES);
            let mut writer = request.writer(KEEP_BYTES);
            let mut client = Vec::new();
            let mut reply_texts: Vec<(u32, String)> = Vec::new();
            for event in &events {
                let name = event["type"].as_str().unwrap_or("message");
                let frame = frames(&[&event_frame(name, event.to_string().as_bytes())]).0.remove(0);
                let event = reader.read_frame(&frame).unwrap();
                for delta in &event.pieces {
                    if let Piece::Text(text) = &delta.piece {
                        reply_texts.push((delta.choice, text.clone()));
                    }
                }
                if is_held(&event, writer.is_holding()) {
                    writer.hold(frame, &event);
                } else {
                    writer.pass(&frame, &event, &mut client);
                }
            }
            for choice in reader.received().choices().iter().filter(|choice| choice.can_continue()) {
                let texts = reply_texts.iter().filter(|(index, _)| *index == choice.index);
                prop_assert_eq!(&choice.text, &texts.map(|(_, text)| text.as_str()).collect::<String>());
            }
            let call = ToolCall { name: "f".to_owned(), arguments: "{}".to_owned(), ..ToolCall::default() };
            client.extend(writer.write_text(0, &text));
            client.extend(writer.write_arguments(0, &call, "x").unwrap_or_default());
            client.extend(writer.write_tool_call(0, &call));
            client.extend(writer.keep_alive());
            let ends = [ChoiceEnd { choice: 0, end: Some(ReportedEnd::ToolCalls), endmark: None, is_rewritten: false }];
            client.extend(writer.close(&StreamEnd { choices: &ends, usage: Some(Usage::default()), is_end_lost: false }));
            client.extend(writer.write_error(&StreamError { message: "cut", kind: "endmark_reply_cut", status: 502, endmark: None, choices: &[] }));
            let (frames, _) = frames(&[&client]);
            for frame in frames {
                if let Some(data) = frame.data.filter(|data| data != "[DONE]") {
                    serde_json::from_str::<Tree>(&data).unwrap();
                }
            }
        }
    }
}
