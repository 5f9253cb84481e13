//! Gemini gives a call's arguments as an object: a client that runs calls as received must never have one that is cut.

use serde_json::{Value, json};
use testkit::{Answer, Dialect, Reply, Script};

use crate::support::Endmark;
use crate::support::spoken::{End, Said, Wire};

const GEMINI: Wire = Wire::Other(Dialect::Gemini);
const HALF: Said<'static> = Said::Call("get_weather", r#"{"city":"Berlin"}"#);
const NOTHING: Said<'static> = Said::Call("get_weather", "{}");
const WHOLE: Said<'static> = Said::Call("get_weather", r#"{"city":"Berlin","unit":"celsius"}"#);
const TIME: Said<'static> = Said::Call("get_time", r#"{"city":"Berlin","unit":"hours"}"#);
const LOOK: Said<'static> = Said::Text("Let me look.");

/// A request whose functions require a city and a unit.
fn request(stream: bool) -> Value {
    let mut body = GEMINI.request(stream);
    for tool in body["tools"].as_array_mut().into_iter().flatten() {
        tool["functionDeclarations"][0]["parametersJsonSchema"]["required"] = json!(["city", "unit"]);
    }
    body
}

/// A stream with each part in a separate chunk, then these chunks, and the end in the last one.
fn answer_in_chunks(said: &[Said<'_>], chunks: &[Value], word: &str) -> Answer {
    let mut frames = GEMINI.frames(said, None);
    let end = json!({"candidates": [{"index": 0, "finishReason": word}], "usageMetadata": {
        "promptTokenCount": 5, "candidatesTokenCount": 7, "totalTokenCount": 12,
    }});
    frames.extend(chunks.iter().chain([&end]).map(|chunk| format!("data: {chunk}\r\n\r\n")));
    Answer::sse(frames)
}

/// The chunk without content that servers send after a call.
fn bare_chunk() -> Value {
    json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": ""}]}}]})
}

/// Returns the calls that a client received, in order.
fn calls(reply: &Reply) -> Vec<Value> {
    let streams = reply.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
    let chunks = if streams { reply.json_events() } else { vec![reply.json()] };
    let parts =
        chunks.iter().filter_map(|chunk| chunk["candidates"][0]["content"]["parts"].as_array()).flatten();
    parts.filter_map(|part| part.get("functionCall")).map(|call| call["args"].clone()).collect()
}

#[tokio::test]
async fn a_call_that_stays_cut_is_handed_to_nobody() {
    for cut in [HALF, NOTHING] {
        for (before, stream) in [(None, false), (Some(LOOK), false), (None, true), (Some(LOOK), true)] {
            let said: Vec<Said<'_>> = before.into_iter().chain([cut]).collect();
            let answers = if stream {
                vec![
                    GEMINI.answer(&said, End::Limit, true),
                    answer_in_chunks(&said, &[], "MAX_TOKENS"),
                    answer_in_chunks(&said, &[bare_chunk()], "MAX_TOKENS"),
                ]
            } else {
                vec![GEMINI.answer(&said, End::Limit, false)]
            };
            for first in answers {
                let refused = Answer::error(400, "invalid_request_error", None, "no");
                let endmark = Endmark::start(Script::new().then(first).default_answer(refused)).await;
                let (reply, heard) = GEMINI.ask(&endmark, &request(stream), stream).await;
                let what = format!("{cut:?} {stream}: {}", reply.text());
                assert_eq!(calls(&reply), Vec::<Value>::new(), "{what}");
                assert_eq!((heard.stop.as_deref(), heard.error), (Some("MAX_TOKENS"), None), "{what}");
                let said = if before.is_some() {
                    "Let me look."
                } else {
                    "[A call of get_weather was cut off here, and is left out.]"
                };
                assert_eq!(heard.text, said, "{what}");
            }
        }
    }
}

/// Also if the function's schema does not decide.
#[tokio::test]
async fn a_call_with_nothing_at_the_limit_is_cut_wherever_the_limit_is_told() {
    for (first, stream) in [
        (GEMINI.answer(&[LOOK, NOTHING], End::Limit, false), false),
        (GEMINI.answer(&[LOOK, NOTHING, Said::Text("")], End::Limit, false), false),
        (GEMINI.answer(&[LOOK, NOTHING], End::Limit, true), true),
        (answer_in_chunks(&[LOOK, NOTHING], &[], "MAX_TOKENS"), true),
        (answer_in_chunks(&[LOOK, NOTHING], &[bare_chunk()], "MAX_TOKENS"), true),
    ] {
        let refused = Answer::error(400, "invalid_request_error", None, "no");
        let endmark = Endmark::start(Script::new().then(first).default_answer(refused)).await;
        let (reply, heard) = GEMINI.ask(&endmark, &GEMINI.request(stream), stream).await;
        let what = format!("{stream}: {}", reply.text());
        assert_eq!(calls(&reply), Vec::<Value>::new(), "{what}");
        assert_eq!(
            (heard.stop.as_deref(), heard.text.as_str()),
            (Some("MAX_TOKENS"), "Let me look."),
            "{what}"
        );
    }
}

#[tokio::test]
async fn a_call_in_a_chunk_of_its_own_is_asked_for_anew() {
    for cut in [HALF, NOTHING] {
        for chunks in [vec![], vec![bare_chunk()]] {
            let script = Script::new()
                .then(answer_in_chunks(&[LOOK, cut], &chunks, "MAX_TOKENS"))
                .default_answer(GEMINI.answer(&[LOOK, WHOLE], End::Calls, false));
            let endmark = Endmark::start(script).await;
            let (reply, heard) = GEMINI.ask(&endmark, &request(true), true).await;
            let what = reply.text();
            assert_eq!(calls(&reply), [json!({"city": "Berlin", "unit": "celsius"})], "{what}");
            assert_eq!(
                (heard.stop.as_deref(), heard.text.as_str()),
                (Some("STOP"), "Let me look."),
                "{what}"
            );
            assert_eq!((heard.error, endmark.calls()), (None, 2), "{what}");
        }
    }
}

/// The model continued after it, or ended its turn with it. Errors in the arguments are the model's.
#[tokio::test]
async fn a_call_that_something_follows_passes_as_it_came() {
    for cut in [HALF, NOTHING] {
        for (said, chunks, word) in [
            (vec![cut], vec![], "STOP"),
            (vec![LOOK, cut], vec![bare_chunk()], "STOP"),
            (vec![cut, TIME], vec![], "STOP"),
            (vec![cut, TIME], vec![bare_chunk()], "STOP"),
            (vec![cut, cut, LOOK, TIME], vec![], "STOP"),
        ] {
            let first = answer_in_chunks(&said, &chunks, word);
            let refused = Answer::error(400, "invalid_request_error", None, "no");
            let endmark = Endmark::start(Script::new().then(first).default_answer(refused)).await;
            let (reply, heard) = GEMINI.ask(&endmark, &request(true), true).await;
            let what = format!("{said:?}: {}", reply.text());
            let given = said.iter().filter(|said| matches!(said, Said::Call(..))).count();
            assert_eq!((calls(&reply).len(), heard.stop.as_deref()), (given, Some(word)), "{what}");
            // The last call is corrected where that can be, as in a reply that is not streamed.
            let is_followed = said.last() == Some(&TIME);
            assert_eq!(endmark.calls(), if is_followed { 1 } else { 2 }, "{what}");
        }
    }
}

#[tokio::test]
async fn a_call_at_the_end_that_its_function_refuses_is_corrected() {
    let script = Script::new()
        .then(answer_in_chunks(&[LOOK, HALF], &[], "STOP"))
        .default_answer(GEMINI.answer(&[WHOLE], End::Calls, false));
    let endmark = Endmark::start(script).await;
    let (reply, heard) = GEMINI.ask(&endmark, &request(true), true).await;
    let what = reply.text();
    assert_eq!(calls(&reply), [json!({"city": "Berlin", "unit": "celsius"})], "{what}");
    assert_eq!((heard.stop.as_deref(), heard.text.as_str()), (Some("STOP"), "Let me look."), "{what}");
    assert_eq!(heard.endmark.unwrap_or_default()["outcome"], "corrected", "{what}");
}

/// The first call of two candidates waits, and the events of the other keep their order.
#[tokio::test]
async fn candidates_keep_their_order_while_a_call_waits() {
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
    let reply = GEMINI.ask_unheard(&endmark, &body, true).await;
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
