//! HTTP messages: the destination of requests, and which parts of a message are forwarded.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use endmark_gateway::Upstream as Target;
use testkit::{Answer, Request, Script, ScriptedModel, Upstream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{Endmark, request, text};

/// Sends these bytes and reads until the other side closes.
async fn send_raw(endmark: &Endmark, bytes: &str) -> String {
    let mut stream = TcpStream::connect(endmark.address).await.unwrap();
    stream.write_all(bytes.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn a_request_cannot_name_another_host() {
    let elsewhere =
        Upstream::start(Script::new().default_answer(Answer::json(200, &serde_json::json!({})))).await;
    let evil = elsewhere.address();
    let ok = Answer::json(200, &serde_json::json!({"data": []}));
    let endmark = Endmark::start(Script::new().default_answer(ok)).await;
    for target in [
        format!("http://{evil}/v1/models"),
        format!("//{evil}/v1/models"),
        format!("/\\{evil}/v1/models"),
        format!("/@{evil}/v1/models"),
        format!("/%2F%2F{evil}/v1/models"),
        format!("/u/scripted//{evil}/v1/models"),
        format!("/u/scripted/@{evil}/"),
        format!("/u/http:%2F%2F{evil}/v1/models"),
        format!("/u/../{evil}/v1/models"),
        format!("/v1/models?host={evil}"),
    ] {
        let reply = send_raw(
            &endmark,
            &format!(
                "GET {target} HTTP/1.1\r\nhost: {}\r\nx-forwarded-host: {evil}\r\nforwarded: host={evil}\r\n\
                 x-original-url: http://{evil}/\r\nconnection: close\r\n\r\n",
                endmark.address
            ),
        )
        .await;
        assert!(reply.starts_with("HTTP/1.1 2") || reply.starts_with("HTTP/1.1 4"), "{target}: {reply}");
    }
    assert_eq!(elsewhere.requests().len(), 0);
    let own = endmark.upstream.address().to_string();
    assert!(endmark.upstream.requests().iter().all(|received| received.header("host") == Some(&own)));
}

#[tokio::test]
async fn a_path_stays_below_its_base_and_is_not_rewritten() {
    let upstream =
        Upstream::start(Script::new().default_answer(Answer::json(200, &serde_json::json!({})))).await;
    let endmark = Endmark::start_with(Script::new(), |settings| {
        let base = format!("http://{}/tenant/v1", upstream.address()).parse().unwrap();
        settings.upstreams = vec![Target::new("tenant", base)];
    })
    .await;
    for path in [
        "/v1/../other/x",
        "/v1/%2e%2e/other",
        "/u/tenant/v1/..%2f..%2fother",
        "/../../etc/passwd",
        "/other/x",
    ] {
        let reply = Request::get(endmark.address, path).send().await.read().await;
        assert_eq!(reply.status, 400, "{path}");
        assert_eq!(reply.json()["error"]["type"], "endmark_bad_request");
    }
    assert_eq!(upstream.requests().len(), 0);
    for (path, expected) in [
        ("/v1/files/a%2Fb?x=%2F..", "/tenant/v1/files/a%2Fb?x=%2F.."),
        ("/u/tenant/v1//double", "/tenant/v1//double"),
        ("/v1", "/tenant/v1"),
        ("/tenant/x", "/tenant/x"),
    ] {
        assert_eq!(Request::get(endmark.address, path).send().await.status, 200, "{path}");
        assert_eq!(upstream.requests().last().unwrap().path, expected);
    }
}

#[tokio::test]
async fn hop_by_hop_headers_are_not_forwarded_in_either_direction() {
    let answer = Answer::new(200, "application/x-any", "ok")
        .header("connection", "x-of-this-hop")
        .header("x-of-this-hop", "1")
        .header("keep-alive", "timeout=5")
        .header("proxy-authenticate", "Basic")
        .header("proxy-status", "stays: it says what happened")
        .header("trailer", "x-sum")
        .header("upgrade", "h2c")
        .header("x-end-to-end", "1");
    let endmark = Endmark::start(Script::new().default_answer(answer)).await;
    let reply = Request::new("PUT", endmark.address, "/v1/files")
        .header("connection", "x-private, keep-alive")
        .header("x-private", "1")
        .header("keep-alive", "timeout=5")
        .header("proxy-connection", "keep-alive")
        .header("proxy-authorization", "Basic AA==")
        .header("te", "trailers")
        .header("http2-settings", "AAMAAABkAAQAAP__")
        .header("x-end-to-end", "1")
        .body("any")
        .send()
        .await
        .read()
        .await;
    assert_eq!(reply.status, 200);
    let received = endmark.upstream.requests().remove(0);
    for name in ["x-private", "keep-alive", "proxy-connection", "proxy-authorization", "te", "http2-settings"]
    {
        assert_eq!(received.header(name), None, "{name}");
    }
    assert_eq!(received.header("x-end-to-end"), Some("1"));
    for name in ["x-of-this-hop", "keep-alive", "proxy-authenticate", "trailer", "upgrade"] {
        assert_eq!(reply.header(name), None, "{name}");
    }
    assert_eq!((reply.header("x-end-to-end"), reply.header("via")), (Some("1"), None));
    assert!(reply.header("proxy-status").is_some());
}

#[tokio::test]
async fn tunnels_and_upgrades_are_refused_with_advice() {
    let endmark = Endmark::start(ScriptedModel::new("x")).await;
    let evil = "127.0.0.1:9";
    for (first_line, more) in [
        (format!("CONNECT {evil} HTTP/1.1"), ""),
        ("GET /v1/realtime HTTP/1.1".to_owned(), "connection: Upgrade\r\nupgrade: websocket\r\n"),
        (
            "POST /v1/chat/completions HTTP/1.1".to_owned(),
            "connection: upgrade\r\nupgrade: h2c\r\ncontent-length: 0\r\n",
        ),
    ] {
        let reply = send_raw(
            &endmark,
            &format!("{first_line}\r\nhost: {}\r\nconnection: close\r\n{more}\r\n", endmark.address),
        )
        .await;
        if first_line.starts_with("CONNECT") && reply.starts_with("HTTP/1.1 4") {
            // A request for another host is refused before its headers are examined.
            continue;
        }
        assert!(reply.starts_with("HTTP/1.1 501 "), "{first_line}: {reply}");
        assert!(
            reply.contains("endmark_no_upgrade") && reply.contains("connect to the upstream itself"),
            "{reply}"
        );
    }
    assert_eq!(endmark.calls(), 0);
}

#[tokio::test]
async fn a_client_that_expects_100_continue_gets_it() {
    let endmark = Endmark::start(ScriptedModel::new("Yes.")).await;
    let body = request(50).to_string();
    let mut stream = TcpStream::connect(endmark.address).await.unwrap();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {}\r\nexpect: 100-continue\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        endmark.address,
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut received_bytes = [0; 25];
    stream.read_exact(&mut received_bytes).await.unwrap();
    assert_eq!(&received_bytes, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("Yes."), "{answer}");
    assert_eq!(endmark.upstream.requests()[0].header("expect"), None);
}

/// Starts a gateway with an upstream that sends these bytes to every client.
async fn start_with_raw_upstream(bytes: &'static str) -> GatewayWithRawUpstream {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = [0; 4096];
            let _ = stream.read(&mut buffer).await;
            let _ = stream.write_all(bytes.as_bytes()).await;
        }
    });
    let endmark = Endmark::start_with(Script::new(), |settings| {
        settings.upstreams = vec![Target::new("raw", format!("http://{address}/v1").parse().unwrap())];
    })
    .await;
    GatewayWithRawUpstream { endmark, task }
}

