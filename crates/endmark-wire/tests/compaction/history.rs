//! Generates realistic agent conversations from a seed. They contain parallel calls, crashed tools, a user who types
//! in the middle of a turn, system messages at any position, thinking, images, the provider's own items and unknown
//! parts.

use serde_json::{Value, json};

/// An event of a conversation, in any format.
enum Event {
    User(String, bool),
    System(String),
    Assistant {
        thought: Option<String>,
        text: Option<String>,
        calls: Vec<Call>,
    },
    Results(Vec<(Call, String)>),
    /// An item with an action of the server.
    Server,
    Unknown,
}

#[derive(Clone)]
struct Call {
    id: String,
    name: &'static str,
    arguments: Value,
}

/// Pseudo-random numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % bound
    }

    fn one_chance_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    fn words(&mut self, most: u64) -> String {
        const WORDS: [&str; 16] = [
            "order",
            "ship",
            "the",
            "src/main.rs",
            "failed",
            "A-1042",
            "must",
            "2024-05-20",
            "é",
            "→",
            "\"quoted\"",
            "https://example.com/x",
            "- [ ] test",
            "[Endmark: 3",
            "error:",
            "\n",
        ];
        let words: Vec<&str> =
            (0..=self.below(most)).map(|_| WORDS[usize::try_from(self.below(16)).unwrap()]).collect();
        words.join(" ")
    }
}

fn events(seed: u64) -> Vec<Event> {
    let mut numbers = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut events = Vec::new();
    if numbers.one_chance_in(3) {
        events.push(Event::System(numbers.words(30)));
    }
    events.push(Event::User(format!("Task {seed}: {}", numbers.words(20)), numbers.one_chance_in(6)));
    let mut late: Vec<(Call, String)> = Vec::new();
    for number in 0..numbers.below(24) + 2 {
        match numbers.below(12) {
            0 => events.push(Event::User(numbers.words(12), numbers.one_chance_in(5))),
            1 => events.push(Event::System(numbers.words(20))),
            2 if numbers.one_chance_in(3) => events.push(Event::Server),
            3 if numbers.one_chance_in(3) => events.push(Event::Unknown),
            _ => add_assistant_turn(&mut numbers, number, &mut late, &mut events),
        }
        if numbers.one_chance_in(6) && !late.is_empty() {
            events.push(Event::Results(vec![late.remove(0)]));
        }
    }
    if numbers.one_chance_in(2) {
        events.push(Event::User(numbers.words(10), false));
    }
    events
}

/// Adds a turn of the assistant, possibly with calls and their results.
fn add_assistant_turn(
    numbers: &mut Random,
    number: u64,
    late: &mut Vec<(Call, String)>,
    events: &mut Vec<Event>,
) {
    let calls: Vec<Call> = (0..numbers.below(4))
        .map(|at| Call {
            // Some agents reuse ids.
            id: if numbers.one_chance_in(8) { "call_same".to_owned() } else { format!("call_{number}_{at}") },
            name: ["read", "run", "search"][usize::try_from(numbers.below(3)).unwrap()],
            arguments: json!({"path": format!("src/f{number}.rs"), "note": numbers.words(4)}),
        })
        .collect();
    let text = (calls.is_empty() || numbers.one_chance_in(2)).then(|| numbers.words(30));
    let thought = numbers.one_chance_in(4).then(|| numbers.words(10));
    events.push(Event::Assistant { thought, text, calls: calls.clone() });
    let mut results = Vec::new();
    for call in calls {
        let output = numbers.words(120);
        match numbers.below(10) {
            // The tool crashed, so there is no result.
            0 => {}
            1 => late.push((call, output)),
            _ => results.push((call, output)),
        }
    }
    if numbers.one_chance_in(4) {
        results.reverse();
    }
    if results.len() > 1 && numbers.one_chance_in(5) {
        let second = results.split_off(1);
        events.push(Event::Results(results));
        let typed = numbers.words(5);
        events.push(if numbers.one_chance_in(2) { Event::User(typed, false) } else { Event::System(typed) });
        results = second;
    }
    if !results.is_empty() {
        events.push(Event::Results(results));
    }
}

