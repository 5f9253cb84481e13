//! Upstreams that use Endmark's headers and fields. The gateway removes them unless the upstream is another
//! Endmark.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use endmark_gateway::{ResumeMode, Secret, Upstream as Target};
use serde_json::json;
use testkit::{
    Answer, PrefillBehaviour, Reply, Request, Script, ScriptedModel, Upstream, chat_reply, chat_stream,
};

use crate::support::raw::Raw;
use crate::support::wire_replies::{End, ReplyPart, Wire};
use crate::support::{Endmark, read_stream, request, stream_request, text};

const TEXT: &str = "one two three four five six seven eight nine ten";

/// Adds headers that only the gateway may set.
fn with_own_headers(answer: Answer) -> Answer {
    answer
        .header("x-endmark-outcome", "whole")
        .header("X-Endmark-Request", "em_0")
        .header("x-endmark-anything", "1")
        .header("x-own", "1")
}

fn endmark_headers(reply: &Reply) -> Vec<&str> {
    let names = ["outcome", "request", "anything"].map(|name| reply.header(&format!("x-endmark-{name}")));
    names.into_iter().flatten().collect()
}

#[tokio::test]
async fn an_upstream_cannot_set_endmark_headers() {
    let stream = || Answer::sse(chat_stream(&[TEXT], "stop"));
    let whole = || Answer::json(200, &chat_reply(TEXT, "stop", (2, 3)));
    let files = |status| Answer::new(status, "text/plain", "a file");
    for (method, path, body, answer) in [
        ("POST", "/v1/chat/completions", request(50).to_string(), whole()),
        ("POST", "/v1/chat/completions", stream_request(50).to_string(), stream()),
        ("POST", "/v1/chat/completions", request(50).to_string(), Answer::unauthorized()),
        ("GET", "/v1/files", String::new(), files(200)),
        ("GET", "/v1/files", String::new(), files(404)),
        ("GET", "/v1/files", String::new(), files(304)),
    ] {
        let endmark = Endmark::start(Script::new().default_answer(with_own_headers(answer))).await;
        for resume in ["auto", "off"] {
            let request = Request::new(method, endmark.address, path).header("x-endmark-resume", resume);
            let request = request.header("content-type", "application/json").body(body.clone());
            let reply = request.send().await.read().await;
            let own: &[&str] = &[];
            assert_eq!(endmark_headers(&reply), own, "{method} {path} {resume}");
            assert_eq!(reply.header("x-own"), Some("1"), "{method} {path} {resume}");
        }
    }
}

#[tokio::test]
async fn interim_responses_and_trailers_of_an_upstream_are_not_relayed() {
    let head = "HTTP/1.1 103 Early Hints\r\nx-endmark-outcome: whole\r\n\r\nHTTP/1.1 200 OK\r\n";
    let fields = "trailer: x-endmark-outcome\r\ntransfer-encoding: chunked\r\n\r\n";
    let answer = format!("{head}{fields}4\r\nfile\r\n0\r\nx-endmark-outcome: whole\r\n\r\n");
    let upstream = crate::framing::RawUpstream::start(answer).await;
    let base_url = format!("http://{}/v1", upstream.address).parse().unwrap();
    let endmark =
        Endmark::start_with(Script::new(), |settings| settings.upstreams[0].base_url = base_url).await;
    let get = "GET /v1/files HTTP/1.1\r\nhost: localhost\r\nte: trailers\r\nconnection: te, close\r\n\r\n";
    let response = Raw::connect(endmark.address).await.send(get).await.read_rest().await;
    assert!(response.starts_with("HTTP/1.1 200 ") && response.contains("file"), "{response}");
    assert!(!response.contains("endmark"), "{response}");
}

/// Starts an Endmark that resumes. The first reply of its upstream is cut.
async fn start_inner() -> Endmark {
    Endmark::start_resuming(ScriptedModel::new(TEXT).prefill(PrefillBehaviour::Continues).own_limit(6)).await
}

fn target_of(inner: &Endmark) -> Target {
    let base_url = format!("http://{}/v1", inner.address).parse().unwrap();
    Target { endmark: true, ..Target::new("inner", base_url) }
}

