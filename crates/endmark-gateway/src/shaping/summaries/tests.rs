use std::cell::Cell;

use endmark_wire::format::find;

use super::*;

thread_local! {
    static COUNTED: Cell<usize> = const { Cell::new(0) };
}

fn count(text: &str) -> u64 {
    COUNTED.with(|counted| counted.set(counted.get() + 1));
    text.len() as u64 / 4
}

/// Returns a request with `rounds` rounds of messages, whose newest message has a marker for the provider's
/// cache.
fn request(rounds: usize) -> Request {
    let message = |role: &str, text: &str, mark: &str| {
        format!(r#"{{"role":"{role}","content":[{{"type":"text","text":"{text}"{mark}}}]}}"#)
    };
    let mut turns: Vec<String> = (0..rounds)
        .flat_map(|round| [("user", "asks"), ("assistant", "says")].map(|(role, verb)| (round, role, verb)))
        .map(|(round, role, verb)| message(role, &format!("The {role} {verb} {round}"), ""))
        .collect();
    turns.push(message("user", &format!("Go on with {rounds}"), r#","cache_control":{"type":"ephemeral"}"#));
    let body = format!(r#"{{"model":"m","max_tokens":9,"messages":[{}]}}"#, turns.join(","));
    let found = find("/v1/messages", None).unwrap();
    Request::parse(found.format, body.as_bytes(), &found.address).unwrap()
}

/// Returns the number of texts that are counted for a request far below all limits.
fn count_calls(counted: &TokenCounts, request: &Request) -> usize {
    COUNTED.with(|counted| counted.set(0));
    let policies = [Policy::window(count), Policy::emergency(count)];
    assert!(
        condense_further(
            "request",
            request,
            None,
            &policies,
            counted,
            &Narrator::Own(None),
            &mut HashMap::new()
        )
        .is_none()
    );
    COUNTED.with(Cell::get)
}

#[test]
fn each_request_of_a_growing_conversation_counts_only_new_turns() {
    let counted = TokenCounts::default();
    let first = request(30);
    // All messages, and the text before and after them.
    assert_eq!(count_calls(&counted, &first), 61 + 2);
    assert_eq!(count_calls(&counted, &first), 0);
    // Three messages were added, so the marker is in another message now.
    assert_eq!(count_calls(&counted, &request(31)), 3);
}