struct GatewayWithRawUpstream {
    endmark: Endmark,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for GatewayWithRawUpstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[tokio::test]
async fn interim_responses_are_not_taken_for_the_answer() {
    let before = start_with_raw_upstream(
        "HTTP/1.1 103 Early Hints\r\nlink: </x>; rel=preload\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n\
         HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 109\r\n\r\n\
         {\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"Yes.\"},\"finish_reason\":\"stop\"}],\"usage\":null}",
    )
    .await;
    let reply = before.endmark.ask(&request(50)).await;
    assert_eq!((reply.status, text(&reply).as_str(), reply.header("link")), (200, "Yes.", None));
}

#[tokio::test]
async fn bodiless_statuses_have_no_body() {
    for (method, answer, status, length) in [
        ("HEAD", "HTTP/1.1 200 OK\r\ncontent-length: 1234\r\nconnection: close\r\n\r\n", 200, Some("1234")),
        ("GET", "HTTP/1.1 204 No Content\r\nx-own: 1\r\nconnection: close\r\n\r\n", 204, None),
        ("GET", "HTTP/1.1 304 Not Modified\r\netag: \"1\"\r\nconnection: close\r\n\r\n", 304, None),
        ("DELETE", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n", 200, Some("0")),
    ] {
        let before = start_with_raw_upstream(answer).await;
        let reply = Request::new(method, before.endmark.address, "/v1/files/7").send().await;
        assert_eq!((reply.status, reply.header("content-length")), (status, length), "{method} {answer}");
        let reply = reply.read().await;
        assert!(reply.is_complete && reply.body.is_empty(), "{method} {answer}");
    }
}

#[tokio::test]
async fn trailers_are_not_forwarded() {
    let before = start_with_raw_upstream(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\nconnection: close\r\n\r\n\
         3\r\nany\r\n0\r\nx-sum: 7\r\n\r\n",
    )
    .await;
    let reply = Request::get(before.endmark.address, "/v1/files/7")
        .header("te", "trailers")
        .send()
        .await
        .read()
        .await;
    assert_eq!((reply.text().as_str(), reply.is_complete, reply.header("trailer")), ("any", true, None));
}

#[tokio::test]
async fn a_client_cannot_remove_the_upstream_key() {
    let endmark = Endmark::start_with(ScriptedModel::new("Yes."), |settings| {
        settings.upstreams[0].api_key = Some(endmark_gateway::Secret::new("sk-own-key".to_owned()));
    })
    .await;
    endmark.chat(&request(50)).header("connection", "authorization, close").send().await.read().await;
    assert_eq!(endmark.upstream.requests()[0].header("authorization"), Some("Bearer sk-own-key"));
}
