//! Gemini sends a call's arguments as an object, and its clients run calls as received. They must never get a
//! cut call.

use serde_json::{Value, json};
use testkit::{Answer, ModelFormat, Reply, Script};

use crate::support::Endmark;
use crate::support::wire_replies::{End, ReplyPart, Wire};

const GEMINI: Wire = Wire::Other(ModelFormat::Gemini);
const CALL_WITHOUT_UNIT: ReplyPart<'static> = ReplyPart::Call("get_weather", r#"{"city":"Berlin"}"#);
const CALL_WITHOUT_ARGUMENTS: ReplyPart<'static> = ReplyPart::Call("get_weather", "{}");
const WHOLE_CALL: ReplyPart<'static> =
    ReplyPart::Call("get_weather", r#"{"city":"Berlin","unit":"celsius"}"#);
const TIME_CALL: ReplyPart<'static> = ReplyPart::Call("get_time", r#"{"city":"Berlin","unit":"hours"}"#);
const TEXT: ReplyPart<'static> = ReplyPart::Text("Let me look.");

/// Returns a request whose functions require a city and a unit.
fn request(stream: bool) -> Value {
    let mut body = GEMINI.request(stream);
    for tool in body["tools"].as_array_mut().into_iter().flatten() {
        tool["functionDeclarations"][0]["parametersJsonSchema"]["required"] = json!(["city", "unit"]);
    }
    body
}

/// Returns a stream with one chunk for each part, then these chunks. The last chunk contains the finish
/// reason.
fn answer_in_chunks(reply_parts: &[ReplyPart<'_>], chunks: &[Value], word: &str) -> Answer {
    let mut frames = GEMINI.frames(reply_parts, None);
    let end = json!({"candidates": [{"index": 0, "finishReason": word}], "usageMetadata": {
        "promptTokenCount": 5, "candidatesTokenCount": 7, "totalTokenCount": 12,
    }});
    frames.extend(chunks.iter().chain([&end]).map(|chunk| format!("data: {chunk}\r\n\r\n")));
    Answer::sse(frames)
}

/// Returns the empty chunk that servers send after a call.
fn bare_chunk() -> Value {
    json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": ""}]}}]})
}

/// Returns the arguments of the calls that a client received, in order.
fn received_calls(reply: &Reply) -> Vec<Value> {
    let streams = reply.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
    let chunks = if streams { reply.json_events() } else { vec![reply.json()] };
    let parts =
        chunks.iter().filter_map(|chunk| chunk["candidates"][0]["content"]["parts"].as_array()).flatten();
    parts.filter_map(|part| part.get("functionCall")).map(|call| call["args"].clone()).collect()
}

#[tokio::test]
async fn a_call_that_stays_cut_is_not_delivered() {
    for cut in [CALL_WITHOUT_UNIT, CALL_WITHOUT_ARGUMENTS] {
        for (before, stream) in [(None, false), (Some(TEXT), false), (None, true), (Some(TEXT), true)] {
            let reply_parts: Vec<ReplyPart<'_>> = before.into_iter().chain([cut]).collect();
            let answers = if stream {
                vec![
                    GEMINI.answer(&reply_parts, End::Limit, true),
                    answer_in_chunks(&reply_parts, &[], "MAX_TOKENS"),
                    answer_in_chunks(&reply_parts, &[bare_chunk()], "MAX_TOKENS"),
                ]
            } else {
                vec![GEMINI.answer(&reply_parts, End::Limit, false)]
            };
            for first in answers {
                let refused = Answer::error(400, "invalid_request_error", None, "no");
                let endmark = Endmark::start(Script::new().then(first).default_answer(refused)).await;
                let (reply, heard) = GEMINI.ask(&endmark, &request(stream), stream).await;
                let what = format!("{cut:?} {stream}: {}", reply.text());
                assert_eq!(received_calls(&reply), Vec::<Value>::new(), "{what}");
                assert_eq!((heard.stop.as_deref(), heard.error), (Some("MAX_TOKENS"), None), "{what}");
                let reply_parts = if before.is_some() {
                    "Let me look."
                } else {
                    "[A call of get_weather was cut off here, and is left out.]"
                };
                assert_eq!(heard.text, reply_parts, "{what}");
            }
        }
    }
}

/// The call counts as cut even if its function requires no arguments.
#[tokio::test]
async fn an_empty_call_at_the_limit_is_cut() {
    for (first, stream) in [
        (GEMINI.answer(&[TEXT, CALL_WITHOUT_ARGUMENTS], End::Limit, false), false),
        (GEMINI.answer(&[TEXT, CALL_WITHOUT_ARGUMENTS, ReplyPart::Text("")], End::Limit, false), false),
        (GEMINI.answer(&[TEXT, CALL_WITHOUT_ARGUMENTS], End::Limit, true), true),
        (answer_in_chunks(&[TEXT, CALL_WITHOUT_ARGUMENTS], &[], "MAX_TOKENS"), true),
        (answer_in_chunks(&[TEXT, CALL_WITHOUT_ARGUMENTS], &[bare_chunk()], "MAX_TOKENS"), true),
    ] {
        let refused = Answer::error(400, "invalid_request_error", None, "no");
        let endmark = Endmark::start(Script::new().then(first).default_answer(refused)).await;
        let (reply, heard) = GEMINI.ask(&endmark, &GEMINI.request(stream), stream).await;
        let what = format!("{stream}: {}", reply.text());
        assert_eq!(received_calls(&reply), Vec::<Value>::new(), "{what}");
        assert_eq!(
            (heard.stop.as_deref(), heard.text.as_str()),
            (Some("MAX_TOKENS"), "Let me look."),
            "{what}"
        );
    }
}

#[tokio::test]
async fn a_cut_call_in_its_own_chunk_is_requested_again() {
    for cut in [CALL_WITHOUT_UNIT, CALL_WITHOUT_ARGUMENTS] {
        for chunks in [vec![], vec![bare_chunk()]] {
            let script = Script::new()
                .then(answer_in_chunks(&[TEXT, cut], &chunks, "MAX_TOKENS"))
                .default_answer(GEMINI.answer(&[TEXT, WHOLE_CALL], End::Calls, false));
            let endmark = Endmark::start(script).await;
            let (reply, heard) = GEMINI.ask(&endmark, &request(true), true).await;
            let what = reply.text();
            assert_eq!(received_calls(&reply), [json!({"city": "Berlin", "unit": "celsius"})], "{what}");
            assert_eq!(
                (heard.stop.as_deref(), heard.text.as_str()),
                (Some("STOP"), "Let me look."),
                "{what}"
            );
            assert_eq!((heard.error, endmark.calls()), (None, 2), "{what}");
        }
    }
}

/// The model continued after the call or ended its turn, so errors in the arguments are the model's own.
#[tokio::test]
async fn a_call_followed_by_more_output_is_unchanged() {
    for cut in [CALL_WITHOUT_UNIT, CALL_WITHOUT_ARGUMENTS] {
        for (reply_parts, chunks, word) in [
            (vec![cut], vec![], "STOP"),
            (vec![TEXT, cut], vec![bare_chunk()], "STOP"),
            (vec![cut, TIME_CALL], vec![], "STOP"),
            (vec![cut, TIME_CALL], vec![bare_chunk()], "STOP"),
            (vec![cut, cut, TEXT, TIME_CALL], vec![], "STOP"),
        ] {
            let first = answer_in_chunks(&reply_parts, &chunks, word);
            let refused = Answer::error(400, "invalid_request_error", None, "no");
            let endmark = Endmark::start(Script::new().then(first).default_answer(refused)).await;
            let (reply, heard) = GEMINI.ask(&endmark, &request(true), true).await;
            let what = format!("{reply_parts:?}: {}", reply.text());
            let given =
                reply_parts.iter().filter(|reply_parts| matches!(reply_parts, ReplyPart::Call(..))).count();
            assert_eq!((received_calls(&reply).len(), heard.stop.as_deref()), (given, Some(word)), "{what}");
            // The last call is corrected, as in an unstreamed reply.
            let is_followed = reply_parts.last() == Some(&TIME_CALL);
            assert_eq!(endmark.calls(), if is_followed { 1 } else { 2 }, "{what}");
        }
    }
}

#[tokio::test]
async fn a_last_call_that_violates_its_schema_is_corrected() {
    let script = Script::new()
        .then(answer_in_chunks(&[TEXT, CALL_WITHOUT_UNIT], &[], "STOP"))
        .default_answer(GEMINI.answer(&[WHOLE_CALL], End::Calls, false));
    let endmark = Endmark::start(script).await;
    let (reply, heard) = GEMINI.ask(&endmark, &request(true), true).await;
    let what = reply.text();
    assert_eq!(received_calls(&reply), [json!({"city": "Berlin", "unit": "celsius"})], "{what}");
    assert_eq!((heard.stop.as_deref(), heard.text.as_str()), (Some("STOP"), "Let me look."), "{what}");
    assert_eq!(heard.endmark.unwrap_or_default()["outcome"], "corrected", "{what}");
}

/// The gateway holds the call of one candidate. The events of the other candidate keep their order.
#[tokio::test]
async fn candidates_keep_their_order_while_a_call_is_held() {
    let chunk = |index: u32, part: Value, finish: Option<&str>| {
        let mut candidate = json!({"index": index, "content": {"role": "model", "parts": [part]}});
        if let Some(finish) = finish {
            candidate["finishReason"] = json!(finish);
        }
        format!("data: {}\r\n\r\n", json!({"candidates": [candidate]}))
    };
    let call = json!({"functionCall": {"name": "get_weather", "args": {"city": "Berlin"}}});
    let frames = [
        chunk(1, json!({"text": "one "}), None),
        chunk(0, call, None),
        chunk(1, json!({"text": "two "}), None),
        chunk(0, json!({"text": ""}), Some("MAX_TOKENS")),
        chunk(1, json!({"text": "three "}), None),
        chunk(1, json!({"text": "four"}), Some("STOP")),
    ];
    let refused = Answer::error(400, "invalid_request_error", None, "no");
    let endmark = Endmark::start(Script::new().then(Answer::sse(frames)).default_answer(refused)).await;
    let mut body = request(true);
    body["generationConfig"]["candidateCount"] = json!(2);
    let reply = GEMINI.ask_raw(&endmark, &body, true).await;
    let what = reply.text();
    let mut texts = [String::new(), String::new()];
    let mut ends = [None, None];
    for candidate in reply.json_events().iter().filter_map(|chunk| chunk["candidates"].as_array()).flatten() {
        let index = usize::try_from(candidate["index"].as_u64().unwrap()).unwrap();
        for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
            texts[index] += part["text"].as_str().unwrap_or_default();
            assert_eq!(part.get("functionCall"), None, "{what}");
        }
        ends[index] = candidate["finishReason"].as_str().map(str::to_owned).or(ends[index].take());
    }
    assert_eq!(texts[1], "one two three four", "{what}");
    assert_eq!(texts[0], "[A call of get_weather was cut off here, and is left out.]", "{what}");
    assert_eq!(ends.map(Option::unwrap), ["MAX_TOKENS", "STOP"], "{what}");
}
