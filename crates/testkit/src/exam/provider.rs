//! A provider with one fault, and the healthy one that takes over.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::{
    ANSWER, FALLBACK_KEY, FALLBACK_MODEL, Failing, HEALTHY_MODEL, Pace, WELL_AGAIN, WORDS_BEFORE_CUT,
    WORDS_BEFORE_GARBAGE, WORDS_BEFORE_STALL,
};
use crate::answer::{Answer, Fault};
use crate::script::Respond;
use crate::upstream::Received;

/// Between two words of a stream.
const BETWEEN_WORDS: Duration = Duration::from_millis(2);

/// Answers every request with the exam's answer, but for its fault.
pub struct Provider {
    failing: Failing,
    pace: Pace,
    /// The only model and key it knows; none where it takes any.
    only: Option<(&'static str, &'static str)>,
    rejects_prefill: bool,
    is_down: AtomicBool,
    tries: Mutex<usize>,
}

impl Provider {
    /// A provider with this fault, which begins now.
    pub fn new(failing: Failing, pace: Pace) -> Self {
        let (is_down, tries) = (AtomicBool::new(failing == Failing::Flaps), Mutex::default());
        Self { failing, pace, only: None, rejects_prefill: false, is_down, tries }
    }

    /// The healthy one that takes over: it knows one model and one key.
    pub fn fallback(rejects_prefill: bool) -> Self {
        let only = Some((FALLBACK_MODEL, FALLBACK_KEY));
        Self { only, rejects_prefill, ..Self::new(Failing::Never, Pace::QUICK) }
    }

    fn refusal(&self, request: &Received, model: &str) -> Option<Answer> {
        let (only_model, only_key) = self.only?;
        if request.header("authorization") != Some(&format!("Bearer {only_key}")) {
            return Some(Answer::unauthorized());
        }
        (model != only_model).then(|| {
            let message = format!("The model `{model}` does not exist");
            Answer::error(404, "invalid_request_error", Some("model_not_found"), &message)
        })
    }

    /// The fault's answer to the try with this number, from 0; none where it is the healthy one.
    fn broken(&self, number: usize) -> Option<Answer> {
        let overloaded = || Answer::error(503, "server_error", Some("overloaded"), "Overloaded");
        let invalid = |code, message| Answer::error(400, "invalid_request_error", Some(code), message);
        match self.failing {
            Failing::RateLimitedOnce if number == 0 => Some(Answer::rate_limited(self.pace.retry_after)),
            Failing::RateLimited => {
                Some(Answer::error(429, "rate_limit_error", Some("rate_limit_exceeded"), "Rate limit"))
            }
            Failing::ErrorOnce if number == 0 => Some(Answer::server_error()),
            Failing::ResetOnce if number == 0 => Some(Answer::none(Fault::Reset)),
            Failing::Overloaded => Some(overloaded()),
            Failing::CutForGood if number > 0 => Some(overloaded()),
            Failing::Flaps if self.is_down.load(Ordering::Relaxed) => Some(overloaded()),
            Failing::Silent => Some(Answer::none(Fault::Stall)),
            Failing::TooLong => Some(invalid(
                "context_length_exceeded",
                "This model's maximum context length is 8192 tokens, and the messages have 9631",
            )),
            Failing::Filtered => {
                Some(invalid("content_policy_violation", "The request was rejected by the safety system"))
            }
            _ => None,
        }
    }

