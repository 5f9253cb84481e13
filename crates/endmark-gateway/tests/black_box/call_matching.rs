//! A cut call never gets the arguments of another call, whatever the upstream answers.

use endmark_gateway::ResumeMode;
use endmark_recovery::Strategies;
use testkit::{Answer, ModelFormat, ReceivedRequest, Script};

use crate::support::Endmark;
use crate::support::wire_replies::{End, ReplyPart, Wire};

const PARIS: ReplyPart<'static> = ReplyPart::Call("get_weather", r#"{"city":"Paris"}"#);
const CALL_WITHOUT_ARGUMENTS: ReplyPart<'static> = ReplyPart::Call("get_time", "");

/// Checks that the cut call is reported as cut, and returns a description and the body of the reply.
fn assert_reported_as_cut(
    wire: Wire,
    first_parts: &[ReplyPart<'_>],
    answered: &[ReplyPart<'_>],
    stream: bool,
) -> impl Future<Output = (String, String)> {
    let first = wire.answer(first_parts, End::Limit, stream);
    let whole = wire.answer(answered, End::Calls, false);
    let streamed = wire.answer(answered, End::Calls, true);
    let is_first = std::sync::atomic::AtomicBool::new(true);
    let respond = move |request: &ReceivedRequest| {
        if is_first.swap(false, std::sync::atomic::Ordering::Relaxed) {
            return first.clone();
        }
        let streams = request.json()["stream"] == true || request.path.contains("alt=sse");
        if streams { streamed.clone() } else { whole.clone() }
    };
    let what = format!("{wire:?} {stream} {first_parts:?} {answered:?}");
    async move {
        let endmark = Endmark::start(respond).await;
        let (reply, heard) = wire.ask(&endmark, &wire.request(stream), stream).await;
        let what = format!("{what}: {}", reply.text());
        assert!(endmark.calls() > 1, "{what}");
        let disclosed =
            heard.endmark.as_ref().and_then(|disclosed| disclosed["outcome"].as_str().map(str::to_owned));
        let disclosed = disclosed.or_else(|| reply.header("x-endmark-outcome").map(str::to_owned));
        assert_eq!(disclosed.as_deref(), Some("exhausted"), "{what}");
        assert!(
            heard.stop.is_none() || heard.stop.as_deref() == Some(wire.finish_reason(End::Limit)),
            "{what}"
        );
        (what, reply.text())
    }
}

async fn assert_no_foreign_text(stream: bool) {
    let first_parts: [&[ReplyPart<'_>]; 2] =
        [&[ReplyPart::Text("Let me look."), CALL_WITHOUT_ARGUMENTS], &[PARIS, CALL_WITHOUT_ARGUMENTS]];
    let others: [&[ReplyPart<'_>]; 4] = [
        &[ReplyPart::Call("get_weather", r#"{"city":"STOLEN"}"#)],
        &[ReplyPart::Text(r#"{"oops":"STOLEN"}"#)],
        // The same calls in another order: the cut call comes first.
        &[
            ReplyPart::Call("get_time", r#"{"tz":"STOLEN"}"#),
            ReplyPart::Call("get_weather", r#"{"tz":"STOLEN"}"#),
        ],
        // The cut call is at the same position, but follows a call that differs from the client's.
        &[
            ReplyPart::Call("get_weather", r#"{"city":"Rome"}"#),
            ReplyPart::Call("get_time", r#"{"tz":"STOLEN"}"#),
        ],
    ];
    for wire in Wire::ALL {
        for (first_parts, others) in [(first_parts[0], &others[..2]), (first_parts[1], &others[..])] {
            for answered in others {
                let (what, came) = assert_reported_as_cut(wire, first_parts, answered, stream).await;
                assert!(!came.contains("STOLEN"), "{what}");
            }
        }
    }
}

#[tokio::test]
async fn a_call_of_another_function_is_not_a_continuation() {
    assert_no_foreign_text(false).await;
}

#[tokio::test]
async fn a_streamed_call_of_another_function_is_not_a_continuation() {
    assert_no_foreign_text(true).await;
}

#[tokio::test]
async fn a_continued_call_does_not_become_the_end_of_another_call() {
    for wire in [Wire::ALL[0], Wire::ALL[1], Wire::ALL[2]] {
        for stream in [false, true] {
            let first_parts = [ReplyPart::Call("get_weather", r#"{"path":"/a","mo"#)];
            let answered = [ReplyPart::Call("get_time", r#"{"path":"/a","mode":"STOLEN"}"#)];
            if wire == Wire::ALL[2] && !stream {
                // An unstreamed Messages reply does not contain the beginning of a cut input.
                continue;
            }
            let (what, came) = assert_reported_as_cut(wire, &first_parts, &answered, stream).await;
            assert!(!came.contains("STOLEN"), "{what}");
        }
    }
}

/// The answer repeats all calls, and the cut call is whole.
#[tokio::test]
async fn the_same_call_after_the_same_calls_is_a_continuation() {
    for wire in Wire::ALL {
        for stream in [false, true] {
            // The whitespace and the ids differ from the first reply.
            let again = [
                ReplyPart::Call("get_weather", r#"{ "city": "Paris" }"#),
                ReplyPart::Call("get_time", r#"{"tz":"CET"}"#),
            ];
            let script = Script::new()
                .then(wire.answer(&[PARIS, CALL_WITHOUT_ARGUMENTS], End::Limit, stream))
                .then(wire.answer(&again, End::Calls, stream && wire != Wire::ALL[3]))
                .default_answer(wire.answer(&again, End::Calls, false));
            let endmark = Endmark::start(script).await;
            let (reply, heard) = wire.ask(&endmark, &wire.request(stream), stream).await;
            let what = format!("{wire:?} {stream}: {}", reply.text());
            let calls: Vec<(&str, &str)> =
                heard.tool_calls.iter().map(|(name, made)| (name.as_str(), made.as_str())).collect();
            assert_eq!(
                calls,
                [("get_weather", r#"{"city":"Paris"}"#), ("get_time", r#"{"tz":"CET"}"#)],
                "{what}"
            );
            assert_eq!(heard.stop.as_deref(), Some(wire.finish_reason(End::Calls)), "{what}");
        }
    }
}

/// A provider rejects a history that contains a message without content.
#[tokio::test]
async fn a_reply_with_only_a_cut_call_gets_a_placeholder_text() {
    let disclosed = "[A call of get_weather was cut off here, and is left out.]";
    let cut = [ReplyPart::Call("get_weather", "{\"city\": \"Ber")];
    for wire in [Wire::Other(ModelFormat::Messages), Wire::Other(ModelFormat::Gemini)] {
        for (said, expected) in
            [(&cut[..], disclosed), (&[ReplyPart::Text("One moment."), cut[0]][..], "One moment.")]
        {
            let first = wire.answer(said, End::Limit, false);
            let other = wire.answer(&[ReplyPart::Text("Sorry.")], End::Turn, false);
            let endmark = Endmark::start_resuming(Script::new().then(first).default_answer(other)).await;
            let (reply, heard) = wire.ask(&endmark, &wire.request(false), false).await;
            assert_eq!((heard.text.as_str(), heard.tool_calls.len()), (expected, 0), "{}", reply.text());
            assert_eq!(heard.stop.as_deref(), Some(wire.finish_reason(End::Limit)), "{}", reply.text());
        }
    }
    // If calls are held, a streamed reply omits the cut call too.
    let wire = Wire::Other(ModelFormat::Messages);
    let first = wire.answer(&cut, End::Limit, true);
    let other = wire.answer(&[ReplyPart::Text("Sorry.")], End::Turn, true);
    let endmark = Endmark::start_with(Script::new().then(first).default_answer(other), |settings| {
        settings.resume.mode = ResumeMode::On;
        settings.tools.hold = true;
    })
    .await;
    let (reply, heard) = wire.ask(&endmark, &wire.request(true), true).await;
    assert_eq!((heard.text.as_str(), heard.tool_calls.len()), (disclosed, 0), "{}", reply.text());
    assert_eq!((heard.stop.as_deref(), heard.error), (Some("max_tokens"), None), "{}", reply.text());
}

/// llama.cpp refuses to continue a message with calls, but continues a message whose calls are written as
/// text.
#[tokio::test]
async fn an_upstream_that_rejects_a_cut_call_gets_it_as_text() {
    let arguments = r#"{"city":"Berlin","unit":"celsius"}"#;
    let wire = Wire::ALL[0];
    for stream in [false, true] {
        let call = |made: &str, end| wire.answer(&[ReplyPart::Call("get_weather", made)], end, stream);
        let cuts = [call("{", End::Limit), call(r#"{"city":"Ber"#, End::Limit)];
        let whole = call(arguments, End::Calls);
        let other = wire.answer(&[ReplyPart::Text("Sorry.")], End::Turn, stream);
        let request_count = std::sync::atomic::AtomicUsize::new(0);
        let respond = move |request: &ReceivedRequest| {
            let last = request.json()["messages"].as_array().unwrap().last().unwrap().clone();
            let content = last["content"].as_str().unwrap_or_default();
            if last["tool_calls"].is_array() {
                Answer::error(400, "invalid_request_error", None, "Cannot continue a message with calls.")
            } else if content == "Tell." {
                cuts[request_count.fetch_add(1, std::sync::atomic::Ordering::Relaxed)].clone()
            } else if content.starts_with("<tool_call>") && content.ends_with("Ber") {
                whole.clone()
            } else {
                other.clone()
            }
        };
        let endmark = Endmark::start_with(respond, |settings| {
            settings.resume.strategies = Strategies::parse(["prefill", "prompt"]).unwrap();
        })
        .await;
        let (reply, heard) = wire.ask(&endmark, &wire.request(stream), stream).await;
        assert_eq!(heard.stop.as_deref(), Some(wire.finish_reason(End::Limit)), "{}", reply.text());
        let (reply, heard) = wire.ask(&endmark, &wire.request(stream), stream).await;
        let calls: Vec<&str> = heard.tool_calls.iter().map(|(_, made)| made.as_str()).collect();
        assert_eq!(calls, [arguments], "{}", reply.text());
    }
}
