//! Checks from the client's side that each fault does what it claims.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use serde_json::json;
use testkit::{
    Answer, Fault, ReceivedRequest, Request, ResponseOutcome, Script, Upstream, chat_stream, error_event,
};

const BODY: &str = "0123456789";

/// Returns what a client receives: the bytes, and the kind of error at their end.
async fn receive(answer: Answer) -> (Vec<u8>, Option<ErrorKind>) {
    let upstream = Upstream::start(Script::new().then(answer)).await;
    let mut reply = Request::get(upstream.address(), "/").send().await;
    let mut body = Vec::new();
    let end = loop {
        match reply.next_bytes().await {
            Ok(Some(bytes)) => body.extend_from_slice(&bytes),
            Ok(None) => break None,
            Err(error) => break Some(error.kind()),
        }
    };
    (body, end)
}

fn plain_answer() -> Answer {
    Answer::new(200, "text/plain", BODY)
}

#[tokio::test]
async fn a_body_arrives_complete_in_every_framing_and_in_pieces() {
    for answer in [plain_answer(), plain_answer().chunked(), plain_answer().until_close()] {
        for answer in [answer.clone(), answer.clone().split(1), answer.split(3)] {
            assert_eq!(receive(answer).await, (BODY.into(), None));
        }
    }
}

#[tokio::test]
async fn a_fault_occurs_after_the_given_number_of_bytes() {
    for (framed, is_chunked) in
        [(plain_answer(), false), (plain_answer().chunked(), true), (plain_answer().chunked().split(1), true)]
    {
        for after in [0, 1, 7, 10, 99] {
            let part = BODY.as_bytes()[..after.min(BODY.len())].to_vec();
            // If a body with a `content-length` arrived completely, its end cannot be missing.
            let is_cut = is_chunked || after < BODY.len();
            let reset = receive(framed.clone().reset_after(after)).await;
            assert_eq!(reset, (part.clone(), is_cut.then_some(ErrorKind::ConnectionReset)), "{after}");
            let close = receive(framed.clone().close_after(after)).await;
            assert_eq!(close, (part, is_cut.then_some(ErrorKind::UnexpectedEof)), "{after}");
        }
    }
    let malformed = receive(plain_answer().chunked().fault(4, Fault::MalformedChunk)).await;
    assert_eq!(malformed, (b"0123".into(), Some(ErrorKind::InvalidData)));
}

#[tokio::test]
async fn a_stall_lasts_until_the_client_leaves() {
    let upstream = Upstream::start(Script::new().then(plain_answer().stall_after(3))).await;
    let mut reply = Request::get(upstream.address(), "/").send().await;
    assert_eq!(reply.next_bytes().await.unwrap().unwrap(), b"012");
    let more = tokio::time::timeout(Duration::from_millis(100), reply.next_bytes()).await;
    assert!(more.is_err(), "nothing more comes");
    assert_eq!(upstream.outcomes(), [None]);
    drop(reply);
    assert_eq!(upstream.wait_for_outcome(0).await, ResponseOutcome::ClientGone);
}

#[tokio::test]
async fn a_client_that_leaves_during_a_pause_is_detected() {
    let answer = plain_answer().chunked().split(1).pause(Duration::from_hours(1));
    let upstream = Upstream::start(Script::new().then(answer.clone()).then(answer)).await;
    for request in [0, 1] {
        let reply = Request::get(upstream.address(), "/").send().await;
        if request == 0 {
            drop(reply);
        } else {
            reply.reset();
        }
        assert_eq!(upstream.wait_for_outcome(request).await, ResponseOutcome::ClientGone);
    }
}

#[tokio::test]
async fn a_connection_can_be_reset_or_closed_without_an_answer() {
    let script =
        Script::new().then(Answer::without_status(Fault::Reset)).then(Answer::without_status(Fault::Close));
    let upstream = Upstream::start(script).await;
    for kind in [ErrorKind::ConnectionReset, ErrorKind::UnexpectedEof] {
        let error = Request::get(upstream.address(), "/").try_send().await.err().unwrap();
        assert_eq!(error.kind(), kind);
    }
    assert_eq!(upstream.outcomes(), [Some(ResponseOutcome::Faulted); 2]);
}