    /// The stream of these words; the fault is in it where it is one of streams.
    fn stream(&self, model: &str, words: &[String], prompt_tokens: usize, usage: bool) -> Answer {
        let chunk = |choices: &Value, usage: &Value| {
            let chunk = json!({
                "id": "chatcmpl-exam", "object": "chat.completion.chunk", "created": 1_700_000_000,
                "model": model, "choices": choices, "usage": usage,
            });
            format!("data: {chunk}\n\n")
        };
        let delta = |delta: Value, finish: Value| {
            chunk(&json!([{ "index": 0, "delta": delta, "finish_reason": finish }]), &Value::Null)
        };
        let mut frames = vec![delta(json!({ "role": "assistant", "content": "" }), Value::Null)];
        for (index, word) in words.iter().enumerate() {
            if self.failing == Failing::Garbage && index == WORDS_BEFORE_GARBAGE {
                frames.push(
                    "data: {\"id\": \"chatcmpl-exam\", \"choices\": [{\"delta\": {\"content\": \n\n"
                        .to_owned(),
                );
            }
            frames.push(delta(json!({ "content": word }), Value::Null));
        }
        // The frame that names the role comes before the words.
        let bytes_of = |words: usize| frames.iter().take(words + 1).map(String::len).sum::<usize>();
        let cut_at = match self.failing {
            Failing::Cut | Failing::CutForGood if words.len() > WORDS_BEFORE_CUT => {
                Some((bytes_of(WORDS_BEFORE_CUT), Fault::Close))
            }
            Failing::Stalls if words.len() > WORDS_BEFORE_STALL => {
                Some((bytes_of(WORDS_BEFORE_STALL), Fault::Stall))
            }
            _ => None,
        };
        frames.push(delta(json!({}), json!("stop")));
        if usage {
            frames.push(chunk(&json!([]), &counted(prompt_tokens, words.len())));
        }
        if self.failing != Failing::WithoutDone {
            frames.push("data: [DONE]\n\n".to_owned());
        }
        let answer = Answer::sse(frames).pause(BETWEEN_WORDS);
        let answer = if self.failing == Failing::SlowToBegin {
            answer.wait_after_head(self.pace.slow)
        } else {
            answer
        };
        match cut_at {
            Some((bytes, fault)) => answer.fault(bytes, fault),
            None => answer,
        }
    }
}

impl Respond for Provider {
    fn respond(&self, request: &Received) -> Answer {
        let body = request.json();
        let model = body["model"].as_str().unwrap_or_default();
        if model == WELL_AGAIN {
            self.is_down.store(false, Ordering::Relaxed);
        }
        if [HEALTHY_MODEL, WELL_AGAIN].contains(&model) {
            return Provider::new(Failing::Never, self.pace).answer(&body, model);
        }
        if let Some(refusal) = self.refusal(request, model) {
            return refusal;
        }
        let number = {
            let mut tries = self.tries.lock().unwrap();
            *tries += 1;
            *tries - 1
        };
        self.broken(number).unwrap_or_else(|| self.answer(&body, model))
    }
}

impl Provider {
    fn answer(&self, body: &Value, model: &str) -> Answer {
        let messages = body["messages"].as_array().cloned().unwrap_or_default();
        let last = messages.last().cloned().unwrap_or_default();
        let mut rest = ANSWER;
        if last["role"] == "assistant" {
            if self.rejects_prefill {
                let message = "This model does not support assistant message prefill";
                return Answer::error(400, "invalid_request_error", Some("invalid_prefill"), message);
            }
            let so_far = last["content"].as_str().unwrap_or_default();
            // Like a provider that goes on with a message: with its own words, else from the beginning.
            rest = ANSWER.strip_prefix(so_far.trim_end()).unwrap_or(ANSWER);
        }
        let prompt_tokens =
            messages.iter().filter_map(|message| message["content"].as_str()).flat_map(str::split_whitespace);
        let prompt_tokens = prompt_tokens.count();
        let words: Vec<String> = words_of(rest);
        if body["stream"] == true {
            let usage = body["stream_options"]["include_usage"] == true;
            return self.stream(model, &words, prompt_tokens, usage);
        }
        let message = json!({ "role": "assistant", "content": rest });
        let reply = json!({
            "id": "chatcmpl-exam", "object": "chat.completion", "created": 1_700_000_000, "model": model,
            "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }],
            "usage": counted(prompt_tokens, words.len()),
        });
        Answer::json(200, &reply)
    }
}

/// The words, each with the space before it.
fn words_of(text: &str) -> Vec<String> {
    let starts = text.match_indices(' ').map(|(at, _)| at).filter(|at| *at > 0);
    let mut ends: Vec<usize> = starts.chain([text.len()]).collect();
    ends.dedup();
    let mut from = 0;
    let cut = |to: usize| text[std::mem::replace(&mut from, to)..to].to_owned();
    ends.into_iter().map(cut).filter(|word| !word.is_empty()).collect()
}

fn counted(prompt: usize, completion: usize) -> Value {
    json!({ "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion })
}