/// Returns a request with a generated conversation.
pub(crate) fn body(format: &str, seed: u64) -> String {
    let turns: Vec<String> =
        events(seed).iter().enumerate().flat_map(|(at, event)| turns(format, event, at)).collect();
    let field = match format {
        "openai_responses" => "input",
        "gemini" => "contents",
        _ => "messages",
    };
    format!("{{\"model\": \"m\",  \"{field}\" : [ {} ], \"n\":1.0}}", turns.join(" , "))
}

/// Returns a user message.
pub(crate) fn user(format: &str, text: &str) -> String {
    turns(format, &Event::User(text.to_owned(), false), 0).remove(0)
}

/// Returns these events as turns of the format.
fn step_turns(format: &str, events: &[Event]) -> Vec<String> {
    events.iter().enumerate().flat_map(|(at, event)| turns(format, event, at)).collect()
}

/// Returns one round of an agent's work: it inspects a shelf that never changes, and moves an item.
pub(crate) fn step(format: &str, round: u64) -> Vec<String> {
    let call = Call {
        id: format!("call_{round}"),
        name: "move",
        arguments: if round == 0 {
            json!({})
        } else {
            json!({"shelf": "shelf-81c2", "box": format!("box {round}")})
        },
    };
    let output =
        json!({"shelf": "shelf-81c2", "box": format!("box-{round}0{round}"), "log": "moved ".repeat(30)});
    step_turns(
        format,
        &[
            Event::Assistant {
                thought: None,
                text: Some(format!("Now box {round}.")),
                calls: vec![call.clone()],
            },
            Event::Results(vec![(call, output.to_string())]),
        ],
    )
}

fn turns(format: &str, event: &Event, at: usize) -> Vec<String> {
    let turns: Vec<Value> = match format {
        "openai_chat" => chat(event),
        "openai_responses" => responses(event, at),
        "anthropic_messages" => messages(event),
        "gemini" => gemini(event),
        other => panic!("no format {other}"),
    };
    turns.iter().map(Value::to_string).collect()
}

