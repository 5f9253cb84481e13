//! Cloud variants of the formats: Azure's deployments and API version, and Vertex AI's projects.

use serde_json::{Value, json};
use testkit::{
    ModelFormat, ModelFormatAdapter, PrefillBehaviour, ReceivedRequest, Reply, Request, Respond,
    ScriptedModel, Upstream,
};

use crate::run::TestFolder;
use crate::serve::{ServeProcess, in_runtime};

const STORY: &str = "The harbour was quiet that morning, and the gulls had not yet found the boats.";
const VERTEX: &str = "projects/p-1/locations/global/publishers/google/models/gemini-x";

fn model() -> ScriptedModel {
    ScriptedModel::new(STORY).prefill(PrefillBehaviour::Echoes)
}

/// Starts a gateway with a scripted upstream and these additional settings.
async fn start_gateway(
    respond: impl Respond,
    path: &str,
    settings: &str,
) -> (Upstream, ServeProcess, TestFolder) {
    let upstream = Upstream::start(respond).await;
    let configuration = format!(
        "[resume]\nmode = \"on\"\n\n[upstreams.other]\nformat = \"anthropic\"\nbase_url = \"http://127.0.0.1:9/v1\"\n\n\
         [upstreams.cloud]\nbase_url = \"http://{}{path}\"\n{settings}\n",
        upstream.address()
    );
    let place = TestFolder::new().with_file("endmark.toml", configuration);
    let served = ServeProcess::start(&place, &[]);
    (upstream, served, place)
}

async fn post(served: &ServeProcess, path: &str, key: (&str, &str), body: &Value) -> Reply {
    Request::post(served.address, path).header(key.0, key.1).json(body).send().await.read().await
}

/// Returns a request whose reply is cut after 7 tokens.
fn chat_request(stream: bool) -> Value {
    json!({"max_tokens": 7, "stream": stream, "messages": [{"role": "user", "content": "Tell."}]})
}

fn chat_text(reply: &Reply) -> String {
    let part =
        |event: &Value, of: &str| event["choices"][0][of]["content"].as_str().unwrap_or_default().to_owned();
    if reply.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream")) {
        return reply.json_events().iter().map(|event| part(event, "delta")).collect();
    }
    part(&reply.json(), "message")
}

#[test]
fn an_azure_deployment_returns_whole_replies() {
    in_runtime(async {
        let path = "/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21";
        for (settings, key) in [("", "of-the-client"), ("api_key = \"of-the-upstream\"", "of-the-upstream")] {
            for stream in [false, true] {
                let (upstream, served, _place) = start_gateway(model(), "/openai/v1", settings).await;
                let reply = post(&served, path, ("api-key", "of-the-client"), &chat_request(stream)).await;
                assert_eq!((reply.status, chat_text(&reply).as_str()), (200, STORY), "{}", reply.text());
                let sent_requests: Vec<ReceivedRequest> = upstream.requests();
                assert_eq!(sent_requests.len(), 2, "the reply, and the rest of it");
                for request in sent_requests {
                    assert_eq!((request.path.as_str(), request.header("api-key")), (path, Some(key)));
                    assert_eq!(request.header("authorization"), None);
                }
            }
        }
    });
}

#[test]
fn the_azure_api_version_is_read_in_both_openai_formats() {
    in_runtime(async {
        let key = ("authorization", "Bearer of-the-client");
        // One library uses the configured address, and another always uses the usual path.
        for path in ["/openai/v1/chat/completions", "/v1/chat/completions"] {
            let (upstream, served, _place) = start_gateway(model(), "/openai/v1", "").await;
            let reply = post(&served, path, key, &chat_request(true)).await;
            assert_eq!(chat_text(&reply), STORY, "{path}: {}", reply.text());
            let paths: Vec<String> = upstream.requests().into_iter().map(|request| request.path).collect();
            assert_eq!(paths, ["/openai/v1/chat/completions"; 2], "{path}");
        }
        for path in ["/openai/v1/responses", "/openai/responses?api-version=preview"] {
            let (upstream, served, _place) =
                start_gateway(ModelFormatAdapter::new(ModelFormat::Responses, model()), "/openai/v1", "")
                    .await;
            let reply = post(&served, path, key, &ModelFormat::Responses.request(7, true)).await;
            assert_eq!(ModelFormat::Responses.assemble(&reply).text, STORY, "{path}: {}", reply.text());
            let paths: Vec<String> = upstream.requests().into_iter().map(|request| request.path).collect();
            assert_eq!(paths, [path; 2]);
        }
    });
}

#[test]
fn a_vertex_ai_model_returns_whole_replies() {
    in_runtime(async {
        for version in ["v1", "v1beta1"] {
            let (upstream, served, _place) = start_gateway(
                ModelFormatAdapter::new(ModelFormat::Gemini, model()),
                "/v1",
                "format = \"gemini\"",
            )
            .await;
            for (method, stream) in [("generateContent", false), ("streamGenerateContent?alt=sse", true)] {
                let before = upstream.requests().len();
                let path = format!("/{version}/{VERTEX}:{method}");
                let body = ModelFormat::Gemini.request(7, stream);
                let reply = post(&served, &path, ("authorization", "Bearer of-the-client"), &body).await;
                assert_eq!(ModelFormat::Gemini.assemble(&reply).text, STORY, "{path}: {}", reply.text());
                let sent_requests = upstream.requests().split_off(before);
                assert_eq!(sent_requests.len(), 2, "{path}");
                for request in sent_requests {
                    assert_eq!(request.path, path);
                    assert_eq!(request.header("authorization"), Some("Bearer of-the-client"));
                }
            }
        }
    });
}

#[test]
fn other_cloud_paths_pass_untouched() {
    in_runtime(async {
        let (upstream, served, _place) = start_gateway(
            ModelFormatAdapter::new(ModelFormat::Gemini, model()),
            "/v1",
            "format = \"gemini\"",
        )
        .await;
        for path in [
            format!("/v1/{VERTEX}:countTokens"),
            "/v1/projects/p-1/locations/global/publishers/anthropic/models/m:rawPredict".to_owned(),
        ] {
            let before = upstream.requests().len();
            post(&served, &path, ("authorization", "Bearer t"), &json!({"contents": []})).await;
            let sent_requests = upstream.requests().split_off(before);
            assert_eq!(sent_requests.len(), 1, "{path}");
            assert_eq!(
                (sent_requests[0].path.as_str(), sent_requests[0].body.as_slice()),
                (path.as_str(), br#"{"contents":[]}"#.as_slice())
            );
        }
    });
}
