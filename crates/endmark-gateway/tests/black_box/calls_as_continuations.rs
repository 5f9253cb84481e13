//! An upstream answers with a call when the rest of a text was requested.

use testkit::{AssembledReply, Request, Script};

use crate::support::Endmark;
use crate::support::wire_replies::{End, ReplyPart, Wire};

const CALL: ReplyPart<'static> = ReplyPart::Call("get_time", "{}");

/// Cuts a text at the limit and answers the continuation request with only a call. Returns the client's
/// reply, its outcome and a description.
async fn read_reply_continued_by_call(
    wire: Wire,
    text: &str,
    format: Option<&str>,
    stream: bool,
) -> (AssembledReply, String, String) {
    let script = Script::new().then(wire.answer(&[ReplyPart::Text(text)], End::Limit, stream));
    let script = script.default_answer(wire.answer(&[CALL], End::Calls, stream));
    let endmark = Endmark::start_resuming(script).await;
    let mut request = Request::post(endmark.address, wire.path(stream)).json(&wire.request(stream));
    if let Some(format) = format {
        request = request.header("x-endmark-format", format);
    }
    let reply = request.send().await.read().await;
    let heard = wire.read_reply(&reply);
    let disclosed = heard.endmark.clone().unwrap_or_default();
    let outcome =
        disclosed["outcome"].as_str().or_else(|| reply.header("x-endmark-outcome")).unwrap_or_default();
    (heard, outcome.to_owned(), format!("{wire:?} {stream}: {}", reply.text()))
}

#[tokio::test]
async fn no_call_follows_an_incomplete_required_document() {
    for (wire, stream) in Wire::ALL.into_iter().flat_map(|wire| [(wire, false), (wire, true)]) {
        let (heard, outcome, what) =
            read_reply_continued_by_call(wire, r#"{"a": [1,"#, Some("json"), stream).await;
        assert_eq!((heard.text.as_str(), heard.tool_calls.len()), (r#"{"a": [1,"#, 0), "{what}");
        assert_eq!(heard.stop.as_deref(), Some(wire.finish_reason(End::Limit)), "{what}");
        assert_eq!(outcome, "exhausted", "{what}");
    }
}

#[tokio::test]
async fn a_text_stays_before_the_call_that_follows_it() {
    for (wire, stream) in Wire::ALL.into_iter().flat_map(|wire| [(wire, false), (wire, true)]) {
        let (heard, outcome, what) =
            read_reply_continued_by_call(wire, "I look at the clock.", None, stream).await;
        assert_eq!((heard.text.as_str(), heard.tool_calls.len()), ("I look at the clock.", 1), "{what}");
        assert_eq!(outcome, "resumed", "{what}");
    }
}

#[tokio::test]
async fn a_text_cut_in_a_word_before_a_call_is_not_whole() {
    for (wire, stream) in Wire::ALL.into_iter().flat_map(|wire| [(wire, false), (wire, true)]) {
        let (heard, outcome, what) =
            read_reply_continued_by_call(wire, "I look at the clo", None, stream).await;
        assert_eq!((heard.text.as_str(), heard.tool_calls.len()), ("I look at the clo", 1), "{what}");
        assert_eq!(outcome, "exhausted", "{what}");
    }
}

#[tokio::test]
async fn a_lone_number_at_the_limit_is_continued() {
    for (wire, stream) in Wire::ALL.into_iter().flat_map(|wire| [(wire, false), (wire, true)]) {
        let script = Script::new().then(wire.answer(&[ReplyPart::Text("12")], End::Limit, stream));
        let script = script.default_answer(wire.answer(&[ReplyPart::Text("34")], End::Turn, stream));
        let endmark = Endmark::start_resuming(script).await;
        let request = Request::post(endmark.address, wire.path(stream)).json(&wire.request(stream));
        let reply = request.header("x-endmark-format", "json").send().await.read().await;
        let heard = wire.read_reply(&reply);
        assert_eq!(endmark.calls(), 2, "{wire:?} {stream}: {}", reply.text());
        assert_eq!(heard.text, "1234", "{wire:?} {stream}: {}", reply.text());
    }
}