fn chat(event: &Event) -> Vec<Value> {
    match event {
        Event::User(text, false) => vec![json!({"role": "user", "content": text})],
        Event::User(text, true) => vec![json!({"role": "user", "content": [
            {"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]})],
        Event::System(text) => vec![json!({"role": "system", "content": text})],
        Event::Assistant { thought, text, calls } => {
            let calls: Vec<Value> = calls
                .iter()
                .map(|call| {
                    json!({"id": call.id, "type": "function",
                "function": {"name": call.name, "arguments": call.arguments.to_string()}})
                })
                .collect();
            let mut message = json!({"role": "assistant", "content": text});
            if !calls.is_empty() {
                message["tool_calls"] = json!(calls);
            }
            if let Some(thought) = thought {
                message["reasoning_content"] = json!(thought);
            }
            vec![message]
        }
        Event::Results(results) => results
            .iter()
            .map(|(call, text)| json!({"role": "tool", "tool_call_id": call.id, "content": text}))
            .collect(),
        Event::Server => vec![json!({"role": "assistant", "content": "heard", "audio": {"id": "a"}})],
        Event::Unknown => vec![json!({"role": "user", "content": [{"type": "odd", "x": 1}]})],
    }
}

fn responses(event: &Event, at: usize) -> Vec<Value> {
    match event {
        Event::User(text, has_image) => {
            let mut content = vec![json!({"type": "input_text", "text": text})];
            if *has_image {
                content.push(json!({"type": "input_image", "image_url": "data:image/png;base64,AAAA"}));
            }
            vec![json!({"role": "user", "content": content})]
        }
        Event::System(text) => vec![json!({"type": "message", "role": "developer", "content": text})],
        Event::Assistant { thought, text, calls } => {
            let mut items = Vec::new();
            // Servers refuse reasoning that is not followed by an item.
            let leads_somewhere = text.is_some() || !calls.is_empty();
            items.extend(thought.as_ref().filter(|_| leads_somewhere).map(|thought| json!({"type": "reasoning",
                "id": format!("rs_{at}"), "summary": [{"type": "summary_text", "text": thought}], "encrypted_content": "c2Vh"})));
            items.extend(text.as_ref().map(|text| {
                json!({"type": "message", "role": "assistant", "id": format!("msg_{at}"), "status": "completed",
                "content": [{"type": "output_text", "text": text, "annotations": []}]})
            }));
            items.extend(calls.iter().map(|call| {
                json!({"type": "function_call", "call_id": call.id, "name": call.name,
                "arguments": call.arguments.to_string()})
            }));
            items
        }
        Event::Results(results) => results
            .iter()
            .map(|(call, text)| json!({"type": "function_call_output", "call_id": call.id, "output": text}))
            .collect(),
        Event::Server => {
            vec![json!({"type": "compaction", "id": format!("cmp_{at}"), "encrypted_content": "c2VhbGVk"})]
        }
        Event::Unknown => vec![
            json!({"type": "novelty", "x": 1.5}),
            json!({"type": "computer_call", "call_id": format!("scr_{at}"), "action": {"type": "wait"}}),
        ],
    }
}

fn messages(event: &Event) -> Vec<Value> {
    match event {
        Event::User(text, false) => vec![json!({"role": "user", "content": text})],
        Event::User(text, true) => vec![json!({"role": "user", "content": [{"type": "text", "text": text},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}]})],
        Event::System(text) => vec![json!({"role": "system", "content": text})],
        Event::Assistant { thought, text, calls } => {
            let mut content = Vec::new();
            content.extend(
                thought
                    .as_ref()
                    .map(|thought| json!({"type": "thinking", "thinking": thought, "signature": "c2ln"})),
            );
            content.extend(text.as_ref().map(|text| json!({"type": "text", "text": text})));
            content.extend(calls.iter().map(
                |call| json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}),
            ));
            vec![json!({"role": "assistant", "content": content})]
        }
        Event::Results(results) => {
            let mut content: Vec<Value> = results
                .iter()
                .map(|(call, text)| {
                    json!({"type": "tool_result",
                "tool_use_id": call.id, "content": text, "is_error": text.starts_with("failed")})
                })
                .collect();
            if results.len() % 2 == 1 && results[0].1.len() % 5 == 0 {
                content.push(json!({"type": "text", "text": "and this I typed meanwhile"}));
            }
            vec![json!({"role": "user", "content": content})]
        }
        Event::Server => {
            vec![json!({"role": "assistant", "content": [{"type": "redacted_thinking", "data": "AA"},
            {"type": "compaction", "content": null, "encrypted_content": "c2Vh"}]})]
        }
        Event::Unknown => vec![json!({"role": "assistant", "content": [{"type": "odd", "x": 1}]})],
    }
}

fn gemini(event: &Event) -> Vec<Value> {
    match event {
        Event::User(text, has_image) => {
            let mut parts = vec![json!({"text": text})];
            if *has_image {
                parts.push(json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}}));
            }
            vec![json!({"role": "user", "parts": parts})]
        }
        // Gemini has no system messages in the middle of a conversation, so they become user messages.
        Event::System(text) => vec![json!({"role": "user", "parts": [{"text": text}]})],
        Event::Assistant { thought, text, calls } => {
            let mut parts = Vec::new();
            parts.extend(thought.as_ref().map(|thought| json!({"text": thought, "thought": true})));
            parts.extend(text.as_ref().map(|text| json!({"text": text})));
            parts.extend(calls.iter().map(|call| {
                json!({"functionCall": {"name": call.name, "args": call.arguments},
                "thoughtSignature": "c2ln"})
            }));
            vec![json!({"role": "model", "parts": parts})]
        }
        Event::Results(results) => vec![json!({"role": "user", "parts": results.iter().map(|(call, text)|
            json!({"functionResponse": {"name": call.name, "response": {"result": text}}})).collect::<Vec<_>>()})],
        Event::Server => vec![json!({"role": "model", "parts": [{"executableCode": {"code": "1"}},
            {"codeExecutionResult": {"output": "1"}}]})],
        Event::Unknown => vec![json!({"role": "user", "parts": [{"odd": 1}]})],
    }
}
