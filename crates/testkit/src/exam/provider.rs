//! A provider with one fault, and the healthy fallback provider.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::format::{ExamFormat, ProviderRefusal};
use super::frames::{INVALID_EVENT, ProviderReply};
use super::{
    FALLBACK_KEY, FALLBACK_MODEL, FaultTiming, HEALTHY_MODEL, ProviderFault, REPLY_TEXT, RESTORE_MODEL,
    WORDS_BEFORE_CUT, WORDS_BEFORE_GARBAGE, WORDS_BEFORE_STALL,
};
use crate::answer::{Answer, Fault};
use crate::script::Respond;
use crate::upstream::ReceivedRequest;

/// Pause between two words of a stream.
const WORD_INTERVAL: Duration = Duration::from_millis(2);

/// Answers each request with the exam's reply, except for its fault.
pub struct Provider {
    format: ExamFormat,
    failing: ProviderFault,
    pace: FaultTiming,
    /// The only model and key that are accepted; `None` if all are accepted.
    accepted_model_and_key: Option<(&'static str, &'static str)>,
    rejects_prefill: bool,
    is_down: AtomicBool,
    tries: Mutex<usize>,
}

impl Provider {
    /// Creates a provider with this fault.
    pub fn new(format: ExamFormat, failing: ProviderFault, pace: FaultTiming) -> Self {
        let (is_down, tries) = (AtomicBool::new(failing == ProviderFault::Outage), Mutex::default());
        Self { format, failing, pace, accepted_model_and_key: None, rejects_prefill: false, is_down, tries }
    }

    /// Creates the healthy fallback provider, which accepts one model and one key.
    pub fn fallback(format: ExamFormat, rejects_prefill: bool) -> Self {
        let only = Some((FALLBACK_MODEL, FALLBACK_KEY));
        Self {
            accepted_model_and_key: only,
            rejects_prefill,
            ..Self::new(format, ProviderFault::NoFault, FaultTiming::SHORT_WAITS)
        }
    }

    fn refusal(&self, request: &ReceivedRequest, model: &str) -> Option<Answer> {
        let (only_model, only_key) = self.accepted_model_and_key?;
        if !self.format.has_key(request, only_key) {
            return Some(self.format.refusal_response(ProviderRefusal::Unauthorized));
        }
        (model != only_model).then(|| self.format.refusal_response(ProviderRefusal::NoSuchModel))
    }

    /// Returns the faulty response to a try, or `None` if the response is healthy. Tries are counted from 0.
    fn faulty_answer(&self, number: usize) -> Option<Answer> {
        let refuse = |refusal| Some(self.format.refusal_response(refusal));
        match self.failing {
            ProviderFault::RateLimitedOnce if number == 0 => {
                let refused = self.format.refusal_response(ProviderRefusal::RateLimited);
                Some(refused.header("retry-after", &self.pace.retry_after.to_string()))
            }
            ProviderFault::RateLimited => refuse(ProviderRefusal::RateLimited),
            ProviderFault::ErrorOnce if number == 0 => refuse(ProviderRefusal::ServerError),
            ProviderFault::ResetOnce if number == 0 => Some(Answer::without_status(Fault::Reset)),
            ProviderFault::Overloaded => refuse(ProviderRefusal::Overloaded),
            ProviderFault::CutAlways if number > 0 => refuse(ProviderRefusal::Overloaded),
            ProviderFault::Outage if self.is_down.load(Ordering::Relaxed) => {
                refuse(ProviderRefusal::Overloaded)
            }
            ProviderFault::Silent => Some(Answer::without_status(Fault::Stall)),
            ProviderFault::TooLong => refuse(ProviderRefusal::TooLong),
            ProviderFault::Filtered => refuse(ProviderRefusal::Filtered),
            _ => None,
        }
    }

