//! Streams that break off at any byte: the reply is completed or ends in an error, and never looks whole by
//! mistake.

use std::collections::BTreeSet;
use std::sync::Mutex;

use endmark_gateway::Settings;
use serde_json::json;
use testkit::{
    Answer, Fault, ModelFormat, ModelFormatAdapter, PrefillBehaviour, PromptBehaviour, ReceivedRequest,
    Request, Respond, ScriptedModel,
};

use crate::support::{Endmark, read_stream, stream_request};

/// Breaks off the first reply to each request, at the byte that the request names.
struct BreakingModel<M> {
    model: M,
    fault: Fault,
    /// Requests whose first reply was broken off. A repeated request gets a complete answer.
    broken_requests: Mutex<BTreeSet<u64>>,
}

impl<M: Respond> Respond for BreakingModel<M> {
    fn respond(&self, request: &ReceivedRequest) -> Answer {
        let answer = self.model.respond(request);
        let body = request.json();
        match body["break_at"].as_u64() {
            Some(at) if self.broken_requests.lock().is_ok_and(|mut broken| broken.insert(at)) => {
                answer.fault(usize::try_from(at).unwrap_or(0), self.fault)
            }
            _ => answer,
        }
    }
}

/// The default budget allows retries for only a part of all requests, but here every request breaks off once.
fn allow_all_retries(settings: &mut Settings) {
    settings.retry.budget_percent = 100;
}

/// Breaks the stream off at many offsets, and expects at least `at_least` percent of the replies to be
/// recovered. `EVERY_BYTE=1` tests every offset. By default every 23rd is tested, which covers all parts of a
/// frame.
async fn assert_recovery_at_many_bytes(
    model: impl Fn() -> ScriptedModel,
    whole: &str,
    json: bool,
    at_least: usize,
) {
    let request = |at: usize| {
        let mut body = stream_request(500);
        body["break_at"] = json!(at);
        if json {
            body["response_format"] = json!({"type": "json_object"});
        }
        body
    };
    let model = BreakingModel { model: model(), fault: Fault::Close, broken_requests: Mutex::default() };
    let endmark = Endmark::start_with(model, allow_all_retries).await;
    let length = endmark.ask(&request(usize::MAX >> 12)).await.body.len();
    let step = if std::env::var_os("EVERY_BYTE").is_some() { 1 } else { 23 };
    let mut mended = 0;
    for at in (0..length).step_by(step) {
        let read = read_stream(&endmark.ask(&request(at)).await);
        if read.is_done {
            assert_eq!(read.text, whole, "broken off at byte {at}");
            assert_eq!(read.finish.as_deref(), Some("stop"), "broken off at byte {at}");
            mended += 1;
        } else {
            assert!(read.error.is_some(), "broken off at byte {at}: neither an end nor an error");
            assert_eq!(read.finish, None, "broken off at byte {at}");
            assert!(whole.starts_with(&read.text), "broken off at byte {at}: {:?}", read.text);
        }
    }
    let tried = length.div_ceil(step);
    assert!(mended * 100 >= tried * at_least, "{mended} of {tried} mended");
}

#[tokio::test]
async fn a_text_broken_at_any_byte_is_recovered_by_prefill() {
    let whole = "The harbour was quiet. 🌊 Mira counted the nets.";
    assert_recovery_at_many_bytes(
        || ScriptedModel::new(whole).prefill(PrefillBehaviour::Echoes),
        whole,
        false,
        100,
    )
    .await;
}

#[tokio::test]
async fn json_broken_at_any_byte_is_recovered_in_a_user_turn() {
    let whole = r#"{"title": "Harbour", "tags": ["gulls", "n\u00e9ts"], "count": 42}"#;
    assert_recovery_at_many_bytes(
        || {
            ScriptedModel::new(whole)
                .prefill(PrefillBehaviour::Rejects)
                .with_prompt_behaviour(PromptBehaviour::Exact)
        },
        whole,
        true,
        // A prompt asks to continue after the last token. If the cut is inside an escape or a number and the
        // model continues at the cut, the result is ambiguous, so the reply stays cut.
        90,
    )
    .await;
}

#[tokio::test]
async fn a_stream_of_any_format_broken_at_any_byte_is_recovered() {
    let whole = "The harbour was quiet. \u{1f30a} Mira counted the nets.";
    for dialect in ModelFormat::ALL {
        let model =
            ModelFormatAdapter::new(dialect, ScriptedModel::new(whole).prefill(PrefillBehaviour::Echoes));
        let model = BreakingModel { model, fault: Fault::Close, broken_requests: Mutex::default() };
        let endmark = Endmark::start_with(model, allow_all_retries).await;
        let ask = async |at: usize| {
            let mut body = dialect.request(500, true);
            body["break_at"] = json!(at);
            Request::post(endmark.address, dialect.path(true)).json(&body).send().await.read().await
        };
        let length = ask(usize::MAX >> 12).await.body.len();
        let step = if std::env::var_os("EVERY_BYTE").is_some() { 1 } else { 41 };
        for at in (0..length).step_by(step) {
            let reply = ask(at).await;
            let heard = dialect.assemble(&reply);
            let what = format!("{dialect:?} broken off at byte {at}: {}", reply.text());
            assert_eq!(heard.text, whole, "{what}");
            assert!(heard.stop.is_some() && heard.error.is_none(), "{what}");
        }
    }
}
