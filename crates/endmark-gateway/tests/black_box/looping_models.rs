//! Recoveries with models that never stop. None exceeds its limit in tokens or time, in modes `auto` and
//! `on`.
//!
//! `ENDMARK_TEST_RECOVERIES` sets the number of recoveries.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{Answer, ModelFormat, ReceivedRequest, Reply, Request, Respond};
use tokio::task::JoinSet;

use crate::support::Endmark;
use crate::support::wire_replies::{End, ReplyPart, Wire};

/// 20 tokens of an endless document.
const BEGINNING: &str = r#"{"a": "the first words of it, which are some twenty tokens of text, and then "#;

/// The minimum output limit of all continuations, and the default of `[resume] client_limit_factor`.
const MIN_CONTINUATION_TOKENS: u64 = 2_048;
const CLIENT_LIMIT_FACTOR: u64 = 4;

const MAX_RECOVERY_TIME: Duration = Duration::from_secs(1);

/// Time for the gateway itself on a busy machine. Without a limit, a slow upstream would take a minute.
const GATEWAY_ALLOWANCE: Duration = Duration::from_secs(20);

/// One recovery, whose number determines its properties.
#[derive(Debug, Clone, Copy)]
struct Recovery(u64);

impl Recovery {
    fn wire(self) -> Wire {
        Wire::ALL[usize::try_from(self.0 % 4).unwrap_or(0)]
    }

    fn streams(self) -> bool {
        (self.0 / 4).is_multiple_of(2)
    }

    fn mode(self) -> &'static str {
        if (self.0 / 8).is_multiple_of(2) { "auto" } else { "on" }
    }

    /// Whether the upstream needs far more time than a recovery may take.
    fn is_slow(self) -> bool {
        self.0.is_multiple_of(11)
    }

    /// Number of words in the model's loop, or 0 if it does not repeat itself.
    fn loop_words(self) -> u64 {
        [1, 3, 40, 0][usize::try_from(self.0 / 16 % 4).unwrap_or(0)]
    }

    /// The client's output limit. It is small for slow replies, so that `max_seconds` ends them.
    fn limit(self) -> u64 {
        if self.is_slow() { 15 } else { 15 + self.0 * 7_919 % 1_500 }
    }

    fn max_tokens(self) -> u64 {
        (CLIENT_LIMIT_FACTOR * self.limit()).max(MIN_CONTINUATION_TOKENS)
    }

    fn body(self) -> Value {
        let mut body = self.wire().request(self.streams());
        match self.wire() {
            Wire::Chat | Wire::Other(ModelFormat::Messages) => body["max_tokens"] = json!(self.limit()),
            Wire::Other(ModelFormat::Responses) => body["max_output_tokens"] = json!(self.limit()),
            Wire::Other(ModelFormat::Gemini) => {
                body["generationConfig"]["maxOutputTokens"] = json!(self.limit());
            }
        }
        body["recovery"] = json!(self.0);
        body
    }

    fn first_answer(self) -> Answer {
        self.wire().answer(&[ReplyPart::Text(BEGINNING)], End::Limit, self.streams())
    }

    /// Returns one word for each allowed token.
    fn rest_answer(self, tokens: u64, streams: bool) -> Answer {
        let word = |at: u64| match self.loop_words() {
            0 => format!("word{} ", at * at % 9_973),
            period => format!("again{} ", at % period),
        };
        let words: Vec<String> = (0..tokens).map(word).collect();
        let wire = self.wire();
        if streams {
            let chunk_texts: Vec<String> = words.chunks(32).map(<[String]>::concat).collect();
            let chunk_texts: Vec<ReplyPart<'_>> =
                chunk_texts.iter().map(|text| ReplyPart::Text(text)).collect();
            let count = |frame: &String| {
                let names = ["output_tokens", "candidatesTokenCount"].map(|name| format!("\"{name}\":"));
                names.iter().fold(frame.clone(), |frame, name| {
                    frame.replace(&format!("{name}7"), &format!("{name}{tokens}"))
                })
            };
            let frames = wire.frames(&chunk_texts, Some(End::Limit));
            let answer = Answer::sse(frames.iter().map(count).collect::<Vec<_>>());
            return if self.is_slow() { answer.pause(Duration::from_millis(100)) } else { answer };
        }
        let mut reply = wire.whole_reply(&[ReplyPart::Text(&words.concat())], wire.finish_reason(End::Limit));
        for path in
            ["/usage/completion_tokens", "/usage/output_tokens", "/usageMetadata/candidatesTokenCount"]
        {
            if let Some(counted) = reply.pointer_mut(path) {
                *counted = json!(tokens);
            }
        }
        if let (0, Some(reply)) = (self.0 % 3, reply.as_object_mut()) {
            // Some servers do not report token counts.
            reply.retain(|name, _| !name.starts_with("usage"));
        }
        let answer = Answer::json(200, &reply);
        if self.is_slow() { answer.split(16).pause(Duration::from_millis(400)) } else { answer }
    }
}

