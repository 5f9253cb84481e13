//! The three wire formats other than Chat Completions, tested from outside.
//!
//! A reply that needs no help is unchanged, a cut one is completed, and one that cannot be completed is never
//! reported as whole.

use endmark_store::{LogFilter, Reader, StoreLocation};
use serde_json::{Value, json};
use testkit::{
    Answer, AssembledReply, Fault, ModelFormat, ModelFormatAdapter, PrefillBehaviour, ReceivedRequest, Reply,
    Request, Respond, ScriptedModel, Upstream,
};

use crate::run::TestFolder;
use crate::serve::{ServeProcess, in_runtime};

const STORY: &str = "The harbour was quiet that morning, and the gulls had not yet found the boats.";
const ARGUMENTS: &str = r#"{"path":"sea.txt","content":"The harbour was quiet that morning."}"#;

/// A gateway with a scripted upstream.
struct RunningGateway {
    place: TestFolder,
    served: ServeProcess,
    upstream: Upstream,
}

impl RunningGateway {
    async fn start(respond: impl Respond, arguments: &[&str]) -> Self {
        let upstream = Upstream::start(respond).await;
        let place = TestFolder::new();
        let base_url = upstream.base_url();
        let served = ServeProcess::start(&place, &[&["--upstream", &base_url], arguments].concat());
        Self { place, served, upstream }
    }

    async fn start_with_model(dialect: ModelFormat, model: ScriptedModel) -> Self {
        Self::start(ModelFormatAdapter::new(dialect, model), &["--set", "resume.mode=on"]).await
    }

    async fn post(&self, path: &str, body: &Value) -> Reply {
        Request::post(self.served.address, path).header("x-api-key", "k").json(body).send().await.read().await
    }

    /// Requests a reply of at most `limit` tokens.
    async fn ask(&self, dialect: ModelFormat, limit: u64, stream: bool) -> (Reply, AssembledReply) {
        let reply = self.post(dialect.path(stream), &dialect.request(limit, stream)).await;
        let heard = dialect.assemble(&reply);
        (reply, heard)
    }

    fn calls(&self) -> Vec<ReceivedRequest> {
        self.upstream.requests()
    }
}

fn normal_end(dialect: ModelFormat, call: bool) -> &'static str {
    match (dialect, call) {
        (ModelFormat::Responses, _) => "completed",
        (ModelFormat::Messages, true) => "tool_use",
        (ModelFormat::Messages, false) => "end_turn",
        (ModelFormat::Gemini, _) => "STOP",
    }
}

fn cut_end(dialect: ModelFormat) -> &'static str {
    match dialect {
        ModelFormat::Responses => "incomplete",
        ModelFormat::Messages => "max_tokens",
        ModelFormat::Gemini => "MAX_TOKENS",
    }
}

#[test]
fn a_whole_reply_equals_the_direct_one() {
    in_runtime(async {
        for dialect in ModelFormat::ALL {
            let running = RunningGateway::start_with_model(dialect, ScriptedModel::new(STORY)).await;
            for stream in [false, true] {
                let (reply, heard) = running.ask(dialect, 500, stream).await;
                let direct = Request::post(running.upstream.address(), dialect.path(stream));
                let direct = direct.json(&dialect.request(500, stream)).send().await.read().await;
                assert_eq!(reply.text(), direct.text(), "{dialect:?} {stream}");
                assert_eq!(
                    (heard.text.as_str(), heard.stop.as_deref()),
                    (STORY, Some(normal_end(dialect, false)))
                );
                assert_eq!(reply.header("x-endmark-outcome"), None);
            }
        }
    });
}

