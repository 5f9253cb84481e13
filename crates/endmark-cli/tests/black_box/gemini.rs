//! Features that only Gemini has: the model in the path, keys in the query, and continuation tokens.

use serde_json::{Value, json};
use testkit::{
    Answer, ModelFormat, ModelFormatAdapter, PrefillBehaviour, ReceivedRequest, Request, ScriptedModel,
    Upstream,
};

use crate::run::TestFolder;
use crate::serve::{ServeProcess, in_runtime};

const STORY: &str = "The harbour was quiet that morning, and the gulls had not yet found the boats.";

#[test]
fn the_path_determines_the_model_and_streaming() {
    in_runtime(async {
        let model = ScriptedModel::new(STORY).prefill(PrefillBehaviour::Echoes);
        let upstream = Upstream::start(ModelFormatAdapter::new(ModelFormat::Gemini, model)).await;
        let place = TestFolder::new().with_variable("KEY", "of-the-upstream").with_file(
            "endmark.toml",
            format!(
                "[upstreams.other]\nbase_url = \"http://127.0.0.1:9/v1\"\n\n[upstreams.google]\nformat = \"gemini\"\n\
                 base_url = \"http://{}/v1beta\"\napi_key = {{ env = \"KEY\" }}\n",
                upstream.address()
            ),
        );
        let served = ServeProcess::start(&place, &["--set", "resume.mode=on"]);
        for (path, streams) in [
            ("/v1beta/models/gemini-x%3AgenerateContent?key=of-the-client", false),
            ("/v1beta/models/gemini-x:streamGenerateContent?alt=sse&key=of-the-client", true),
            ("/v1/models/gemini-x:streamGenerateContent?$alt=sse&x=1", true),
        ] {
            let before = upstream.requests().len();
            let reply = Request::post(served.address, path).json(&ModelFormat::Gemini.request(7, streams));
            let reply = reply.send().await.read().await;
            assert_eq!(ModelFormat::Gemini.assemble(&reply).text, STORY, "{path}: {}", reply.text());
            let sent_requests: Vec<ReceivedRequest> = upstream.requests().split_off(before);
            let method = if streams { "streamGenerateContent" } else { "generateContent" };
            assert_eq!(sent_requests.len(), 2, "{path}");
            for request in sent_requests {
                assert!(
                    request.path.contains(method) && request.path.contains("gemini-x"),
                    "{}",
                    request.path
                );
                assert!(!request.path.contains("of-the-client"), "{}", request.path);
                assert_eq!(request.path.contains("x=1"), path.contains("x=1"), "{}", request.path);
                assert_eq!(request.header("x-goog-api-key"), Some("of-the-upstream"));
            }
        }
        let reply = Request::post(served.address, "/v1beta/models/..%2Fx:generateContent").json(&json!({}));
        let reply = reply.send().await.read().await;
        assert_eq!((reply.status, reply.json()["error"]["status"].clone()), (400, json!("INVALID_ARGUMENT")));
    });
}

fn chunk(text: &str, finish: Option<&str>, token: Option<&str>) -> Value {
    let mut candidate = json!({"content": {"parts": [{"text": text}], "role": "model"}, "index": 0});
    if let Some(finish) = finish {
        candidate["finishReason"] = json!(finish);
    }
    if let Some(token) = token {
        candidate["continuationToken"] = json!(token);
    }
    json!({"candidates": [candidate], "modelVersion": "m", "usageMetadata": {"promptTokenCount": 2, "candidatesTokenCount": 3, "totalTokenCount": 5}})
}

/// The continuation repeats the request with the provider's token. Its limit includes the earlier part.
#[test]
fn a_reply_with_a_token_is_continued_with_it() {
    in_runtime(async {
        for streams in [false, true] {
            let answer = move |chunks: Vec<Value>| {
                if streams {
                    Answer::sse(chunks.iter().map(|chunk| format!("data: {chunk}\n\n")))
                } else {
                    Answer::json(200, &chunks[chunks.len() - 1])
                }
            };
            let upstream = Upstream::start(move |request: &ReceivedRequest| {
                if request.json()["continuationToken"] == "tok" {
                    answer(vec![chunk(" quiet.", Some("STOP"), None)])
                } else {
                    answer(vec![chunk("The harbour was", Some("MAX_TOKENS"), Some("tok"))])
                }
            })
            .await;
            let served = ServeProcess::start(
                &TestFolder::new(),
                &["--upstream", &upstream.base_url(), "--set", "resume.mode=on"],
            );
            let reply = Request::post(served.address, ModelFormat::Gemini.path(streams));
            let reply = reply.json(&ModelFormat::Gemini.request(3, streams)).send().await.read().await;
            let heard = ModelFormat::Gemini.assemble(&reply);
            assert_eq!(
                (heard.text.as_str(), heard.stop.as_deref()),
                ("The harbour was quiet.", Some("STOP"))
            );
            let sent_requests = upstream.requests();
            assert_eq!(sent_requests.len(), 2);
            assert_eq!(sent_requests[1].json()["contents"], sent_requests[0].json()["contents"]);
            assert_eq!(sent_requests[1].json()["generationConfig"]["maxOutputTokens"], 2_051);
        }
    });
}

/// If the provider leaves the continuation to the client, so does the gateway.
#[test]
fn a_paused_reply_is_forwarded_unchanged() {
    in_runtime(async {
        let paused = chunk("The harbour", Some("CONTINUATION"), Some("tok"));
        let upstream = Upstream::start(move |_: &ReceivedRequest| Answer::json(200, &paused)).await;
        let served = ServeProcess::start(
            &TestFolder::new(),
            &["--upstream", &upstream.base_url(), "--set", "resume.mode=on"],
        );
        let reply = Request::post(served.address, ModelFormat::Gemini.path(false));
        let reply = reply.json(&ModelFormat::Gemini.request(3, false)).send().await.read().await;
        assert_eq!(reply.json()["candidates"][0]["finishReason"], "CONTINUATION");
        assert_eq!((upstream.requests().len(), reply.header("x-endmark-outcome")), (1, None));
    });
}
