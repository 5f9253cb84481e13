//! Starts a gateway on a free port, with a scripted upstream and a real SQLite file.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

#[macro_use]
pub(crate) mod over_postgresql;
pub(crate) mod raw;
pub(crate) mod wire_replies;

use std::net::SocketAddr;
use std::sync::Arc;

use endmark_gateway::{Gateway, ResumeMode, Secret, Settings, Upstream as Target, serve};
use endmark_store::{LogFilter, RecoveryRow, Store, StoreLocation};
use serde_json::{Value, json};
use testkit::{Reply, Request, Respond, Upstream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A running gateway, stopped when it is dropped.
pub(crate) struct Endmark {
    pub(crate) address: SocketAddr,
    pub(crate) upstream: Upstream,
    pub(crate) store: Store,
    task: JoinHandle<()>,
    stop: Option<oneshot::Sender<()>>,
    folder: Option<tempfile::TempDir>,
}

impl Endmark {
    /// Starts a gateway whose upstream gives these answers. `change` modifies the default settings.
    pub(crate) async fn start_with(respond: impl Respond, change: impl FnOnce(&mut Settings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let location = over_postgresql::location(folder.path());
        let mut endmark = Self::start_on(&location, respond, change).await;
        endmark.folder = Some(folder);
        endmark
    }

    /// Like [`Self::start_with`], but uses the store at this location.
    pub(crate) async fn start_on(
        location: &StoreLocation,
        respond: impl Respond,
        change: impl FnOnce(&mut Settings),
    ) -> Self {
        let upstream = Upstream::start(respond).await;
        let mut settings = Settings {
            upstreams: vec![Target::new("scripted", upstream.base_url().parse().unwrap())],
            ..Settings::default()
        };
        change(&mut settings);
        // The `endmark` command sets the same default when it reads a configuration.
        settings.budget.is_closed_on_store_error |= location.postgres().is_some();
        let store = Store::open(location).unwrap();
        let (address, task, stop) = spawn_gateway(settings, store.clone());
        Self { address, upstream, store, task, stop: Some(stop), folder: None }
    }

    /// Starts a second gateway with the same store and upstream, and nothing else in memory.
    pub(crate) fn restart(&self, change: impl FnOnce(&mut Settings)) -> RestartedGateway {
        let mut settings = Settings {
            upstreams: vec![Target::new("scripted", self.upstream.base_url().parse().unwrap())],
            ..Settings::default()
        };
        change(&mut settings);
        let (address, task, stop) = spawn_gateway(settings, self.store.clone());
        RestartedGateway { address, task, _stop: stop }
    }

    /// Starts a gateway with two upstreams. The second has its own key and model.
    pub(crate) async fn with_fallback(
        first: impl Respond,
        second: &Upstream,
        (key, model): (&str, &str),
        change: impl FnOnce(&mut Settings),
    ) -> Self {
        let base_url = second.base_url().parse().unwrap();
        Self::start_with(first, |settings| {
            settings.upstreams[0].fallback = Some("second".to_owned());
            settings.upstreams.push(Target {
                api_key: Some(Secret::new(key.to_owned())),
                model: Some(model.to_owned()),
                ..Target::new("second", base_url)
            });
            change(settings);
        })
        .await
    }

    /// Starts a gateway that resumes every reply (mode `on`).
    pub(crate) async fn start_resuming(respond: impl Respond) -> Self {
        Self::start_with(respond, |settings| settings.resume.mode = ResumeMode::On).await
    }

    /// Starts a gateway with the default settings.
    pub(crate) async fn start(respond: impl Respond) -> Self {
        Self::start_with(respond, |_| {}).await
    }

    /// Returns a chat request with this body.
    pub(crate) fn chat(&self, body: &Value) -> Request {
        Request::post(self.address, "/v1/chat/completions").header("authorization", "Bearer key").json(body)
    }

    /// Sends a chat request and reads the complete reply.
    pub(crate) async fn ask(&self, body: &Value) -> Reply {
        self.chat(body).send().await.read().await
    }

    /// Returns a future that sends a request, for another task.
    pub(crate) fn ask_later(&self, body: &Value) -> impl Future<Output = Reply> + Send + 'static {
        let request = self.chat(body);
        async move { request.send().await.read().await }
    }

    /// Returns the log, newest row first, when it has at least `rows` rows.
    pub(crate) async fn log(&self, rows: usize) -> Vec<RecoveryRow> {
        for _ in 0..200 {
            let log = self.store.recent(100, &LogFilter::default()).unwrap();
            if log.len() >= rows {
                return log;
            }
            tokio::time::sleep(std::time::Duration::from_millis(25)).await;
        }
        panic!("the log never had {rows} rows: {:?}", self.store.recent(100, &LogFilter::default()));
    }

    /// Returns the row of the only call, when it exists.
    pub(crate) async fn only_row(&self) -> endmark_store::UsageRow {
        for _ in 0..200 {
            let mut rows = self.store.reader().unwrap().recent_calls(9).unwrap();
            if rows.len() == 1 {
                return rows.remove(0);
            }
            tokio::time::sleep(std::time::Duration::from_millis(25)).await;
        }
        panic!("there never was one row");
    }

    /// Returns the number of requests that the upstream received.
    pub(crate) fn calls(&self) -> usize {
        self.upstream.requests().len()
    }

    /// Asks the gateway to stop, and waits until it has stopped.
    pub(crate) async fn stop(mut self) {
        drop(self.stop.take());
        (&mut self.task).await.unwrap();
    }
}

/// A second gateway, stopped when it is dropped.
pub(crate) struct RestartedGateway {
    pub(crate) address: SocketAddr,
    task: JoinHandle<()>,
    _stop: oneshot::Sender<()>,
}

impl Drop for RestartedGateway {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn spawn_gateway(settings: Settings, store: Store) -> (SocketAddr, JoinHandle<()>, oneshot::Sender<()>) {
    let listener = endmark_gateway::listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let gateway = Gateway::new(settings, store).unwrap();
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(async move {
        let until = async {
            let _ = stopped.await;
        };
        let _ = serve(listener, Arc::clone(&gateway), until).await;
    });
    (address, task, stop)
}

impl Drop for Endmark {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Returns a request with one user message.
pub(crate) fn request(max_tokens: u64) -> Value {
    json!({"model": "scripted", "max_tokens": max_tokens, "messages": [{"role": "user", "content": "Tell."}]})
}

/// Returns the same request for a stream.
pub(crate) fn stream_request(max_tokens: u64) -> Value {
    let mut body = request(max_tokens);
    body["stream"] = json!(true);
    body
}

/// Returns the text of the first choice.
pub(crate) fn text(reply: &Reply) -> String {
    reply.json()["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned()
}

/// Returns the finish reason of the first choice.
pub(crate) fn finish(reply: &Reply) -> String {
    reply.json()["choices"][0]["finish_reason"].as_str().unwrap_or_default().to_owned()
}

/// What a client assembles from a stream.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct StreamedReply {
    pub(crate) text: String,
    pub(crate) arguments: String,
    pub(crate) tool: String,
    pub(crate) finish: Option<String>,
    pub(crate) endmark: Option<Value>,
    pub(crate) error: Option<Value>,
    pub(crate) usage: Option<Value>,
    pub(crate) is_done: bool,
}

/// Reads a stream as a client does.
pub(crate) fn read_stream(reply: &Reply) -> StreamedReply {
    let mut streamed = StreamedReply {
        is_done: reply.events().last().is_some_and(|event| event == "[DONE]"),
        ..StreamedReply::default()
    };
    for event in reply.json_events() {
        if let Some(error) = event.get("error") {
            streamed.error = Some(error.clone());
        }
        if let Some(endmark) = event.get("endmark") {
            streamed.endmark = Some(endmark.clone());
        }
        if let Some(usage) = event.get("usage").filter(|usage| !usage.is_null()) {
            streamed.usage = Some(usage.clone());
        }
        let choice = &event["choices"][0];
        streamed.text += choice["delta"]["content"].as_str().unwrap_or_default();
        let function = &choice["delta"]["tool_calls"][0]["function"];
        streamed.tool += function["name"].as_str().unwrap_or_default();
        streamed.arguments += function["arguments"].as_str().unwrap_or_default();
        if let Some(finish) = choice["finish_reason"].as_str() {
            assert_eq!(streamed.finish, None, "a reply ends once");
            streamed.finish = Some(finish.to_owned());
        }
    }
    streamed
}
