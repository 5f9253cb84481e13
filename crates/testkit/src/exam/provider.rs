//! A provider with one fault, and the healthy fallback provider.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::format::{Format, Refusal};
use super::frames::{GARBAGE, ProviderReply};
use super::{
    ANSWER, FALLBACK_KEY, FALLBACK_MODEL, Failing, HEALTHY_MODEL, Pace, RESTORE_MODEL, WORDS_BEFORE_CUT,
    WORDS_BEFORE_GARBAGE, WORDS_BEFORE_STALL,
};
use crate::answer::{Answer, Fault};
use crate::script::Respond;
use crate::upstream::Received;

/// Pause between two words of a stream.
const WORD_INTERVAL: Duration = Duration::from_millis(2);

/// Answers every request with the exam's reply, except for its fault.
pub struct Provider {
    format: Format,
    failing: Failing,
    pace: Pace,
    /// The only accepted model and key; `None` if any are accepted.
    only: Option<(&'static str, &'static str)>,
    rejects_prefill: bool,
    is_down: AtomicBool,
    tries: Mutex<usize>,
}

impl Provider {
    /// Creates a provider with this fault, whose time starts now.
    pub fn new(format: Format, failing: Failing, pace: Pace) -> Self {
        let (is_down, tries) = (AtomicBool::new(failing == Failing::Flaps), Mutex::default());
        Self { format, failing, pace, only: None, rejects_prefill: false, is_down, tries }
    }

    /// Creates the healthy fallback provider, which accepts one model and one key.
    pub fn fallback(format: Format, rejects_prefill: bool) -> Self {
        let only = Some((FALLBACK_MODEL, FALLBACK_KEY));
        Self { only, rejects_prefill, ..Self::new(format, Failing::Never, Pace::SHORT_WAITS) }
    }

    fn refusal(&self, request: &Received, model: &str) -> Option<Answer> {
        let (only_model, only_key) = self.only?;
        if !self.format.has_key(request, only_key) {
            return Some(self.format.refuse(Refusal::Unauthorized));
        }
        (model != only_model).then(|| self.format.refuse(Refusal::NoSuchModel))
    }

    /// Returns the faulty response to this try, counted from 0; `None` for a healthy response.
    fn faulty_answer(&self, number: usize) -> Option<Answer> {
        let refuse = |refusal| Some(self.format.refuse(refusal));
        match self.failing {
            Failing::RateLimitedOnce if number == 0 => {
                let refused = self.format.refuse(Refusal::RateLimited);
                Some(refused.header("retry-after", &self.pace.retry_after.to_string()))
            }
            Failing::RateLimited => refuse(Refusal::RateLimited),
            Failing::ErrorOnce if number == 0 => refuse(Refusal::ServerError),
            Failing::ResetOnce if number == 0 => Some(Answer::without_status(Fault::Reset)),
            Failing::Overloaded => refuse(Refusal::Overloaded),
            Failing::CutAlways if number > 0 => refuse(Refusal::Overloaded),
            Failing::Flaps if self.is_down.load(Ordering::Relaxed) => refuse(Refusal::Overloaded),
            Failing::Silent => Some(Answer::without_status(Fault::Stall)),
            Failing::TooLong => refuse(Refusal::TooLong),
            Failing::Filtered => refuse(Refusal::Filtered),
            _ => None,
        }
    }

    /// Returns the stream of this reply, with the fault if it concerns streams.
    fn stream(&self, reply: &ProviderReply<'_>) -> Answer {
        let frames = reply.frames(self.format);
        let (begun, count) = (frames.begin.len(), frames.words.len());
        let mut all = frames.begin;
        all.extend(frames.words);
        let bytes_of = |words: usize| all.iter().take(begun + words).map(String::len).sum::<usize>();
        let mut fault = match self.failing {
            Failing::Cut | Failing::CutAlways if count > WORDS_BEFORE_CUT => {
                Some((bytes_of(WORDS_BEFORE_CUT), Fault::Close))
            }
            Failing::Stalls if count > WORDS_BEFORE_STALL => {
                Some((bytes_of(WORDS_BEFORE_STALL), Fault::Stall))
            }
            _ => None,
        };
        if self.failing == Failing::Garbage && count > WORDS_BEFORE_GARBAGE {
            all.insert(begun + WORDS_BEFORE_GARBAGE, GARBAGE.to_owned());
        }
        all.extend(frames.end);
        if self.failing == Failing::WithoutDone {
            match self.format {
                // After the last event, only the end of the body is left to omit.
                Format::Responses | Format::Gemini => fault = Some((usize::MAX, Fault::Close)),
                Format::Chat | Format::Messages => drop(all.pop()),
            }
        }
        let mut answer = Answer::sse(all).pause(WORD_INTERVAL);
        if self.failing == Failing::SlowStart {
            answer = answer.wait_after_head(self.pace.slow);
        }
        match fault {
            Some((bytes, fault)) => answer.fault(bytes, fault),
            None => answer,
        }
    }
}

impl Respond for Provider {
    fn respond(&self, request: &Received) -> Answer {
        let model = self.format.model(request);
        if model == RESTORE_MODEL {
            self.is_down.store(false, Ordering::Relaxed);
        }
        if [HEALTHY_MODEL, RESTORE_MODEL].contains(&model.as_str()) {
            return Self::new(self.format, Failing::Never, self.pace).answer(request, &model);
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
    fn answer(&self, request: &Received, model: &str) -> Answer {
        let body = request.json();
        let messages = self.format.messages(&body);
        let mut rest = ANSWER;
        if let Some((true, so_far)) = messages.last() {
            if self.rejects_prefill {
                return self.format.refuse(Refusal::NoPrefill);
            }
            // As a real provider, it continues only its own words. Otherwise it starts from the beginning.
            rest = ANSWER.strip_prefix(so_far.trim_end()).unwrap_or(ANSWER);
        }
        let prompt_tokens = messages.iter().map(|(_, text)| text.split_whitespace().count()).sum();
        let usage = body["stream_options"]["include_usage"] == true;
        let reply = ProviderReply { model, words: &split_words(rest), prompt_tokens, usage };
        if self.format.is_streamed(request) {
            return self.stream(&reply);
        }
        Answer::json(200, &reply.whole_reply(self.format))
    }
}

/// Splits a text into words, each with the space before it.
fn split_words(text: &str) -> Vec<String> {
    let starts = text.match_indices(' ').map(|(at, _)| at).filter(|at| *at > 0);
    let mut ends: Vec<usize> = starts.chain([text.len()]).collect();
    ends.dedup();
    let mut from = 0;
    let cut = |to: usize| text[std::mem::replace(&mut from, to)..to].to_owned();
    ends.into_iter().map(cut).filter(|word| !word.is_empty()).collect()
}
