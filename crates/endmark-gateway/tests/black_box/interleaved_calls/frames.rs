//! The events of a stream with two calls, in each of the four formats.

use serde_json::{Value, json};
use testkit::Dialect;

use crate::support::spoken::Wire;

/// How the pieces of the calls follow one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// All of the first call comes before the second begins.
    InTurn,
    /// Both begin, and then their pieces alternate.
    Alternating,
    /// The second begins, and ends, before the arguments of the first have come.
    SecondFirst,
}

impl Layout {
    pub(super) const ALL: [Self; 3] = [Self::InTurn, Self::Alternating, Self::SecondFirst];

    /// What comes after what: a call begins, a piece of it comes, or it ends.
    fn order(self, calls: [&[String]; 2]) -> Vec<(usize, Step)> {
        let pieces = |call: usize| (0..calls[call].len()).map(move |at| (call, Step::Piece(at)));
        let (begins, ends) = (|call| (call, Step::Begins), |call| (call, Step::Ends));
        match self {
            Self::InTurn => {
                let whole = |call| [begins(call)].into_iter().chain(pieces(call)).chain([ends(call)]);
                whole(0).chain(whole(1)).collect()
            }
            Self::Alternating => {
                let mut order = vec![begins(0), begins(1)];
                let longest = calls[0].len().max(calls[1].len());
                for at in 0..longest {
                    order.extend(
                        (0..2).filter(|call| at < calls[*call].len()).map(|call| (call, Step::Piece(at))),
                    );
                }
                order.extend([ends(0), ends(1)]);
                order
            }
            Self::SecondFirst => {
                let mut order = vec![begins(0), begins(1)];
                order.extend(pieces(1).chain([ends(1)]).chain(pieces(0)).chain([ends(0)]));
                order
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

/// The frames of a whole stream with these calls.
pub(super) fn frames(wire: Wire, layout: Layout, calls: [(&str, &str); 2]) -> Vec<String> {
    // In odd pieces, so that no format's events meet the ends of tokens.
    let pieces = calls.map(|(_, arguments)| {
        arguments
            .as_bytes()
            .chunks(5)
            .map(|piece| String::from_utf8_lossy(piece).into_owned())
            .collect::<Vec<_>>()
    });
    let order = layout.order([&pieces[0], &pieces[1]]);
    let events: Vec<Value> = match wire {
        Wire::Chat => chat(&order, calls, &pieces),
        Wire::Other(Dialect::Responses) => responses(&order, calls, &pieces),
        Wire::Other(Dialect::Messages) => messages(&order, calls, &pieces),
        Wire::Other(Dialect::Gemini) => gemini(layout, calls),
    };
    let named = |event: &Value| match event["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {event}\n\n"),
        None => format!("data: {event}\n\n"),
    };
    let done = (wire == Wire::Chat).then(|| "data: [DONE]\n\n".to_owned());
    events.iter().map(named).chain(done).collect()
}

type Order = [(usize, Step)];

fn chat(order: &Order, calls: [(&str, &str); 2], pieces: &[Vec<String>; 2]) -> Vec<Value> {
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
    events.push(chunk(json!({}), Some("tool_calls")));
    events
}

fn responses(order: &Order, calls: [(&str, &str); 2], pieces: &[Vec<String>; 2]) -> Vec<Value> {
    let item = |call: usize, status: &str, arguments: &str| {
        json!({"id": format!("fc_{call}"), "type": "function_call", "status": status,
            "call_id": format!("call_{call}"), "name": calls[call].0, "arguments": arguments})
    };
    let response = |status: &str, output: &[Value]| {
        json!({"id": "resp_1", "object": "response", "created_at": 1, "status": status, "model": "scripted",
            "error": null, "output": output, "incomplete_details": null})
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
                event["item"] = item(*call, "completed", calls[*call].1);
            }
        }
        events.push(event);
    }
    let output = [0, 1].map(|call| item(call, "completed", calls[call].1));
    events.push(json!({"type": "response.completed", "response": response("completed", &output)}));
    events
}

fn messages(order: &Order, calls: [(&str, &str); 2], pieces: &[Vec<String>; 2]) -> Vec<Value> {
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
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null},
        "usage": {"output_tokens": 7}}));
    events.push(json!({"type": "message_stop"}));
    events
}

/// Calls come whole here, in one event or in two.
fn gemini(layout: Layout, calls: [(&str, &str); 2]) -> Vec<Value> {
    let part = |(name, arguments): (&str, &str)| json!({"functionCall": {"name": name, "args": serde_json::from_str::<Value>(arguments).unwrap()}});
    let chunk = |parts: Value, finish: Option<&str>| {
        let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
        if let Some(finish) = finish {
            candidate["finishReason"] = json!(finish);
        }
        json!({"candidates": [candidate], "modelVersion": "scripted", "responseId": "r1"})
    };
    let [first, second] = calls.map(part);
    match layout {
        Layout::InTurn => {
            vec![
                chunk(json!([first]), None),
                chunk(json!([second]), None),
                chunk(json!([{"text": ""}]), Some("STOP")),
            ]
        }
        Layout::Alternating => {
            vec![chunk(json!([first, second]), None), chunk(json!([{"text": ""}]), Some("STOP"))]
        }
        Layout::SecondFirst => vec![chunk(json!([first]), None), chunk(json!([second]), Some("STOP"))],
    }
}
