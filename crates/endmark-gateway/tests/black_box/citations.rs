//! Messages: citations apply to one text block, not to text that was requested later.

use serde_json::{Value, json};
use testkit::{Answer, ModelFormat, Script};

use crate::support::Endmark;
use crate::support::wire_replies::{End, ReplyPart, Wire};

const MESSAGES: Wire = Wire::Other(ModelFormat::Messages);

fn citation() -> Value {
    json!({"type": "char_location", "cited_text": "The harbour was quiet", "document_index": 0, "start_char_index": 0, "end_char_index": 21})
}

/// Returns a reply that is cut in a cited block.
fn cut_reply() -> Value {
    let mut whole = MESSAGES.whole_reply(&[], "max_tokens");
    whole["content"] = json!([
        {"type": "text", "text": "As it says: "},
        {"type": "text", "text": "the harbour was quiet", "citations": [citation()]},
    ]);
    whole
}

/// Returns the same reply as a stream. The citation follows the text, precedes it, or is part of the block's
/// start.
fn cut_stream(place: &str) -> Answer {
    let whole = cut_reply();
    let mut first_event = whole.clone();
    first_event["content"] = json!([]);
    first_event["stop_reason"] = Value::Null;
    let block = |at: usize| {
        let cited = json!({"type": "content_block_delta", "index": at, "delta": {"type": "citations_delta", "citation": citation()}});
        let text = json!({"type": "content_block_delta", "index": at,
            "delta": {"type": "text_delta", "text": whole["content"][at]["text"]}});
        let mut bare = json!({"type": "text", "text": ""});
        if at == 1 {
            bare["citations"] = if place == "with it" { json!([citation()]) } else { json!([]) };
        }
        let begins = json!({"type": "content_block_start", "index": at, "content_block": bare});
        let ends = json!({"type": "content_block_stop", "index": at});
        match place {
            "behind" if at == 1 => vec![begins, text, cited, ends],
            "before" if at == 1 => vec![begins, cited, text, ends],
            _ => vec![begins, text, ends],
        }
    };
    let events = [
        vec![json!({"type": "message_start", "message": first_event})],
        block(0),
        block(1),
        vec![
            json!({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 7}}),
            json!({"type": "message_stop"}),
        ],
    ];
    let frames = events
        .concat()
        .into_iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default()));
    Answer::sse(frames.collect::<Vec<_>>())
}

#[tokio::test]
async fn the_rest_of_a_cited_block_has_its_own_block() {
    let rest = MESSAGES.answer(&[ReplyPart::Text(" that morning.")], End::Turn, false);
    let endmark =
        Endmark::start_resuming(Script::new().then(Answer::json(200, &cut_reply())).default_answer(rest))
            .await;
    let (reply, _) = MESSAGES.ask(&endmark, &MESSAGES.request(false), false).await;
    let mut expected = cut_reply()["content"].clone();
    expected.as_array_mut().unwrap().push(json!({"type": "text", "text": " that morning."}));
    assert_eq!(reply.json()["content"], expected, "{}", reply.text());
}

#[tokio::test]
async fn the_rest_of_a_cited_streamed_block_has_its_own_block() {
    for place in ["behind", "before", "with it"] {
        let rest =
            MESSAGES.answer(&[ReplyPart::Text(" that"), ReplyPart::Text(" morning.")], End::Turn, true);
        let endmark =
            Endmark::start_resuming(Script::new().then(cut_stream(place)).default_answer(rest)).await;
        let (reply, heard) = MESSAGES.ask(&endmark, &MESSAGES.request(true), true).await;
        let what = format!("{place}: {}", reply.text());
        assert_eq!(heard.text, "As it says: the harbour was quiet that morning.", "{what}");
        let mut blocks = vec![String::new(); 4];
        let mut first_event = Vec::new();
        for event in reply.json_events() {
            let at = || usize::try_from(event["index"].as_u64().unwrap()).unwrap();
            if event["type"] == "content_block_start" {
                first_event.push(at());
            }
            if event["delta"]["type"] == "text_delta" {
                blocks[at()] += event["delta"]["text"].as_str().unwrap();
            }
        }
        assert_eq!(blocks, ["As it says: ", "the harbour was quiet", " that morning.", ""], "{what}");
        assert_eq!(first_event, [0, 1, 2], "{what}");
    }
}
