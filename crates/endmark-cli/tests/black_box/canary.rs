//! Puts secrets into every input that can contain one, and checks that no output contains them in any form.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use endmark_store::{Reader, StoreLocation};
use serde_json::{Value, json};
use testkit::{Answer, ChatFrames, ForwardProxy, ReceivedRequest, Request, Upstream, chat_reply};

use crate::run::TestFolder;

// One secret for each input. No secret is a part of another.
const AUTHORIZATION: &str = "canary-Authorization/1+a";
const API_KEY: &str = "canary-ApiKey/2+b";
const COOKIE: &str = "canary-Cookie/3+c";
const QUERY: &str = "canary-Query.4";
const PROXY_PASSWORD: &str = "canary-ProxyPassword~5";
const KEY_IN_CONFIG: &str = "canary-KeyInConfig/6+d";
const KEY_IN_ENVIRONMENT: &str = "canary-KeyInEnvironment/7+e";
const KEY_IN_FILE: &str = "canary-KeyInFile/8+f";
const CLIENT_PROXY_PASSWORD: &str = "canary-ClientsProxyPassword/9";
const CANARIES: [&str; 9] = [
    AUTHORIZATION,
    API_KEY,
    COOKIE,
    QUERY,
    PROXY_PASSWORD,
    KEY_IN_CONFIG,
    KEY_IN_ENVIRONMENT,
    KEY_IN_FILE,
    CLIENT_PROXY_PASSWORD,
];

/// Returns every form in which a secret may occur. Shares no code with the product.
fn encoded_forms(secret: &str) -> Vec<String> {
    let mut forms = vec![secret.to_owned()];
    for before in ["", "x", "xy"] {
        let text = format!("{before}{secret}");
        let (first, last) = ((before.len() * 8).div_ceil(6), text.len() * 8 / 6);
        forms.push(STANDARD_NO_PAD.encode(&text)[first..last].to_owned());
        forms.push(URL_SAFE_NO_PAD.encode(&text)[first..last].to_owned());
    }
    let escaped = |kept: &str| {
        let escape = |c: char| {
            if c.is_ascii_alphanumeric() || kept.contains(c) {
                c.to_string()
            } else {
                format!("%{:02X}", u32::from(c))
            }
        };
        secret.chars().map(escape).collect::<String>()
    };
    for kept in ["", "-", "-._~", "-._~+"] {
        let upper = escaped(kept);
        let lower = ["%2B", "%2F", "%2D", "%2E", "%7E"]
            .iter()
            .fold(upper.clone(), |text, hex| text.replace(hex, &hex.to_lowercase()));
        forms.extend([upper, lower]);
    }
    forms
}

fn assert_clean(place: &str, bytes: &[u8]) {
    for canary in CANARIES {
        for form in encoded_forms(canary) {
            let found = memchr::memmem::find(bytes, form.as_bytes());
            if let Some(at) = found {
                let around = &bytes[at.saturating_sub(300)..bytes.len().min(at + 300)];
                panic!("{canary} as {form} in {place}: …{}…", String::from_utf8_lossy(around));
            }
        }
    }
}

/// An upstream that repeats the request in its error messages, and cuts its streams.
fn echo_in_errors(received: &ReceivedRequest) -> Answer {
    let found = format!("{} {:?}", received.path, received.headers);
    let body: Value = serde_json::from_slice(&received.body).unwrap_or_default();
    if body["messages"].as_array().is_some_and(|messages| messages.len() > 1) {
        return Answer::error(400, "invalid_request_error", None, &format!("no: {found}"));
    }
    match body["model"].as_str().unwrap_or_default() {
        "refuse" => {
            Answer::error(401, "invalid_request_error", Some("invalid_api_key"), &format!("who is {found}?"))
        }
        "overload" => Answer::error(503, "server_error", None, &format!("not now: {found}")),
        "page" => Answer::new(502, "text/html", format!("<html>{found}</html>")),
        "cut" => Answer::sse(ChatFrames::new().text("The harbour ").text("was").cut()),
        "half" => Answer::json(200, &chat_reply("The harbour", "length", (1, 2))),
        _ => Answer::json(200, &chat_reply("Yes.", "stop", (1, 1))),
    }
}

struct Served {
    child: Child,
    address: Option<SocketAddr>,
}

