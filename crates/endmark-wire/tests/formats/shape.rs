//! Properties of a stream that client libraries require, in addition to those that this crate checks.

use serde_json::Value as Tree;

use crate::relay::frames;

/// Panics if a stream that was written to its end does not have its format's shape.
pub(crate) fn check(format: &str, bytes: &[u8]) {
    let (frames, _) = frames(&[bytes]);
    let mut events: Vec<Tree> = Vec::new();
    for frame in &frames {
        let Some(data) = frame.data.as_deref().filter(|data| *data != "[DONE]") else { continue };
        let event: Tree = serde_json::from_str(data).unwrap();
        if let Some(name) = &frame.event {
            // If a frame has an event name, its data has the same name as `type`.
            let kind = event["type"].as_str();
            assert!(kind.is_none_or(|kind| kind == name || name == "message"), "{name}: {event}");
        }
        events.push(event);
    }
    match format {
        "anthropic_messages" => message(&events),
        "openai_responses" => response(&events),
        "gemini" => check_only_data_lines(bytes),
        _ => {}
    }
}

/// Google's Python library parses any line that is not empty as part of an event, including comments.
fn check_only_data_lines(bytes: &[u8]) {
    for line in String::from_utf8_lossy(bytes).lines() {
        assert!(line.is_empty() || line.starts_with("data: "), "{line}");
    }
}

/// Each block ends before the next one begins, and the end of the message comes last.
fn message(events: &[Tree]) {
    let mut open: Option<u64> = None;
    let mut next = 0;
    // Events that an upstream sent before the beginning of the message are not checked.
    for event in events.iter().skip_while(|event| event["type"] != "message_start") {
        let index = event["index"].as_u64();
        match event["type"].as_str().unwrap() {
            "content_block_start" => {
                assert_eq!((open, index), (None, Some(next)), "{event}");
                (open, next) = (index, next + 1);
            }
            "content_block_delta" => assert_eq!(open, index, "{event}"),
            "content_block_stop" => {
                assert_eq!(open, index, "{event}");
                open = None;
            }
            "message_delta" => assert_eq!(open, None, "{event}"),
            _ => {}
        }
    }
    assert_eq!(events.last().unwrap()["type"], "message_stop");
}

/// Events are numbered without gaps, items are complete, and the final response contains all of them.
fn response(events: &[Tree]) {
    let numbers: Vec<u64> = events.iter().filter_map(|event| event["sequence_number"].as_u64()).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{numbers:?}");
    assert!(numbers.is_empty() || numbers.len() == events.len(), "{numbers:?}");
    let of = |kind: &str| events.iter().filter(move |event| event["type"] == kind).collect::<Vec<_>>();
    let added: Vec<&Tree> =
        of("response.output_item.added").iter().map(|event| &event["item"]["id"]).collect();
    let done: Vec<&Tree> = of("response.output_item.done").iter().map(|event| &event["item"]).collect();
    assert!(added.iter().all(|id| done.iter().any(|item| item["id"] == **id)), "{added:?} {done:?}");
    let response = &events.last().unwrap()["response"];
    let output: Vec<&Tree> = response["output"].as_array().unwrap().iter().collect();
    assert_eq!(output, done);
    let of_text = |item: &&Tree| item["type"] == "message" || item["type"] == "function_call";
    for item in done.into_iter().filter(of_text) {
        let deltas: String = events
            .iter()
            .filter(|event| event["item_id"] == item["id"] && !event["delta"].is_null())
            .filter(|event| !event["type"].as_str().unwrap().contains("reasoning"))
            .map(|event| event["delta"].as_str().unwrap())
            .collect();
        let whole = item["arguments"].as_str().or_else(|| item["content"][0]["text"].as_str());
        assert!(deltas.is_empty() || whole == Some(deltas.as_str()), "{deltas:?} {item}");
    }
}