#[test]
fn a_reply_cut_by_its_limit_is_completed() {
    in_runtime(async {
        for dialect in ModelFormat::ALL {
            for prefill in [PrefillBehaviour::Echoes, PrefillBehaviour::Continues, PrefillBehaviour::Rejects]
            {
                let running =
                    RunningGateway::start_with_model(dialect, ScriptedModel::new(STORY).prefill(prefill))
                        .await;
                for stream in [false, true] {
                    let what = format!("{dialect:?} {prefill:?} {stream}");
                    let (reply, heard) = running.ask(dialect, 7, stream).await;
                    assert_eq!(heard.text, STORY, "{what}: {}", reply.text());
                    assert_eq!(heard.stop.as_deref(), Some(normal_end(dialect, false)), "{what}");
                    let disclosed = match &heard.endmark {
                        Some(disclosed) => disclosed["outcome"].as_str().map(str::to_owned),
                        None => reply.header("x-endmark-outcome").map(str::to_owned),
                    };
                    assert_eq!(disclosed.as_deref(), Some("resumed"), "{what}: {}", reply.text());
                    assert!(heard.output_tokens >= Some(testkit::tokens(STORY).len() as u64), "{what}");
                }
            }
        }
    });
}

/// The gateway tests once whether an upstream accepts a prefill. The client does not see a refusal.
#[test]
fn a_rejected_prefill_is_not_retried() {
    in_runtime(async {
        for dialect in ModelFormat::ALL {
            let running = RunningGateway::start_with_model(
                dialect,
                ScriptedModel::new(STORY).prefill(PrefillBehaviour::Rejects),
            )
            .await;
            for calls in [3, 5] {
                let (_, heard) = running.ask(dialect, 7, false).await;
                assert_eq!((heard.text.as_str(), running.calls().len()), (STORY, calls), "{dialect:?}");
            }
        }
    });
}

#[test]
fn a_broken_stream_continues_or_ends_in_the_formats_error() {
    in_runtime(async {
        for dialect in ModelFormat::ALL {
            for at in [0, 900, 1_500] {
                let model =
                    ScriptedModel::new(STORY).prefill(PrefillBehaviour::Echoes).fault(0, at, Fault::Close);
                let running = RunningGateway::start_with_model(dialect, model).await;
                let (reply, heard) = running.ask(dialect, 500, true).await;
                assert_eq!(heard.text, STORY, "{dialect:?} {at}: {}", reply.text());
                assert_eq!(heard.stop.as_deref(), Some(normal_end(dialect, false)), "{dialect:?} {at}");
            }
            let begins =
                ModelFormatAdapter::new(dialect, ScriptedModel::new(STORY).fault(0, 1_500, Fault::Close));
            let once = std::sync::atomic::AtomicBool::new(true);
            let lost = move |request: &ReceivedRequest| {
                if once.swap(false, std::sync::atomic::Ordering::Relaxed) {
                    begins.respond(request)
                } else {
                    dialect.error(401, "no")
                }
            };
            let running = RunningGateway::start(lost, &[]).await;
            let (reply, heard) = running.ask(dialect, 500, true).await;
            assert!(STORY.starts_with(&heard.text) && !heard.text.is_empty(), "{dialect:?}");
            assert_eq!(heard.stop, None, "{dialect:?}: {}", reply.text());
            let error = heard.error.unwrap_or_else(|| panic!("{dialect:?}: {}", reply.text()));
            let kind = match dialect {
                ModelFormat::Responses => &error["code"],
                ModelFormat::Messages => &error["error"]["type"],
                ModelFormat::Gemini => &error["error"]["details"][0]["reason"],
            };
            assert_eq!(kind, "endmark_reply_cut", "{error}");
            assert_eq!(heard.endmark.unwrap()["outcome"], "exhausted");
        }
    });
}

#[test]
fn a_cut_tool_call_is_completed() {
    in_runtime(async {
        for dialect in ModelFormat::ALL {
            for stream in [false, true] {
                let model = ScriptedModel::new(ARGUMENTS).calls("write").prefill(PrefillBehaviour::Rejects);
                let running = RunningGateway::start_with_model(dialect, model).await;
                let mut body = dialect.request(9, stream);
                body["tools"] = dialect.tools("write");
                let reply = running.post(dialect.path(stream), &body).await;
                let heard = dialect.assemble(&reply);
                let what = format!("{dialect:?} {stream}: {}", reply.text());
                let [(name, arguments)] = heard.tool_calls.as_slice() else { panic!("{what}") };
                let arguments: Value = serde_json::from_str(arguments).unwrap();
                assert_eq!(name, "write", "{what}");
                assert_eq!(arguments, serde_json::from_str::<Value>(ARGUMENTS).unwrap(), "{what}");
                assert_eq!(heard.stop.as_deref(), Some(normal_end(dialect, true)), "{what}");
            }
        }
    });
}