#[tokio::test]
async fn waits_and_pauses_last_as_long_as_requested() {
    let slow =
        plain_answer().chunked().split(5).wait(Duration::from_millis(60)).pause(Duration::from_millis(30));
    let started = Instant::now();
    assert_eq!(receive(slow).await, (BODY.into(), None));
    assert!(started.elapsed() >= Duration::from_millis(120));
}

#[tokio::test]
async fn a_stream_loses_its_end_or_gains_an_error() {
    let frames = chat_stream(&["a", "b"], "stop");
    let whole = Answer::sse(frames.clone());
    assert!(String::from_utf8(whole.body()).unwrap().ends_with("data: [DONE]\n\n"));
    let (undone, end) = receive(whole.clone().without_done()).await;
    assert_eq!((undone, end), (frames[..frames.len() - 1].concat().into_bytes(), None));
    let upstream =
        Upstream::start(Script::new().then(whole.only_first(2).add_part(error_event("overloaded")))).await;
    let reply = Request::get(upstream.address(), "/").send().await.read().await;
    assert!(reply.is_complete);
    let events = reply.json_events();
    assert_eq!(events.len(), 3);
    assert_eq!(events[1]["choices"][0]["delta"]["content"], "a");
    assert_eq!(events[2]["error"]["message"], "overloaded");
}

#[tokio::test]
async fn frames_are_read_as_they_arrive() {
    let answer = Answer::sse(["data: 1\n\n", "data: 2\n\ndata: 3\n\n"]).split(1);
    let upstream = Upstream::start(Script::new().then(answer)).await;
    let mut reply = Request::get(upstream.address(), "/").send().await;
    assert_eq!(reply.header("Content-Type"), Some("text/event-stream; charset=utf-8"));
    for frame in ["data: 1\n\n", "data: 2\n\n"] {
        assert_eq!(reply.next_frame().await.unwrap().unwrap(), frame);
    }
    assert_eq!(reply.read().await.events(), ["3"]);
}

#[tokio::test]
async fn requests_are_recorded_and_answered_by_the_script() {
    let script = Script::new()
        .when(|request| request.path.starts_with("/v1/models"), Answer::html(502))
        .then(Answer::unauthorized())
        .then(Answer::server_error());
    let upstream = Upstream::start(script).await;
    let send = async |path: &str| {
        let request =
            Request::post(upstream.address(), path).header("X-Trace", "7").json(&json!({ "a": path }));
        request.send().await.read().await
    };
    assert_eq!(send("/v1/chat/completions").await.status, 401);
    let page = send("/v1/models?limit=1").await;
    assert_eq!((page.status, page.header("content-type")), (502, Some("text/html")));
    assert_eq!(send("/v1/chat/completions").await.json()["error"]["type"], "server_error");
    assert!(send("/x").await.text().contains("no answer is scripted for POST /x"));

    let requests = upstream.stop().await;
    assert_eq!(requests.len(), 4);
    assert_eq!((requests[1].method.as_str(), requests[1].path.as_str()), ("POST", "/v1/models?limit=1"));
    assert_eq!(requests[1].header("x-trace"), Some("7"));
    assert_eq!(requests[1].json(), json!({ "a": "/v1/models?limit=1" }));
}

#[tokio::test]
async fn a_stopped_upstream_cuts_its_streams_and_can_restart() {
    let upstream = Upstream::start(Script::new().then(plain_answer().stall_after(3))).await;
    let address = upstream.address();
    let mut reply = Request::get(address, "/").send().await;
    assert_eq!(reply.next_bytes().await.unwrap().unwrap(), b"012");
    upstream.stop().await;
    assert_eq!(reply.next_bytes().await.unwrap_err().kind(), ErrorKind::UnexpectedEof);
    assert_eq!(
        Request::get(address, "/").try_send().await.err().unwrap().kind(),
        ErrorKind::ConnectionRefused
    );

    let again = Upstream::start_at(address, |_: &ReceivedRequest| plain_answer()).await;
    assert_eq!(Request::get(again.address(), "/").send().await.read().await.text(), BODY);
}