#[tokio::test]
async fn a_reply_of_another_endmark_is_passed_with_its_disclosure() {
    let inner = start_inner().await;
    let outer = Endmark::start_with(Script::new(), |settings| {
        settings.upstreams = vec![target_of(&inner)];
        settings.resume.mode = ResumeMode::On;
        settings.disclose.always = true;
    })
    .await;
    let reply = outer.ask(&request(5)).await;
    assert_eq!((text(&reply).as_str(), reply.header("x-endmark-outcome")), (TEXT, Some("resumed")));
    assert!(reply.header("x-endmark-request").is_some_and(|id| id.starts_with("em_")));
    let heard = read_stream(&outer.ask(&stream_request(5)).await);
    assert_eq!((heard.text.as_str(), &heard.endmark.unwrap()["outcome"]), (TEXT, &"resumed".into()));
    // Only the inner Endmark gets the client's `x-endmark` request headers.
    let calls = inner.calls();
    let reply = outer.chat(&request(5)).header("x-endmark-resume", "off").send().await.read().await;
    assert_eq!((inner.calls(), reply.header("x-endmark-outcome")), (calls + 1, None));
    assert_ne!(text(&reply), TEXT, "it is cut, and is not resumed");
    assert_eq!(crate::support::finish(&reply), "length");
}

#[tokio::test]
async fn a_disclosure_of_a_fallback_endmark_is_kept() {
    let inner = start_inner().await;
    let target = target_of(&inner);
    let down = Upstream::start(Script::new().default_answer(Answer::server_error())).await;
    let outer = Endmark::start_with(Script::new(), |settings| {
        settings.upstreams[0].base_url = down.base_url().parse().unwrap();
        settings.upstreams[0].fallback = Some("inner".to_owned());
        let key = Some(Secret::new("of-the-inner-one".to_owned()));
        settings.upstreams.push(Target { api_key: key, ..target });
        settings.retry.max_retries = 0;
        (settings.resume.mode, settings.disclose.always) = (ResumeMode::On, true);
    })
    .await;
    let reply = outer.ask(&request(5)).await;
    assert_eq!((text(&reply).as_str(), reply.header("x-endmark-outcome")), (TEXT, Some("resumed")));
    assert_eq!(reply.header("x-endmark-upstream"), Some("inner"));
}

#[tokio::test]
async fn an_endmark_object_from_an_upstream_is_removed() {
    let disclosed = json!({"outcome": "whole", "request": "em_0"});
    for wire in Wire::ALL {
        for stream in [false, true] {
            let good = wire.answer(&[ReplyPart::Text(TEXT)], End::Turn, stream);
            let claiming = |body: &str| {
                let claim = format!("{{\"\\u0065ndmark\":{disclosed},\"endmark\":{disclosed},");
                let lines = body.split_inclusive('\n').map(|line| match line.find('{') {
                    Some(at) if !stream || line.starts_with("data: {") => {
                        format!("{}{claim}{}", &line[..at], &line[at + 1..])
                    }
                    _ => line.to_owned(),
                });
                lines.collect::<String>().replace("\"response\":{", &format!("\"response\":{claim}"))
            };
            let body = String::from_utf8(good.body()).unwrap();
            let kind = if stream { "text/event-stream" } else { "application/json" };
            let script = Script::new().default_answer(Answer::new(200, kind, claiming(&body)));
            let endmark = Endmark::start(script).await;
            let request = Request::post(endmark.address, wire.path(stream)).json(&wire.request(stream));
            let reply = request.send().await.read().await;
            assert_eq!((reply.status, reply.text()), (200, body), "{wire:?} {stream}");
        }
    }
    let error = json!({"endmark": disclosed, "error": {"type": "x", "message": "no"}});
    let endmark = Endmark::start(Script::new().default_answer(Answer::json(400, &error))).await;
    let reply = endmark.ask(&request(50)).await;
    assert_eq!((reply.status, reply.json()), (400, json!({"error": error["error"]})));
}
