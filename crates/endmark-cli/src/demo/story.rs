//! The scenes of the demonstration: the same request to the same server, directly and through Endmark.

use endmark_gateway::{BaseUrl, Gateway, Upstream};
use endmark_store::{Recovery, RecoveryRow, Store, StoreLocation};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::exchange::{self, ReceivedReply};
use super::scripted_upstream::{ContinuationStyle, Model, ScriptedUpstream};
use crate::client::Client;

/// The scenes with their results, and the log at the end.
pub(crate) struct PlayedStory {
    pub(crate) scenes: Vec<Scene>,
    /// The log, oldest first.
    pub(crate) log: Vec<RecoveryRow>,
}

/// One request and its result on both paths.
pub(crate) struct Scene {
    pub(crate) title: &'static str,
    /// A short description of the request.
    pub(crate) request: String,
    pub(crate) direct: ReceivedReply,
    pub(crate) through_endmark: ReceivedReply,
    /// The model's reply without a limit.
    pub(crate) intended: &'static str,
    /// The recovery in the log, if there is one.
    pub(crate) recovery: Option<Recovery>,
}

impl Scene {
    /// Whether the client received the model's complete reply.
    pub(crate) fn is_whole(&self) -> bool {
        self.through_endmark.text == self.intended
    }

    /// Returns where continuations were joined, as byte offsets in the whole text.
    pub(crate) fn seams(&self) -> Vec<usize> {
        let pieces = self.recovery.iter().flat_map(|recovery| &recovery.pieces);
        pieces.filter_map(|logged| usize::try_from(logged.piece.seam_at?).ok()).collect()
    }
}

/// Prefixes an error with the step that failed.
fn at_step<E: ToString>(what: &'static str) -> impl FnOnce(E) -> String {
    move |error| format!("{what}: {}", error.to_string())
}

const MOON_TEXT: &str = "The moon has no air, so nothing scatters the light of the sun. That is why its sky is black \
even at noon, and why a shadow there has an edge as sharp as a knife.";
const TIDE_TEXT: &str = "Twice a day the sea climbs the harbour wall and falls again. The moon pulls at the water on its \
side of the earth, and the water on the far side is left a little behind.";
const TRIP_JSON: &str = r#"{"from": "Lisbon", "to": "Oslo", "nights": 4, "hotels": ["Grand Bakken", "Fjordgata 3"], "budget": {"currency": "EUR", "total": 1450}}"#;
const EDIT_ARGUMENTS: &str = r#"{"path": "src/harbour.rs", "find": "fn tide() -> f64 {", "replace": "/// Metres above chart datum.\npub fn tide(hour: f64) -> f64 {"}"#;

static MODELS: [Model; 4] = [
    Model { name: "essay", reply_text: MOON_TEXT, tool: None, manner: ContinuationStyle::Echoes },
    Model { name: "stream", reply_text: TIDE_TEXT, tool: None, manner: ContinuationStyle::Echoes },
    Model { name: "planner", reply_text: TRIP_JSON, tool: None, manner: ContinuationStyle::AnswersInChat },
    Model {
        name: "coder",
        reply_text: EDIT_ARGUMENTS,
        tool: Some("edit_file"),
        manner: ContinuationStyle::AnswersInChat,
    },
];

/// Returns the requests; each has a limit that is too small on purpose.
fn requests() -> [(&'static str, String, Value, &'static str); 4] {
    let message = |text: &str| json!([{"role": "user", "content": text}]);
    [
        (
            "A text",
            "12 tokens; the server continues an unfinished message".to_owned(),
            json!({"model": "essay", "max_tokens": 12, "messages": message("Why is the sky of the moon black?")}),
            MOON_TEXT,
        ),
        (
            "A tool call",
            "12 tokens; the arguments are cut".to_owned(),
            json!({"model": "coder", "max_tokens": 12, "messages": message("Rename it."), "tools": [{"type": "function",
                "function": {"name": "edit_file", "parameters": {"type": "object", "properties": {
                    "path": {"type": "string"}, "find": {"type": "string"}, "replace": {"type": "string"}},
                    "required": ["path", "find", "replace"]}}}]}),
            EDIT_ARGUMENTS,
        ),
        (
            "JSON",
            "14 tokens; the server needs a question, and replies with a remark and a fence".to_owned(),
            json!({"model": "planner", "max_tokens": 14, "messages": message("Plan a trip."),
                "response_format": {"type": "json_object"}}),
            TRIP_JSON,
        ),
        (
            "A streamed text",
            "18 tokens, streamed".to_owned(),
            json!({"model": "stream", "max_tokens": 18, "stream": true, "messages": message("What is a tide?")}),
            TIDE_TEXT,
        ),
    ]
}

/// Starts the servers, sends every request on both paths, and stops the servers.
pub(crate) async fn run_story() -> Result<PlayedStory, String> {
    let upstream =
        ScriptedUpstream::start(&MODELS).await.map_err(at_step("the scripted server cannot start"))?;
    let folder = tempfile::tempdir().map_err(at_step("no temporary folder"))?;
    let store =
        Store::open(&StoreLocation::sqlite(folder.path().join("demo.db"))).map_err(at_step("the store"))?;
    let settings = endmark_gateway::Settings {
        upstreams: vec![Upstream::new(
            "scripted",
            upstream.base_url().parse::<BaseUrl>().map_err(at_step("the scripted server"))?,
        )],
        ..endmark_gateway::Settings::default()
    };
    let gateway = Gateway::new(settings, store.clone()).map_err(at_step("the gateway cannot start"))?;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(at_step("the gateway cannot listen"))?;
    let address = listener.local_addr().map_err(at_step("the gateway cannot listen"))?;
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(endmark_gateway::serve(listener, gateway, async {
        // An error means that the sender was dropped, which also ends the demonstration.
        let _ = stopped.await;
    }));
    let scenes = play_scenes(&upstream.base_url(), &format!("http://{address}/v1"), &store).await;
    drop(stop);
    serving.await.map_err(at_step("the gateway"))?.map_err(at_step("the gateway"))?;
    let (scenes, log) = scenes?;
    Ok(PlayedStory { scenes, log })
}

async fn play_scenes(
    upstream: &str,
    gateway: &str,
    store: &Store,
) -> Result<(Vec<Scene>, Vec<RecoveryRow>), String> {
    let client = Client::new(&Upstream::new("demo", upstream.parse().map_err(at_step("the address"))?))
        .map_err(at_step("the client"))?;
    let mut scenes = Vec::new();
    for (title, asked, body, meant) in requests() {
        let directly = exchange::send(&client, upstream, &body).await.map_err(at_step("directly"))?;
        let through_endmark =
            exchange::send(&client, gateway, &body).await.map_err(at_step("through Endmark"))?;
        scenes.push(Scene {
            title,
            request: asked,
            direct: directly,
            through_endmark,
            intended: meant,
            recovery: None,
        });
    }
    let reader = store.clone();
    tokio::task::spawn_blocking(move || {
        for scene in &mut scenes {
            if let Some(id) = &scene.through_endmark.request_id {
                scene.recovery = reader.show(id).map_err(at_step("the log"))?;
            }
        }
        let mut log = reader.recent(100, &endmark_store::LogFilter::default()).map_err(at_step("the log"))?;
        log.reverse();
        Ok((scenes, log))
    })
    .await
    .map_err(at_step("the log"))?
}
