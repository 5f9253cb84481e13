//! Builds the events of a stream with several calls, in each of the four formats.

use serde_json::{Value, json};
use testkit::ModelFormat;

use crate::support::wire_replies::{End, Wire};

/// The order of the pieces of the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// The first call arrives completely before the second begins.
    Sequential,
    /// All calls begin, and then their pieces alternate.
    Alternating,
    /// All calls begin. Then the arguments of each call arrive completely, from the last call to the first.
    LastFirst,
}

impl Layout {
    pub(super) const ALL: [Self; 3] = [Self::Sequential, Self::Alternating, Self::LastFirst];

    /// Returns the order of the steps, each with the number of its call.
    fn order(self, calls: &[Vec<String>]) -> Vec<(usize, Step)> {
        let pieces = |call: usize| (0..calls[call].len()).map(move |at| (call, Step::Piece(at)));
        let (begins, ends) = (|call| (call, Step::Begins), |call| (call, Step::Ends));
        let all = 0..calls.len();
        match self {
            Self::Sequential => {
                let whole = |call| [begins(call)].into_iter().chain(pieces(call)).chain([ends(call)]);
                all.flat_map(whole).collect()
            }
            Self::Alternating => {
                let longest = calls.iter().map(Vec::len).max().unwrap_or_default();
                let pieces = (0..longest).flat_map(|at| {
                    let has_piece = move |call: &usize| at < calls[*call].len();
                    (0..calls.len()).filter(has_piece).map(move |call| (call, Step::Piece(at)))
                });
                all.clone().map(begins).chain(pieces).chain(all.map(ends)).collect()
            }
            Self::LastFirst => {
                let whole = |call| pieces(call).chain([ends(call)]);
                all.clone().map(begins).chain(all.rev().flat_map(whole)).collect()
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Begins,
    Piece(usize),
    Ends,
}

/// Returns the frames of a stream in which the server ends each of these calls. Without `end` the stream
/// stops after the last call.
pub(super) fn frames(wire: Wire, layout: Layout, calls: &[(&str, &str)], end: Option<End>) -> Vec<String> {
    // Split into pieces of five bytes, so that events do not end at token boundaries.
    let pieces = |(_, arguments): &(&str, &str)| {
        let pieces = arguments.as_bytes().chunks(5);
        pieces.map(|piece| String::from_utf8_lossy(piece).into_owned()).collect::<Vec<_>>()
    };
    let pieces: Vec<Vec<String>> = calls.iter().map(pieces).collect();
    let order = layout.order(&pieces);
    let word = end.map(|end| wire.finish_reason(end));
    let events: Vec<Value> = match wire {
        Wire::Chat => chat(&order, calls, &pieces, word),
        Wire::Other(ModelFormat::Responses) => responses(&order, calls, &pieces, word),
        Wire::Other(ModelFormat::Messages) => messages(&order, calls, &pieces, word),
        Wire::Other(ModelFormat::Gemini) => gemini(layout, calls),
    };
    let named = |event: &Value| match event["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {event}\n\n"),
        None => format!("data: {event}\n\n"),
    };
    let done = (wire == Wire::Chat && end.is_some()).then(|| "data: [DONE]\n\n".to_owned());
    events.iter().map(named).chain(done).collect()
}

type StepOrder = [(usize, Step)];

type Calls<'a> = [(&'a str, &'a str)];

fn chat(order: &StepOrder, calls: &Calls<'_>, pieces: &[Vec<String>], word: Option<&str>) -> Vec<Value> {
    let chunk = |delta: Value, finish: Option<&str>| {
        json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "scripted",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    };
    let mut events = Vec::new();
    for (call, step) in order {
        let piece = match step {
            Step::Begins => json!({"index": call, "id": format!("call_{call}"), "type": "function",
                "function": {"name": calls[*call].0, "arguments": ""}}),
            Step::Piece(at) => json!({"index": call, "function": {"arguments": pieces[*call][*at]}}),
            Step::Ends => continue,
        };
        events.push(chunk(json!({"tool_calls": [piece]}), None));
    }
    events.extend(word.map(|word| chunk(json!({}), Some(word))));
    events
}

fn responses(order: &StepOrder, calls: &Calls<'_>, pieces: &[Vec<String>], word: Option<&str>) -> Vec<Value> {
    let is_cut = word == Some("incomplete");
    // If the limit is reached, the provider marks only the last item as incomplete, however many are cut.
    let status = |call: usize| if is_cut && call + 1 == calls.len() { "incomplete" } else { "completed" };
    let item = |call: usize, status: &str, arguments: &str| {
        json!({"id": format!("fc_{call}"), "type": "function_call", "status": status,
            "call_id": format!("call_{call}"), "name": calls[call].0, "arguments": arguments})
    };
    let response = |status: &str, output: &[Value]| {
        json!({"id": "resp_1", "object": "response", "created_at": 1, "status": status, "model": "scripted",
            "error": null, "output": output,
            "incomplete_details": is_cut.then(|| json!({"reason": "max_output_tokens"}))})
    };
    let mut events = vec![json!({"type": "response.created", "response": response("in_progress", &[])})];
    for (call, step) in order {
        let place = |kind: &str| json!({"type": kind, "output_index": call, "item_id": format!("fc_{call}")});
        let mut event;
        match step {
            Step::Begins => {
                event = place("response.output_item.added");
                event["item"] = item(*call, "in_progress", "");
            }
            Step::Piece(at) => {
                event = place("response.function_call_arguments.delta");
                event["delta"] = json!(pieces[*call][*at]);
            }
            Step::Ends => {
                event = place("response.function_call_arguments.done");
                event["arguments"] = json!(calls[*call].1);
                events.push(event);
                event = place("response.output_item.done");
                event["item"] = item(*call, status(*call), calls[*call].1);
            }
        }
        events.push(event);
    }
    let output: Vec<Value> = (0..calls.len()).map(|call| item(call, status(call), calls[call].1)).collect();
    let ended = |word: &str| json!({"type": format!("response.{word}"), "response": response(word, &output)});
    events.extend(word.map(ended));
    events
}

fn messages(order: &StepOrder, calls: &Calls<'_>, pieces: &[Vec<String>], word: Option<&str>) -> Vec<Value> {
    let mut events = vec![json!({"type": "message_start", "message": {"id": "msg_1", "type": "message",
        "role": "assistant", "model": "scripted", "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": 5, "output_tokens": 1}}})];
    for (call, step) in order {
        events.push(match step {
            Step::Begins => json!({"type": "content_block_start", "index": call, "content_block":
                {"type": "tool_use", "id": format!("toolu_{call}"), "name": calls[*call].0, "input": {}}}),
            Step::Piece(at) => json!({"type": "content_block_delta", "index": call, "delta":
                {"type": "input_json_delta", "partial_json": pieces[*call][*at]}}),
            Step::Ends => json!({"type": "content_block_stop", "index": call}),
        });
    }
    if let Some(word) = word {
        events.push(json!({"type": "message_delta", "delta": {"stop_reason": word, "stop_sequence": null},
            "usage": {"output_tokens": 7}}));
        events.push(json!({"type": "message_stop"}));
    }
    events
}

/// Returns two calls, in one event or in two. In this format they are always complete.
fn gemini(layout: Layout, calls: &Calls<'_>) -> Vec<Value> {
    let part = |(name, arguments): (&str, &str)| json!({"functionCall": {"name": name, "args": serde_json::from_str::<Value>(arguments).unwrap()}});
    let chunk = |parts: Value, finish: Option<&str>| {
        let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
        if let Some(finish) = finish {
            candidate["finishReason"] = json!(finish);
        }
        json!({"candidates": [candidate], "modelVersion": "scripted", "responseId": "r1"})
    };
    let (first, second) = (part(calls[0]), part(calls[1]));
    match layout {
        Layout::Sequential => {
            vec![
                chunk(json!([first]), None),
                chunk(json!([second]), None),
                chunk(json!([{"text": ""}]), Some("STOP")),
            ]
        }
        Layout::Alternating => {
            vec![chunk(json!([first, second]), None), chunk(json!([{"text": ""}]), Some("STOP"))]
        }
        Layout::LastFirst => vec![chunk(json!([first]), None), chunk(json!([second]), Some("STOP"))],
    }
}