/// The gateway never delivers arguments that the model did not finish.
#[test]
fn a_tool_call_that_stays_cut_is_not_delivered() {
    in_runtime(async {
        for dialect in [ModelFormat::Messages, ModelFormat::Gemini] {
            let cut =
                ModelFormatAdapter::new(dialect, ScriptedModel::new(ARGUMENTS).calls("write").own_limit(9));
            let running = RunningGateway::start(cut, &["--set", "resume.mode=on"]).await;
            let mut body = dialect.request(500, false);
            body["tools"] = dialect.tools("write");
            let reply = running.post(dialect.path(false), &body).await;
            let heard = dialect.assemble(&reply);
            assert_eq!((heard.tool_calls, heard.stop.as_deref()), (Vec::new(), Some(cut_end(dialect))));
            assert_eq!(reply.header("x-endmark-outcome"), Some("exhausted"));
        }
    });
}

/// Libraries replace a missing input by `{}`, so such a stream ends in an error or omits the call.
#[test]
fn a_streamed_call_that_stays_cut_is_never_finished() {
    in_runtime(async {
        for (hold, limit) in [("false", 2), ("false", 9), ("true", 9)] {
            let dialect = ModelFormat::Messages;
            let cut = ModelFormatAdapter::new(
                dialect,
                ScriptedModel::new(ARGUMENTS).calls("write").own_limit(limit),
            );
            let hold_set = format!("tools.hold={hold}");
            let running = RunningGateway::start(cut, &["--set", "resume.mode=on", "--set", &hold_set]).await;
            let mut body = dialect.request(500, true);
            body["tools"] = dialect.tools("write");
            let reply = running.post(dialect.path(true), &body).await;
            let (heard, text) = (dialect.assemble(&reply), reply.text());
            assert_eq!(heard.endmark.unwrap()["outcome"], "exhausted", "{text}");
            if hold == "true" {
                assert!(!text.contains("tool_use"), "{limit}: {text}");
                assert_eq!(heard.text, "[A call of write was cut off here, and is left out.]");
                assert_eq!(
                    (heard.tool_calls, heard.stop.as_deref()),
                    (Vec::new(), Some("max_tokens")),
                    "{text}"
                );
            } else {
                assert!(!text.contains("content_block_stop"), "{limit}: {text}");
                assert_eq!(heard.stop, None, "{limit}: {text}");
                assert_eq!(heard.error.unwrap()["error"]["type"], "endmark_reply_cut");
            }
        }
    });
}

#[test]
fn errors_have_the_format_of_their_provider() {
    in_runtime(async {
        for dialect in ModelFormat::ALL {
            // The provider's own error is forwarded byte for byte.
            let refused = dialect.error(400, "the model is not known");
            let running = RunningGateway::start(move |_: &ReceivedRequest| refused.clone(), &[]).await;
            let (reply, heard) = running.ask(dialect, 9, false).await;
            assert_eq!(
                (reply.status, heard.error.unwrap()["message"].clone()),
                (400, json!("the model is not known"))
            );
            assert_eq!(running.calls().len(), 1);
            // An error of Endmark itself: the body is not a valid request.
            let reply = running.post(dialect.path(false), &json!(["no object"])).await;
            let (error, shape) = (reply.json(), &reply.json()["error"]);
            assert_eq!(reply.status, 400);
            match dialect {
                ModelFormat::Responses => assert_eq!(shape["type"], "endmark_bad_request", "{error}"),
                ModelFormat::Messages => {
                    assert_eq!(
                        (&error["type"], &shape["type"]),
                        (&json!("error"), &json!("endmark_bad_request"))
                    );
                }
                ModelFormat::Gemini => {
                    assert_eq!((&shape["code"], &shape["status"]), (&json!(400), &json!("INVALID_ARGUMENT")));
                }
            }
            // A proxy's HTML page becomes an error that the client's library can read.
            let running = RunningGateway::start(|_: &ReceivedRequest| Answer::html(503), &[]).await;
            let reply = running.post(dialect.path(true), &dialect.request(9, true)).await;
            assert_eq!(reply.status, 503);
            assert!(reply.json()["error"]["message"].as_str().unwrap().contains("text/html"));
        }
    });
}

