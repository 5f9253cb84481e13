//! Gemini: signatures of thoughts, and texts that consist of several parts.

use crate::support::Endmark;
use serde_json::{Value, json};
use testkit::{Answer, Reply, Request, Script};

fn chunk(parts: &Value, finish: Option<&str>) -> Value {
    let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
    if let Some(finish) = finish {
        candidate["finishReason"] = json!(finish);
    }
    json!({"candidates": [candidate], "modelVersion": "m", "responseId": "r",
        "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 7, "totalTokenCount": 12}})
}

fn answer(stream: bool, parts: &Value, finish: &str) -> Answer {
    let whole = chunk(parts, Some(finish));
    if stream { Answer::sse([format!("data: {whole}\r\n\r\n")]) } else { Answer::json(200, &whole) }
}

async fn ask(script: Script, stream: bool) -> Reply {
    ask_requiring(script, stream, &[]).await
}

/// Sends a request whose function requires these arguments.
async fn ask_requiring(script: Script, stream: bool, required: &[&str]) -> Reply {
    let endmark = Endmark::start_resuming(script).await;
    let method = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
    let parameters = json!({"type": "OBJECT", "required": required});
    let body = json!({"contents": [{"role": "user", "parts": [{"text": "Tell."}]}],
        "tools": [{"functionDeclarations": [{"name": "f", "parameters": parameters}]}]});
    let request = Request::post(endmark.address, &format!("/v1beta/models/m:{method}")).json(&body);
    request.send().await.read().await
}

/// Returns all parts that the client received.
fn received_parts(reply: &Reply, stream: bool) -> Vec<Value> {
    let events = if stream { reply.json_events() } else { vec![reply.json()] };
    let parts = events.iter().filter_map(|event| event["candidates"][0]["content"]["parts"].as_array());
    parts.flatten().cloned().collect()
}

/// The provider rejects a history that contains the call without its signature.
#[tokio::test]
async fn a_call_added_by_a_continuation_keeps_its_signature() {
    for stream in [false, true] {
        let text = json!([{"text": "I look it up"}]);
        let rest = json!([{"text": " now."}, {"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "SIGNED"}]);
        let script = Script::new()
            .then(answer(stream, &text, "MAX_TOKENS"))
            .default_answer(answer(stream, &rest, "STOP"));
        let reply = ask(script, stream).await;
        let parts = received_parts(&reply, stream);
        let call = parts.iter().find(|part| part["functionCall"].is_object()).unwrap();
        assert_eq!(
            (&call["functionCall"]["args"], &call["thoughtSignature"]),
            (&json!({"a": 1}), &json!("SIGNED"))
        );
    }
}

#[tokio::test]
async fn a_continued_text_keeps_the_signature_of_its_rest() {
    for stream in [false, true] {
        for first in [json!([{"text": "The harbour was"}]), json!([{"text": "I think", "thought": true}])] {
            let is_thought = first[0]["thought"] == true;
            let rest = if is_thought { "The harbour was quiet." } else { " quiet." };
            let rest = json!([{"text": rest}, {"text": "", "thoughtSignature": "SIGNED"}]);
            let script = Script::new()
                .then(answer(stream, &first, "MAX_TOKENS"))
                .default_answer(answer(stream, &rest, "STOP"));
            let reply = ask(script, stream).await;
            let parts = received_parts(&reply, stream);
            let visible = parts.iter().filter(|part| part["thought"] != true);
            let text: String = visible.map(|part| part["text"].as_str().unwrap_or_default()).collect();
            assert_eq!(text, "The harbour was quiet.", "{}", reply.text());
            let signed: Vec<&Value> = parts
                .iter()
                .map(|part| &part["thoughtSignature"])
                .filter(|signed| !signed.is_null())
                .collect();
            assert_eq!(signed, ["SIGNED"], "{stream} {is_thought}: {}", reply.text());
        }
    }
}

/// Each signature stays with its text. A continuation token is removed, because it continues from the middle
/// of the reply.
#[tokio::test]
async fn a_continued_signed_text_keeps_both_signatures() {
    for stream in [false, true] {
        let first = json!([{"text": "I think", "thought": true}, {"text": "The harbour was", "thoughtSignature": "FIRST"}]);
        let mut cut = chunk(&first, Some("MAX_TOKENS"));
        cut["candidates"][0]["continuationToken"] = json!("TOKEN");
        let cut =
            if stream { Answer::sse([format!("data: {cut}\r\n\r\n")]) } else { Answer::json(200, &cut) };
        let rest = json!([{"text": " quiet.", "thoughtSignature": "SECOND"}]);
        let reply = ask(Script::new().then(cut).default_answer(answer(stream, &rest, "STOP")), stream).await;
        let parts = received_parts(&reply, stream);
        let visible = parts.iter().filter(|part| part["thought"] != true);
        let text: String = visible.map(|part| part["text"].as_str().unwrap_or_default()).collect();
        assert_eq!(text, "The harbour was quiet.", "{}", reply.text());
        let signed = parts.iter().filter_map(|part| part["thoughtSignature"].as_str());
        assert_eq!(signed.collect::<Vec<_>>(), ["FIRST", "SECOND"], "{stream}: {}", reply.text());
        assert!(!reply.text().contains("TOKEN"), "{stream}: {}", reply.text());
    }
}

/// The parts of a text stay separate.
#[tokio::test]
async fn a_multi_part_text_continues_in_its_last_part() {
    let first = json!([{"text": "One. "}, {"text": "Two. ", "thoughtSignature": "A"}, {"text": "The harbour was quiet that"}]);
    let rest = json!([{"text": " morning."}]);
    let script =
        Script::new().then(answer(false, &first, "MAX_TOKENS")).default_answer(answer(false, &rest, "STOP"));
    let parts = received_parts(&ask(script, false).await, false);
    assert_eq!(parts[0], json!({"text": "One. "}));
    assert_eq!(parts[1], json!({"text": "Two. ", "thoughtSignature": "A"}));
    assert_eq!(parts[2], json!({"text": "The harbour was quiet that morning."}));
    assert_eq!(parts.len(), 3);
}

/// The signed last part of the first answer precedes the rest, in any spelling of its fields.
#[tokio::test]
async fn a_signed_part_stays_in_place_in_a_continued_stream() {
    for name in ["thoughtSignature", "thought_signature"] {
        let first_chunk = chunk(&json!([{"text": "The harbour "}]), None);
        let mut signed = json!([{"text": "I think.", "thought": true}, {"text": "was"}, {"text": ""}]);
        signed[1][name] = json!("A");
        signed[2][name] = json!("B");
        let last = chunk(&signed, Some("MAX_TOKENS"));
        let first = Answer::sse([first_chunk, last].map(|chunk| format!("data: {chunk}\r\n\r\n")));
        let rest = answer(true, &json!([{"text": " quiet."}, {"text": "", "thoughtSignature": "C"}]), "STOP");
        let reply = ask(Script::new().then(first).default_answer(rest), true).await;
        let mut signed_text = String::new();
        for part in received_parts(&reply, true) {
            let bracket = if part["thought"] == true { "~" } else { "" };
            let signature = part["thoughtSignature"].as_str().or(part[name].as_str()).unwrap_or_default();
            let text = part["text"].as_str().unwrap_or_default();
            signed_text.extend([bracket, text, bracket, signature]);
        }
        assert_eq!(signed_text, "The harbour ~I think.~wasAB quiet.C", "{name}: {}", reply.text());
    }
}

/// A signature belongs to the call that it arrived with.
#[tokio::test]
async fn a_repeated_call_has_the_signature_of_its_own_answer() {
    for (stream, name) in [false, true]
        .into_iter()
        .flat_map(|stream| ["thoughtSignature", "thought_signature"].map(|name| (stream, name)))
    {
        for signature in [Some("NEW"), None] {
            let mut half = json!([{"functionCall": {"name": "f", "args": {"a": 1}}}]);
            half[0][name] = json!("OLD");
            let mut whole = json!([{"functionCall": {"name": "f", "args": {"a": 1, "b": 2}}}]);
            if let Some(signature) = signature {
                whole[0][name] = json!(signature);
            }
            let script = Script::new()
                .then(answer(stream, &half, "MAX_TOKENS"))
                .default_answer(answer(false, &whole, "STOP"));
            let reply = ask_requiring(script, stream, &["b"]).await;
            let parts = received_parts(&reply, stream);
            let call = parts.iter().find(|part| part["functionCall"].is_object()).unwrap();
            assert_eq!(call["functionCall"]["args"], json!({"a": 1, "b": 2}), "{}", reply.text());
            let signed = ["thoughtSignature", "thought_signature"].map(|name| call[name].as_str());
            let signed: Vec<&str> = signed.into_iter().flatten().collect();
            assert_eq!(signed, Vec::from_iter(signature), "{stream} {name}: {}", reply.text());
        }
    }
}

/// The repeated call had arrived after the rest of a text, and was cut.
#[tokio::test]
async fn a_repeated_call_after_a_continuation_has_its_own_signature() {
    for stream in [false, true] {
        let call = |args: Value, signature: &str| json!({"functionCall": {"name": "f", "args": args}, "thoughtSignature": signature});
        let rest = json!([{"text": " now."}, call(json!({"a": 1}), "OLD")]);
        let script = Script::new()
            .then(answer(stream, &json!([{"text": "I look it up"}]), "MAX_TOKENS"))
            .then(answer(stream, &rest, "MAX_TOKENS"))
            .default_answer(answer(false, &json!([call(json!({"a": 1, "b": 2}), "NEW")]), "STOP"));
        let reply = ask_requiring(script, stream, &["b"]).await;
        let parts = received_parts(&reply, stream);
        let found = parts.iter().find(|part| part["functionCall"].is_object()).unwrap();
        assert_eq!(found, &call(json!({"a": 1, "b": 2}), "NEW"), "{}", reply.text());
    }
}

/// A continuation token continues from the middle of the reply, so it is removed at any position.
#[tokio::test]
async fn a_continued_reply_has_no_continuation_token() {
    for (stream, at_the_top) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut cut = chunk(&json!([{"text": "The harbour was"}]), Some("MAX_TOKENS"));
        let place = if at_the_top { &mut cut } else { &mut cut["candidates"][0] };
        place["continuationToken"] = json!("TOKEN");
        let cut =
            if stream { Answer::sse([format!("data: {cut}\r\n\r\n")]) } else { Answer::json(200, &cut) };
        let rest = answer(stream, &json!([{"text": " quiet."}]), "STOP");
        let reply = ask(Script::new().then(cut).default_answer(rest), stream).await;
        assert!(!reply.text().contains("TOKEN"), "{stream} {at_the_top}: {}", reply.text());
        let text = |part: &Value| part["text"].as_str().unwrap_or_default().to_owned();
        assert_eq!(
            received_parts(&reply, stream).iter().map(text).collect::<String>(),
            "The harbour was quiet."
        );
    }
}