/// Returns the output limit of a request in tokens, or 0 if it has none.
fn requested_limit(body: &Value) -> u64 {
    let names = ["max_tokens", "max_completion_tokens", "max_output_tokens"];
    let limit = names.iter().find_map(|name| body[name].as_u64());
    limit.or_else(|| body["generationConfig"]["maxOutputTokens"].as_u64()).unwrap_or(0)
}

/// A model that always generates as many tokens as it may.
#[derive(Clone, Default)]
struct EndlessModel {
    /// Tokens that were generated for each recovery after its first reply. `None` before the first reply.
    generated: Arc<Mutex<BTreeMap<u64, Option<u64>>>>,
}

impl Respond for EndlessModel {
    fn respond(&self, request: &ReceivedRequest) -> Answer {
        let body = request.json();
        let recovery = Recovery(body["recovery"].as_u64().unwrap_or(0));
        let Ok(mut generated) = self.generated.lock() else { return recovery.first_answer() };
        let generated = generated.entry(recovery.0).or_default();
        let Some(so_far) = *generated else {
            *generated = Some(0);
            return recovery.first_answer();
        };
        let tokens = requested_limit(&body);
        *generated = Some(so_far + tokens);
        recovery.rest_answer(tokens, body["stream"] == true || request.path.contains("alt=sse"))
    }
}

/// Returns the disclosed reason.
fn disclosed_reason(wire: Wire, reply: &Reply) -> String {
    let disclosed_reason = wire
        .read_reply(reply)
        .endmark
        .map(|disclosed_reason| disclosed_reason["reason"].as_str().unwrap_or_default().to_owned());
    disclosed_reason.unwrap_or_else(|| reply.header("x-endmark-reason").unwrap_or_default().to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recovery_of_a_looping_model_stays_within_its_bounds() {
    let count = std::env::var("ENDMARK_TEST_RECOVERIES").ok().and_then(|count| count.parse().ok());
    let model = EndlessModel::default();
    let endmark = Endmark::start_with(model.clone(), |settings| {
        settings.resume.max_attempts = 8;
        settings.resume.max_time = MAX_RECOVERY_TIME;
        settings.retry.budget_percent = 100;
    })
    .await;
    let mut under_way = JoinSet::new();
    let (mut most, mut longest, mut named) = ((0, 0), Duration::ZERO, BTreeMap::<&str, u64>::new());
    let mut read = |(recovery, took, reply): (Recovery, Duration, Reply)| {
        let tokens = model.generated.lock().ok().and_then(|generated| *generated.get(&recovery.0)?);
        let (tokens, max) = (tokens.unwrap_or_default(), recovery.max_tokens());
        let reason = disclosed_reason(recovery.wire(), &reply);
        let what = format!("{recovery:?} {took:?} {tokens} of {max}: {reason}");
        assert!(tokens <= max, "{what}");
        assert!(took <= MAX_RECOVERY_TIME + GATEWAY_ALLOWANCE, "{what}");
        let bounds = ["client_limit_factor", "max_seconds", "repeated itself"];
        let bound = bounds.into_iter().find(|bound| reason.contains(bound)).unwrap_or("another end");
        *named.entry(bound).or_default() += 1;
        most = most.max((tokens * 100 / max, tokens));
        longest = longest.max(took);
    };
    for recovery in (0..count.unwrap_or(66_u64)).map(Recovery) {
        if under_way.len() == 6 {
            under_way.join_next().await.into_iter().flatten().for_each(&mut read);
        }
        let (wire, streams) = (recovery.wire(), recovery.streams());
        let request = Request::post(endmark.address, wire.path(streams))
            .header("x-endmark-format", "json")
            .header("x-endmark-resume", recovery.mode())
            .json(&recovery.body());
        under_way.spawn(async move {
            let started = Instant::now();
            let reply = request.send().await.read().await;
            (recovery, started.elapsed(), reply)
        });
    }
    under_way.join_all().await.into_iter().for_each(&mut read);
    println!("at most {most:?} (percent of a bound, tokens), {longest:?}; they ended by {named:?}");
    // Check that the models really reach the limits.
    assert!(
        most.0 >= 75 && longest >= MAX_RECOVERY_TIME && named.len() >= 3,
        "{most:?} {longest:?} {named:?}"
    );
}