/// Messages requires a limit in every request, so a high limit does not show what the client wants.
#[test]
fn a_required_limit_is_respected_only_below_a_threshold() {
    in_runtime(async {
        let model = || ScriptedModel::new(STORY).own_limit(7).prefill(PrefillBehaviour::Rejects);
        let running =
            RunningGateway::start(ModelFormatAdapter::new(ModelFormat::Messages, model()), &[]).await;
        let (_, heard) = running.ask(ModelFormat::Messages, 100, false).await;
        assert_eq!(heard.stop.as_deref(), Some("max_tokens"));
        assert_eq!(running.calls().len(), 1);
        let (_, heard) = running.ask(ModelFormat::Messages, 4_096, false).await;
        assert!(running.calls().len() > 1 && heard.text.len() > 40, "{heard:?}");
    });
}

#[test]
fn stored_rows_name_the_format() {
    in_runtime(async {
        let names = ["openai_responses", "anthropic_messages", "gemini"];
        for (dialect, name) in ModelFormat::ALL.into_iter().zip(names) {
            let running = RunningGateway::start_with_model(
                dialect,
                ScriptedModel::new(STORY).prefill(PrefillBehaviour::Echoes),
            )
            .await;
            running.ask(dialect, 7, true).await;
            let metrics = Request::get(running.served.address, "/endmark/metrics").send().await.read().await;
            let line = format!("format=\"{name}\",outcome=\"resumed\"}} 1");
            assert!(metrics.text().contains(&line), "{}", metrics.text());
            let (code, _) = running.served.stop("-TERM");
            assert_eq!(code, Some(0));
            let store = StoreLocation::sqlite(running.place.store());
            let reader = Reader::open(&store).unwrap();
            let calls = reader.recent_calls(10).unwrap();
            assert_eq!(calls.len(), 2);
            assert!(
                calls.iter().all(|call| call.format == name && call.tokens.output.is_some()),
                "{calls:?}"
            );
            assert_eq!(reader.recent(10, &LogFilter::default()).unwrap().len(), 1);
        }
    });
}

/// Injected faults have the form of the format, and are recovered like real ones.
#[test]
fn injected_faults_work_in_every_format() {
    in_runtime(async {
        for dialect in ModelFormat::ALL {
            let model =
                ModelFormatAdapter::new(dialect, ScriptedModel::new(STORY).prefill(PrefillBehaviour::Echoes));
            let upstream = Upstream::start(model).await;
            let place = TestFolder::new();
            for side in ["upstream", "client"] {
                for fault in ["cut@4", "error@5", "malformed@5", "503"] {
                    let base_url = upstream.base_url();
                    let served = ServeProcess::start(
                        &place,
                        &[
                            "--upstream",
                            &base_url,
                            "--set",
                            "resume.mode=on",
                            "--fault",
                            fault,
                            "--fault-side",
                            side,
                        ],
                    );
                    for stream in [true, false] {
                        if fault != "cut@4" && !stream {
                            continue;
                        }
                        let reply = Request::post(served.address, dialect.path(stream));
                        let reply = reply.json(&dialect.request(500, stream)).send().await.read().await;
                        let what = format!("{dialect:?} {side} {fault} {stream}: {}", reply.text());
                        assert_eq!(reply.header("x-endmark-fault"), Some(fault), "{what}");
                        if side == "upstream" {
                            assert_eq!(dialect.assemble(&reply).text, STORY, "{what}");
                        } else if fault == "cut@4" {
                            let heard = dialect.assemble(&reply);
                            assert_eq!(heard.stop.as_deref(), Some(cut_end(dialect)), "{what}");
                            assert!(
                                STORY.starts_with(&heard.text) && heard.text.len() < STORY.len(),
                                "{what}"
                            );
                        } else if fault != "malformed@5" {
                            assert!(dialect.assemble(&reply).error.is_some(), "{what}");
                        }
                    }
                    served.stop("-TERM");
                }
            }
        }
    });
}