fn start(place: &TestFolder, log: &Path) -> Served {
    let mut command: Command = place.command(&["serve", "--listen", "127.0.0.1:0"]);
    let child = command.stdout(Stdio::null()).stderr(File::create(log).unwrap()).spawn().unwrap();
    let mut served = Served { child, address: None };
    for _ in 0..1_000 {
        let found = String::from_utf8_lossy(&fs::read(log).unwrap()).into_owned();
        let rest = found.split_once("listens on http://").map(|(_, rest)| rest);
        if let Some((address, _)) = rest.and_then(|rest| rest.split_once(". ")) {
            served.address = Some(address.parse().unwrap());
            return served;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("it never listened: {}", fs::read_to_string(log).unwrap());
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The secrets that authorise a request. Every request but one contains exactly one of them.
const AUTHORISING_SECRETS: [&str; 3] = [AUTHORIZATION, API_KEY, QUERY];

/// Builds a request with this secret, and with all secrets that do not authorise.
fn request(served: &Served, method: &str, path: &str, secret: &str) -> Request {
    let query = if secret == QUERY { format!("?key={secret}") } else { String::new() };
    let request = Request::new(method, served.address.unwrap(), &format!("{path}{query}"))
        .header("cookie", &format!("session={COOKIE}; theme=dark"))
        .header(
            "proxy-authorization",
            &format!("Basic {}", STANDARD_NO_PAD.encode(format!("me:{CLIENT_PROXY_PASSWORD}"))),
        );
    match secret {
        AUTHORIZATION => request.header("authorization", &format!("Bearer {secret}")),
        API_KEY => request.header("x-api-key", secret),
        _ => request,
    }
}

async fn assert_two_secrets_are_accepted(served: &Served) {
    let two = request(served, "POST", "/u/first/v1/chat/completions", QUERY).header("x-api-key", API_KEY);
    let answered = two.json(&chat("half", false)).send().await.read().await;
    assert_eq!(answered.status, 200, "{}", answered.text());
    assert_clean("the answer to two secrets", &answered.body);
}

fn chat(model: &str, stream: bool) -> Value {
    json!({"model": model, "stream": stream, "messages": [{"role": "user", "content": "Tell."}]})
}

fn configuration(upstream: &str, proxy: SocketAddr) -> String {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    format!(
        "[resume]\nmode = \"on\"\n[retry]\nmax_retries = 0\n[limits]\nreconnect_seconds = 0\n\
         [upstreams.first]\nbase_url = \"{upstream}\"\nfallback = \"second\"\n\
         [upstreams.second]\nbase_url = \"{upstream}\"\napi_key = {{ env = \"SECOND_KEY\" }}\n\
         [upstreams.third]\nbase_url = \"{upstream}\"\napi_key = \"{KEY_IN_CONFIG}\"\n\
         [upstreams.fourth]\nbase_url = \"{upstream}\"\napi_key = {{ file = \"fourth.key\" }}\n\
         [upstreams.absent]\nbase_url = \"http://{closed}/v1\"\n\
         [upstreams.far]\nbase_url = \"http://upstream.invalid/v1\"\n\
         [upstreams.farther]\nbase_url = \"https://upstream.invalid/v1\"\nproxy = \"http://me:{PROXY_PASSWORD}@{proxy}\"\n"
    )
}

#[tokio::test]
async fn no_output_contains_a_secret() {
    let upstream = Upstream::start(echo_in_errors).await;
    // The proxy rejects every client before it connects to the upstream.
    let proxy = ForwardProxy::start(Some("nobody")).await;
    let place = TestFolder::new()
        .with_file("endmark.toml", configuration(&upstream.base_url(), proxy.address()))
        .with_file("fourth.key", format!("{KEY_IN_FILE}\n"))
        .with_variable("SECOND_KEY", KEY_IN_ENVIRONMENT)
        .with_variable("HTTP_PROXY", &format!("http://me:{PROXY_PASSWORD}@{}", proxy.address()))
        .with_variable("ENDMARK_LOG", "trace");
    let log = place.path().join("log.txt");
    let mut served = start(&place, &log);

    let mut own_errors = 0;
    let mut secrets = AUTHORISING_SECRETS.into_iter().cycle();
    let mut next = || secrets.next().unwrap();
    for upstream in ["first", "second", "third", "fourth", "absent", "far", "farther"] {
        for model in ["refuse", "overload", "page", "cut", "half"] {
            for stream in [false, true] {
                let path = format!("/u/{upstream}/v1/chat/completions");
                let request = request(&served, "POST", &path, next());
                let reply = request.json(&chat(model, stream)).send().await.read().await;
                let text = reply.text();
                if text.contains("\"endmark_") {
                    own_errors += 1;
                    assert_clean(&format!("the answer to {path} for {model}"), &reply.body);
                }
                // The client gets the upstream's own message, but without any key of the gateway.
                for own in [KEY_IN_CONFIG, KEY_IN_ENVIRONMENT, KEY_IN_FILE, PROXY_PASSWORD] {
                    assert!(!text.contains(own), "{own} in the answer to {path} for {model}: {text}");
                }
            }
        }
    }
    assert!(own_errors > 20, "{own_errors}");
    for (method, path, body) in [
        ("GET", "/endmark/nothing", ""),
        ("GET", "/endmark/healthz", ""),
        ("GET", "/endmark/readyz", ""),
        ("GET", "/endmark/metrics", ""),
        ("GET", "/u/far/v1/models", ""),
        ("GET", "/u/absent/v1/models", ""),
        ("POST", "/v1/chat/completions", "{\"model\": "),
        ("POST", "/v1/chat/completions", ""),
    ] {
        let reply = request(&served, method, path, next()).body(body).send().await.read().await;
        assert_clean(path, &reply.body);
        assert_clean(path, format!("{:?}", reply.headers).as_bytes());
    }
    assert_two_secrets_are_accepted(&served).await;
    // Check that the keys really reached the upstream.
    let received = format!("{:?}", upstream.requests());
    for canary in [AUTHORIZATION, API_KEY, COOKIE, QUERY, KEY_IN_CONFIG, KEY_IN_ENVIRONMENT, KEY_IN_FILE] {
        assert!(received.contains(canary), "{canary} never arrived");
    }
    let seen = proxy.requests();
    let found = STANDARD_NO_PAD.encode(format!("me:{PROXY_PASSWORD}"));
    for method in ["POST http://upstream.invalid/", "CONNECT upstream.invalid:443"] {
        let hit = seen.iter().find(|hit| hit.line.starts_with(method)).unwrap();
        assert!(hit.authorization.as_deref().unwrap().contains(found.trim_end_matches('=')), "{hit:?}");
    }

    Command::new("kill").args(["-TERM", &served.child.id().to_string()]).status().unwrap();
    assert_eq!(served.child.wait().unwrap().code(), Some(0));
    let logged = fs::read(&log).unwrap();
    assert!(String::from_utf8_lossy(&logged).contains("trace      hyper"), "it was logged in all detail");
    assert_clean("the log", &logged);
    for name in ["endmark.db", "endmark.db-wal"] {
        if let Ok(bytes) = fs::read(place.store().with_file_name(name)) {
            assert_clean(name, &bytes);
        }
    }
    for command in [
        ["config", "show"],
        ["config", "check"],
        ["log", "--json"],
        ["doctor", "--json"],
        ["config", "--json"],
    ] {
        let run = place.run(&command);
        assert_clean(&command.join(" "), run.output.as_bytes());
        assert_clean(&command.join(" "), run.errors.as_bytes());
    }
    let log = place.run(&["log", "--json"]).envelope();
    let rows = log["data"]["recoveries"].as_array().or(log["data"]["rows"].as_array()).map_or(0, Vec::len);
    assert!(rows > 0 || log["data"].to_string().len() > 200, "cut replies were recorded: {log}");
}

/// An upstream that repeats the request in every text of its replies, and cuts all replies.
fn echo_in_replies(received: &ReceivedRequest) -> Answer {
    let found = format!("{} {:?}", received.path, received.headers);
    // The padding makes the gateway clip the text inside a secret.
    let model = format!("{}{found}", "m".repeat(90));
    let body: Value = serde_json::from_slice(&received.body).unwrap_or_default();
    let call = json!({"index": 0, "id": "c", "type": "function", "function": {"name": found, "arguments": "{\"a\": \"b"}});
    let mut reply = chat_reply(&format!("The harbour {found}"), "length", (1, 2));
    reply["model"] = json!(model);
    if body["model"].as_str().is_some_and(|model| model.starts_with("calls")) {
        reply["choices"][0]["message"] = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    }
    if body["stream"] == true {
        let mut chunk = reply.clone();
        chunk["object"] = json!("chat.completion.chunk");
        chunk["choices"][0]["delta"] = chunk["choices"][0]["message"].take();
        return Answer::sse(ChatFrames::new().raw(&format!("data: {chunk}\n\n")).done());
    }
    Answer::json(200, &reply)
}

#[tokio::test]
async fn a_secret_repeated_by_a_reply_is_not_stored_or_logged() {
    let upstream = Upstream::start(echo_in_replies).await;
    let proxy = ForwardProxy::start(Some("nobody")).await;
    let settings = configuration(&upstream.base_url(), proxy.address());
    let place = TestFolder::new()
        .with_file("endmark.toml", format!("[store_policy]\nkeep_text = true\n{settings}"))
        .with_file("fourth.key", KEY_IN_FILE)
        .with_variable("SECOND_KEY", KEY_IN_ENVIRONMENT)
        .with_variable("ENDMARK_LOG", "trace");
    let log = place.path().join("log.txt");
    let mut served = start(&place, &log);
    for upstream in ["first", "second", "third", "fourth"] {
        for secret in AUTHORISING_SECRETS {
            for model in ["text", "calls", &format!("text {secret}")] {
                for stream in [false, true] {
                    let path = format!("/u/{upstream}/v1/chat/completions");
                    let request = request(&served, "POST", &path, secret);
                    let request = request.header("x-endmark-task", &format!("task {secret}"));
                    request.json(&chat(model, stream)).send().await.read().await;
                }
            }
        }
    }
    Command::new("kill").args(["-TERM", &served.child.id().to_string()]).status().unwrap();
    assert_eq!(served.child.wait().unwrap().code(), Some(0));
    let stored = fs::read(place.store()).unwrap();
    assert_clean("the store", &stored);
    // A clipped text must not contain the beginning of a secret either.
    assert!(memchr::memmem::find(&stored, b"canary").is_none());
    assert_clean("the log", &fs::read(&log).unwrap());
    let calls = Reader::open(&StoreLocation::sqlite(place.store())).unwrap();
    let answered = calls.recent_calls(1_000).unwrap();
    assert!(answered.len() > 24 && answered.iter().any(|call| call.answered_model.is_some()), "{answered:?}");
    assert!(memchr::memmem::find(&stored, b"The harbour").is_some(), "texts were kept");
}