    /// Returns a stream with this reply, and with the fault if it affects streams.
    fn faulty_stream(&self, reply: &ProviderReply<'_>) -> Answer {
        let frames = reply.frames(self.format);
        let (begun, count) = (frames.begin.len(), frames.words.len());
        let mut all = frames.begin;
        all.extend(frames.words);
        let bytes_of = |words: usize| all.iter().take(begun + words).map(String::len).sum::<usize>();
        let mut fault = match self.failing {
            ProviderFault::Cut | ProviderFault::CutAlways if count > WORDS_BEFORE_CUT => {
                Some((bytes_of(WORDS_BEFORE_CUT), Fault::Close))
            }
            ProviderFault::Stall if count > WORDS_BEFORE_STALL => {
                Some((bytes_of(WORDS_BEFORE_STALL), Fault::Stall))
            }
            _ => None,
        };
        if self.failing == ProviderFault::Garbage && count > WORDS_BEFORE_GARBAGE {
            all.insert(begun + WORDS_BEFORE_GARBAGE, INVALID_EVENT.to_owned());
        }
        all.extend(frames.end);
        if self.failing == ProviderFault::WithoutDone {
            match self.format {
                // In these formats, only the end of the body follows the last event, so that end is omitted.
                ExamFormat::Responses | ExamFormat::Gemini => fault = Some((usize::MAX, Fault::Close)),
                ExamFormat::Chat | ExamFormat::Messages => drop(all.pop()),
            }
        }
        let mut answer = Answer::sse(all).pause(WORD_INTERVAL);
        if self.failing == ProviderFault::SlowStart {
            answer = answer.wait_after_head(self.pace.first_token_delay);
        }
        match fault {
            Some((bytes, fault)) => answer.fault(bytes, fault),
            None => answer,
        }
    }
}

impl Respond for Provider {
    fn respond(&self, request: &ReceivedRequest) -> Answer {
        let model = self.format.model(request);
        if model == RESTORE_MODEL {
            self.is_down.store(false, Ordering::Relaxed);
        }
        if [HEALTHY_MODEL, RESTORE_MODEL].contains(&model.as_str()) {
            return Self::new(self.format, ProviderFault::NoFault, self.pace).answer(request, &model);
        }
        if let Some(refusal) = self.refusal(request, &model) {
            return refusal;
        }
        let number = {
            let mut tries = self.tries.lock().unwrap();
            *tries += 1;
            *tries - 1
        };
        self.faulty_answer(number).unwrap_or_else(|| self.answer(request, &model))
    }
}

impl Provider {
    fn answer(&self, request: &ReceivedRequest, model: &str) -> Answer {
        let body = request.json();
        let messages = self.format.messages(&body);
        let mut rest = REPLY_TEXT;
        if let Some((true, so_far)) = messages.last() {
            if self.rejects_prefill {
                return self.format.refusal_response(ProviderRefusal::NoPrefill);
            }
            // Like a real provider, continue only text that it wrote itself. Otherwise start from the
            // beginning.
            rest = REPLY_TEXT.strip_prefix(so_far.trim_end()).unwrap_or(REPLY_TEXT);
        }
        let prompt_tokens = messages.iter().map(|(_, text)| text.split_whitespace().count()).sum();
        let usage = body["stream_options"]["include_usage"] == true;
        let reply = ProviderReply { model, words: &split_words(rest), prompt_tokens, usage };
        if self.format.is_streamed(request) {
            return self.faulty_stream(&reply);
        }
        Answer::json(200, &reply.whole_reply(self.format))
    }
}

/// Splits a text into words. Each word includes the space before it.
fn split_words(text: &str) -> Vec<String> {
    let starts = text.match_indices(' ').map(|(at, _)| at).filter(|at| *at > 0);
    let mut ends: Vec<usize> = starts.chain([text.len()]).collect();
    ends.dedup();
    let mut from = 0;
    let cut = |to: usize| text[std::mem::replace(&mut from, to)..to].to_owned();
    ends.into_iter().map(cut).filter(|word| !word.is_empty()).collect()
}
