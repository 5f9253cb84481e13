//! Calls whose arguments are valid JSON but lack required ones, in replies that reached their limit. Servers
//! that send arguments as an object return the part that they could parse.

use serde_json::{Value, json};
use testkit::{Answer, ModelFormat, Reply, Script};

use crate::support::Endmark;
use crate::support::wire_replies::{End, ReplyPart, Wire};

const CALL_WITHOUT_UNIT: ReplyPart<'static> = ReplyPart::Call("get_weather", r#"{"city":"Berlin"}"#);
const CALL_WITHOUT_ARGUMENTS: ReplyPart<'static> = ReplyPart::Call("get_weather", "{}");
const WHOLE_CALL: ReplyPart<'static> =
    ReplyPart::Call("get_weather", r#"{"city":"Berlin","unit":"celsius"}"#);

const MESSAGES: Wire = Wire::Other(ModelFormat::Messages);
const GEMINI: Wire = Wire::Other(ModelFormat::Gemini);

/// Returns a request whose functions have these required arguments.
fn request_requiring(wire: Wire, required: &[&str], stream: bool) -> Value {
    let mut body = wire.request(stream);
    for tool in body["tools"].as_array_mut().into_iter().flatten() {
        let schema = match wire {
            Wire::Chat => &mut tool["function"]["parameters"],
            Wire::Other(ModelFormat::Responses) => &mut tool["parameters"],
            Wire::Other(ModelFormat::Messages) => &mut tool["input_schema"],
            Wire::Other(ModelFormat::Gemini) => &mut tool["functionDeclarations"][0]["parametersJsonSchema"],
        };
        schema["required"] = json!(required);
    }
    body
}

/// Returns a request like [`request_requiring`], with the output limit that the scripted replies reach.
fn limited_request(wire: Wire, required: &[&str], stream: bool) -> Value {
    let mut body = request_requiring(wire, required, stream);
    match wire {
        Wire::Chat | Wire::Other(ModelFormat::Messages) => body["max_tokens"] = json!(7),
        Wire::Other(ModelFormat::Responses) => body["max_output_tokens"] = json!(7),
        Wire::Other(ModelFormat::Gemini) => body["generationConfig"]["maxOutputTokens"] = json!(7),
    }
    body
}

fn calls(heard: &testkit::AssembledReply) -> Vec<(&str, &str)> {
    heard.tool_calls.iter().map(|(name, made)| (name.as_str(), made.as_str())).collect()
}

fn disclosed_outcome(reply: &Reply, heard: &testkit::AssembledReply) -> Option<String> {
    let in_stream =
        heard.endmark.as_ref().and_then(|disclosed| disclosed["outcome"].as_str().map(str::to_owned));
    in_stream.or_else(|| reply.header("x-endmark-outcome").map(str::to_owned))
}

#[tokio::test]
async fn a_call_without_required_arguments_at_the_limit_is_cut() {
    for (wire, stream) in Wire::ALL.into_iter().flat_map(|wire| [(wire, false), (wire, true)]) {
        let script = Script::new()
            .then(wire.answer(&[CALL_WITHOUT_UNIT], End::Limit, stream))
            .default_answer(wire.answer(&[WHOLE_CALL], End::Calls, false));
        let endmark = Endmark::start(script).await;
        let body = request_requiring(wire, &["city", "unit"], stream);
        let (reply, heard) = wire.ask(&endmark, &body, stream).await;
        let what = format!("{wire:?} {stream}: {}", reply.text());
        if stream && wire != GEMINI {
            // The client has a complete object, so no arguments can be added to it.
            assert_eq!(
                (disclosed_outcome(&reply, &heard).as_deref(), endmark.calls()),
                (Some("cut"), 1),
                "{what}"
            );
            assert!(
                heard.error.is_some() || heard.stop.as_deref() == Some(wire.finish_reason(End::Limit)),
                "{what}"
            );
            continue;
        }
        assert_eq!(calls(&heard), [("get_weather", r#"{"city":"Berlin","unit":"celsius"}"#)], "{what}");
        assert_eq!(heard.stop.as_deref(), Some(wire.finish_reason(End::Calls)), "{what}");
        assert_eq!(
            (disclosed_outcome(&reply, &heard).as_deref(), endmark.calls()),
            (Some("resumed"), 2),
            "{what}"
        );
    }
}

/// Gemini writes the types of a schema in uppercase.
#[tokio::test]
async fn required_arguments_are_read_from_schemas_with_uppercase_types() {
    for stream in [false, true] {
        let mut body = GEMINI.request(stream);
        let parameters =
            json!({"type": "OBJECT", "properties": {"unit": {"type": "STRING"}}, "required": ["unit"]});
        body["tools"] =
            json!([{"function_declarations": [{"name": "get_weather", "parameters": parameters}]}]);
        let script = Script::new()
            .then(GEMINI.answer(&[ReplyPart::Text("Let me look."), CALL_WITHOUT_UNIT], End::Limit, stream))
            .default_answer(GEMINI.answer(&[ReplyPart::Text("Let me look."), WHOLE_CALL], End::Calls, false));
        let endmark = Endmark::start(script).await;
        let (reply, heard) = GEMINI.ask(&endmark, &body, stream).await;
        let what = reply.text();
        assert_eq!(calls(&heard), [("get_weather", r#"{"city":"Berlin","unit":"celsius"}"#)], "{what}");
        assert_eq!((heard.stop.as_deref(), heard.text.as_str()), (Some("STOP"), "Let me look."), "{what}");
        assert_eq!(
            (disclosed_outcome(&reply, &heard).as_deref(), endmark.calls()),
            (Some("resumed"), 2),
            "{what}"
        );
    }
}

/// Covers all answers to the request for the rest.
#[tokio::test]
async fn a_call_without_required_arguments_is_never_reported_as_finished() {
    let others: [&[ReplyPart<'_>]; 2] = [&[ReplyPart::Text("Sorry.")], &[CALL_WITHOUT_UNIT]];
    for (wire, stream) in Wire::ALL.into_iter().flat_map(|wire| [(wire, false), (wire, true)]) {
        for other in others {
            let script = Script::new()
                .then(wire.answer(&[CALL_WITHOUT_UNIT], End::Limit, stream))
                .default_answer(wire.answer(other, End::Limit, false));
            let endmark = Endmark::start(script).await;
            let body = request_requiring(wire, &["city", "unit"], stream);
            let (reply, heard) = wire.ask(&endmark, &body, stream).await;
            let what = format!("{wire:?} {stream}: {}", reply.text());
            let disclosed = disclosed_outcome(&reply, &heard).unwrap();
            assert!(["cut", "exhausted"].contains(&disclosed.as_str()), "{what}");
            assert!(
                heard.error.is_some() || heard.stop.as_deref() == Some(wire.finish_reason(End::Limit)),
                "{what}"
            );
        }
    }
}

/// Some servers report the stop reason `tool_use` for a cut call.
#[tokio::test]
async fn a_call_without_arguments_is_cut_if_the_count_reaches_the_limit() {
    for (wire, stream) in
        [Wire::ALL.map(|wire| (wire, false)).as_slice(), &[(MESSAGES, true), (GEMINI, true)]].concat()
    {
        let part = if wire == MESSAGES && stream {
            ReplyPart::Call("get_weather", "")
        } else {
            CALL_WITHOUT_ARGUMENTS
        };
        let first = wire.answer(&[part], End::Calls, stream);
        let script = Script::new()
            .then(first.clone())
            .then(wire.answer(&[WHOLE_CALL], End::Calls, stream && wire == MESSAGES))
            .default_answer(Answer::server_error());
        let endmark = Endmark::start(script).await;
        let mut body = limited_request(wire, &["city"], stream);
        let (reply, heard) = wire.ask(&endmark, &body, stream).await;
        let what = format!("{wire:?} {stream}: {}", reply.text());
        assert_eq!(calls(&heard), [("get_weather", r#"{"city":"Berlin","unit":"celsius"}"#)], "{what}");
        assert_eq!(heard.stop.as_deref(), Some(wire.finish_reason(End::Calls)), "{what}");
        assert_eq!(
            (disclosed_outcome(&reply, &heard).as_deref(), endmark.calls()),
            (Some("resumed"), 2),
            "{what}"
        );

        // A call without arguments is whole if its function requires none, or if the reply had room for more.
        let nothing_required = limited_request(wire, &[], stream);
        for other in ["max_tokens", "max_output_tokens"] {
            if body[other].is_u64() {
                body[other] = json!(8192);
            }
        }
        if wire == GEMINI {
            body["generationConfig"]["maxOutputTokens"] = json!(8192);
        }
        for passes in [nothing_required, body.clone()] {
            if passes == body && !(wire == MESSAGES && stream) {
                // Validation reports other errors in the arguments.
                continue;
            }
            let endmark = Endmark::start(Script::new().default_answer(first.clone())).await;
            let (reply, _) = wire.ask(&endmark, &passes, stream).await;
            assert_eq!((reply.body, endmark.calls()), (first.body(), 1), "{wire:?} {stream}");
        }
    }
}

/// Requesting the rest fails, so the call stays unfinished.
#[tokio::test]
async fn a_call_without_arguments_at_the_limit_is_not_reported_as_finished() {
    for (wire, stream) in
        [Wire::ALL.map(|wire| (wire, false)).as_slice(), &[(MESSAGES, true), (GEMINI, true)]].concat()
    {
        let part = if wire == MESSAGES && stream {
            ReplyPart::Call("get_weather", "")
        } else {
            CALL_WITHOUT_ARGUMENTS
        };
        let script = Script::new()
            .then(wire.answer(&[part], End::Calls, stream))
            .default_answer(wire.answer(&[ReplyPart::Text("Sorry.")], End::Turn, false));
        let endmark = Endmark::start(script).await;
        let (reply, heard) = wire.ask(&endmark, &limited_request(wire, &["city"], stream), stream).await;
        let what = format!("{wire:?} {stream}: {}", reply.text());
        assert!(
            heard.error.is_some() || heard.stop.as_deref() == Some(wire.finish_reason(End::Limit)),
            "{what}"
        );
        assert_eq!(disclosed_outcome(&reply, &heard).as_deref(), Some("exhausted"), "{what}");
    }
}

/// The client allows far more than the minimum for the rest, so the limit follows the size of the reply.
#[tokio::test]
async fn a_large_client_limit_leaves_room_for_a_call() {
    let message = |stop: &str, input: serde_json::Value, tokens: u64| {
        testkit::Answer::json(
            200,
            &serde_json::json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": null,
                "content": [{"type": "tool_use", "id": "toolu_1", "name": "write", "input": input}],
                "stop_reason": stop, "usage": {"input_tokens": 9, "output_tokens": tokens}}),
        )
    };
    let body = serde_json::json!({"model": "m", "max_tokens": 64_000, "messages": [{"role": "user", "content": "Write."}],
        "tools": [{"name": "write", "input_schema": {"type": "object", "required": ["path"],
            "properties": {"path": {"type": "string"}}}}]});
    for (took, extra, calls) in [(700, 16_384, 2), (64_000, 16_384, 1), (64_000, 64_001, 2)] {
        let cut = message("max_tokens", serde_json::json!({}), took);
        let whole = message("tool_use", serde_json::json!({"path": "a.rs"}), 20);
        let script = testkit::Script::new().then(cut).default_answer(whole);
        let endmark = Endmark::start_with(script, |settings| settings.resume.max_extra_tokens = extra).await;
        let request = testkit::Request::post(endmark.address, "/v1/messages").header("x-api-key", "key");
        let answer = request.json(&body).send().await.read().await;
        let reply = answer.json();
        assert_eq!(endmark.calls(), calls, "{took}: {reply}");
        if calls == 1 {
            // Only repeating the whole request could complete the call. The response discloses why this is
            // not done.
            let reason = answer.header("x-endmark-reason").unwrap_or_default();
            assert!(reason.contains("max_extra_tokens leaves 16384: allow more than 64000"), "{reason}");
        } else {
            assert_eq!(reply["content"][0]["input"]["path"], "a.rs");
            assert_eq!(reply["stop_reason"], "tool_use");
        }
    }
}
