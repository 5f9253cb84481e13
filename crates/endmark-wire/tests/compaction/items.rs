//! Items of Responses that refer to another item, and outputs that are not plain text.

use std::collections::HashSet;

use endmark_context::compact::Policy;
use serde_json::{Value, json};

use super::{check, compact_body, count};

fn long_message(role: &str, number: usize) -> Value {
    json!({"role": role, "content": format!("The {role} speaks of basin {number}. ").repeat(12)})
}

/// Returns the call and the output of each type, with this text.
fn calls(text: &str) -> [(Value, Value); 4] {
    [
        (
            json!({"type": "apply_patch_call", "call_id": "c", "operation": {"type": "delete_file", "path": "a"}}),
            json!({"type": "apply_patch_call_output", "call_id": "c", "status": "completed", "output": text}),
        ),
        (
            json!({"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}}),
            json!({"type": "shell_call_output", "call_id": "c", "output":
                [{"stdout": text, "stderr": "", "outcome": {"type": "exit", "exit_code": 1}}]}),
        ),
        (
            json!({"type": "local_shell_call", "call_id": "c", "action": {"type": "exec", "command": ["ls"]}}),
            json!({"type": "local_shell_call_output", "id": "c", "output": text}),
        ),
        (
            json!({"type": "computer_call", "call_id": "c", "action": {"type": "screenshot"}}),
            json!({"type": "computer_call_output", "call_id": "c", "output":
                {"type": "computer_screenshot", "note": text, "file_id": "f"}}),
        ),
    ]
}

/// A large output is shortened if its text can be replaced. Otherwise it is dropped with its call.
#[test]
fn a_large_last_output_is_shortened_or_dropped() {
    let format = endmark_wire::format::find_by_name("openai_responses").unwrap();
    let policy =
        Policy { trigger_tokens: 1_500, budget_tokens: 2_000, keep_turns: 5, ..Policy::window(count) };
    for (call, output) in calls(&"A line of output.\n".repeat(3_000)) {
        let mut items = vec![long_message("user", 0)];
        items.extend(
            (1..9).flat_map(|number| [long_message("assistant", number), long_message("user", number)]),
        );
        items.extend([call, output.clone(), json!({"role": "user", "content": "go on"})]);
        let body = serde_json::to_vec(&json!({"input": items})).unwrap();
        let (made, edited) = compact_body(format, &body, &policy);
        let edited: Value = serde_json::from_slice(&edited).unwrap();
        let edited = edited["input"].as_array().unwrap();
        assert!(!made.edits.is_empty(), "{}", output["type"]);
        if output["type"] == "computer_call_output" {
            // It does not fit unchanged, so it is dropped with its call.
            assert!(edited.iter().all(|item| item["call_id"].is_null()), "{}", edited.len());
            continue;
        }
        let kept = &edited[edited.len() - 2];
        assert!(kept.to_string().len() < 8_000, "{}", output["type"]);
        assert_eq!(kept["output"].is_string(), output["output"].is_string());
        if let Some(commands) = kept["output"].as_array() {
            assert_eq!(commands[0]["outcome"], output["output"][0]["outcome"]);
            assert!(commands[0]["stdout"].as_str().unwrap().contains("A line of output."));
        }
        // The rules do not cover an output that refers to its call by another field than `call_id`.
        if output["call_id"].is_string() {
            check(format, &body, &policy);
        }
    }
}

/// Returns a request, either as an item or as a reference to one, and the item that answers it and refers to
/// it by id.
fn pair(id: usize, approval: bool, by_reference: bool) -> [Value; 2] {
    let (item, call) = (format!("{}_{id}", if approval { "mcpr" } else { "ts" }), format!("call_{id}"));
    let request = match (approval, by_reference) {
        (_, true) => json!({"type": "item_reference", "id": item}),
        (true, _) => {
            json!({"type": "mcp_approval_request", "id": item, "name": "t", "server_label": "s", "arguments": "{}"})
        }
        (false, _) => {
            json!({"type": "tool_search_call", "id": item, "call_id": call, "execution": "client", "arguments": {}})
        }
    };
    let answer = if approval {
        json!({"type": "mcp_approval_response", "approval_request_id": item, "approve": true})
    } else {
        json!({"type": "tool_search_output", "call_id": call, "execution": "client", "tools": [{"type": "function", "name": "word ".repeat(40)}]})
    };
    [request, answer]
}

#[test]
fn references_are_kept_or_dropped_with_their_item() {
    let format = endmark_wire::format::find_by_name("openai_responses").unwrap();
    for (approval, by_reference) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut items = vec![long_message("user", 0)];
        for number in 1..30 {
            items.extend(pair(number, approval || number % 3 == 0, by_reference));
            if number % 4 == 0 {
                items.extend([long_message("assistant", number), long_message("user", number)]);
            }
        }
        items.push(long_message("user", 30));
        let body = serde_json::to_vec(&items).unwrap();
        let mut compactions = 0;
        for keep_share in [0.2, 0.3, 0.4, 0.5, 0.6, 0.7] {
            let policy = Policy { keep_share: Some(keep_share), ..Policy::window(count) };
            let (made, edited) = compact_body(format, &body, &policy);
            compactions += u64::from(!made.edits.is_empty());
            let edited: Vec<Value> = serde_json::from_slice(&edited).unwrap();
            let number = |id: &Value| id.as_str().and_then(|id| id.rsplit('_').next()).map(str::to_owned);
            let requests: HashSet<_> = edited.iter().filter_map(|item| number(&item["id"])).collect();
            let answers: HashSet<_> = edited
                .iter()
                .filter(|item| {
                    item["type"] == "mcp_approval_response" || item["type"] == "tool_search_output"
                })
                .filter_map(|item| number(&item["approval_request_id"]).or_else(|| number(&item["call_id"])))
                .collect();
            assert_eq!(answers, requests, "{approval} {by_reference} {keep_share}");
        }
        assert!(compactions > 3, "{approval} {by_reference}: {compactions}");
    }
}

/// A call of an MCP server that needed an approval refers to the approval request.
#[test]
fn a_call_is_kept_or_dropped_with_its_approval() {
    let format = endmark_wire::format::find_by_name("openai_responses").unwrap();
    for by_reference in [false, true] {
        let mut items = vec![long_message("user", 0)];
        for number in 1..30 {
            items.extend(pair(number, true, by_reference));
            items.push(json!({"type": "mcp_call", "id": format!("mcp_{number}"), "server_label": "s", "name": "t",
                "approval_request_id": format!("mcpr_{number}"), "arguments": "{}", "output": "word ".repeat(40)}));
            items.extend([long_message("assistant", number), long_message("user", number)]);
        }
        let body = serde_json::to_vec(&items).unwrap();
        let mut compactions = 0;
        for keep_share in [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8] {
            let policy = Policy { keep_share: Some(keep_share), ..Policy::window(count) };
            let (made, edited) = compact_body(format, &body, &policy);
            compactions += u64::from(!made.edits.is_empty());
            let edited: Vec<Value> = serde_json::from_slice(&edited).unwrap();
            let requests: HashSet<_> = edited
                .iter()
                .filter_map(|item| item["id"].as_str())
                .filter(|id| id.starts_with("mcpr_"))
                .collect();
            let named = |kind: &str| -> HashSet<_> {
                let of_kind = edited.iter().filter(|item| item["type"] == kind);
                of_kind.filter_map(|item| item["approval_request_id"].as_str()).collect()
            };
            assert_eq!(named("mcp_call"), requests, "{by_reference} {keep_share}");
            assert_eq!(named("mcp_approval_response"), requests, "{by_reference} {keep_share}");
        }
        assert!(compactions > 3, "{by_reference}: {compactions}");
    }
}
