//! How much a call can cost, before it is made.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use endmark_context::count;
use endmark_wire::json::Value;

use super::parts::{KINDS, Parts, USUAL_MEDIA_TOKENS};
use crate::work;

/// Sessions whose bytes are known; when there are more, all are learned anew.
const MAX_SESSIONS: usize = 4_096;
/// Tokens for so many bytes, where nothing is known of a session: more than any text but the densest has.
const PARTS: u64 = 1_024;
const USUAL_TOKENS: u64 = PARTS / 3;
/// A body from this size on is counted, and not measured: it may hold images, whose bytes say nothing.
const MEASURED_BYTES: usize = 32 << 10;
/// A session is taken for what it was, and a tenth more.
const MARGIN_PERCENT: u64 = 110;
/// More tokens than one part of a request comes to.
const MOST_MEDIA_TOKENS: u64 = 4_000_000;
/// What a session can have learned: from one token in 32 bytes to one in each.
const FEWEST_TOKENS: u64 = PARTS / 32;

/// What each session came to when it was last reported.
#[derive(Debug, Default)]
pub(super) struct Calibrations(Mutex<HashMap<String, Calibration>>);

/// What a session came to, by the kinds of its parts: an hour of video has as few bytes as its address.
#[derive(Debug, Clone, Copy)]
struct Calibration {
    /// Tokens for [`PARTS`] bytes of text; `None` before a request without media was reported.
    text: Option<u64>,
    /// Tokens of one part of each kind of media.
    media: [u64; KINDS],
    /// The parts of the request that was last estimated.
    last: Parts,
}

impl Default for Calibration {
    fn default() -> Self {
        Self { text: None, media: USUAL_MEDIA_TOKENS, last: Parts::default() }
    }
}

impl Calibration {
    fn text_tokens(&self, parts: &Parts) -> u64 {
        parts.text_bytes.saturating_mul(self.text.unwrap_or(USUAL_TOKENS)) / PARTS
    }

    /// Learns what a request of these parts came to. Media account for what its text does not.
    fn learn(&mut self, parts: &Parts, tokens: u64) {
        if !parts.has_media() {
            let learned = tokens.saturating_mul(PARTS) / parts.text_bytes.max(1);
            self.text = Some(learned.clamp(FEWEST_TOKENS, PARTS));
            return;
        }
        let expected = parts.media_tokens(&self.media).max(1);
        let came = tokens.saturating_sub(self.text_tokens(parts));
        for (each, count) in self.media.iter_mut().zip(parts.media) {
            if count > 0 {
                let scaled = u128::from(*each) * u128::from(came) / u128::from(expected);
                *each = u64::try_from(scaled).unwrap_or(u64::MAX).clamp(1, MOST_MEDIA_TOKENS);
            }
        }
    }
}

impl Calibrations {
    /// Whether the tokens of a request of `bytes` bytes are counted.
    pub(super) fn counts(&self, session: &str, bytes: usize) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        bytes > MEASURED_BYTES && known.get(session).is_none_or(|known| known.text.is_none())
    }

    /// Tokens of a request's prompt: by what its session came to before, else by its size or a count of its family.
    pub(super) fn prompt(&self, session: &str, model: &str, body: &[u8], root: Option<Value<'_>>) -> u64 {
        let parts = Parts::of(body.len(), root);
        let known = self.with(session, |known| {
            known.last = parts;
            *known
        });
        let media = parts.media_tokens(&known.media);
        let margin = |tokens: u64| tokens.saturating_mul(MARGIN_PERCENT).div_ceil(100);
        if known.text.is_some() || parts.has_uncounted_media() {
            return margin(known.text_tokens(&parts).saturating_add(media));
        }
        if body.len() > MEASURED_BYTES
            && let Some(counted) = std::str::from_utf8(body)
                .ok()
                .and_then(|text| count::request_unless(work::is_stopped, text, model).ok())
        {
            return margin(counted.tokens);
        }
        parts.text_bytes.saturating_mul(USUAL_TOKENS).div_ceil(PARTS).saturating_add(media)
    }

    /// Learns what a call's prompt came to.
    pub(super) fn learn(&self, session: &str, bytes: u64, tokens: u64) {
        if bytes == 0 || tokens == 0 {
            return;
        }
        self.with(session, |known| {
            // Another request of the session may have been estimated since: then its bytes count as text.
            let text = Parts { bytes, text_bytes: bytes, ..Parts::default() };
            let parts = if known.last.bytes == bytes { known.last } else { text };
            known.learn(&parts, tokens);
        });
    }

    fn with<T>(&self, session: &str, act: impl FnOnce(&mut Calibration) -> T) -> T {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= MAX_SESSIONS && !sessions.contains_key(session) {
            sessions.clear();
        }
        act(sessions.entry(session.to_owned()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use endmark_wire::deciding::most_output;
    use endmark_wire::format::named;

    use super::*;

    impl Calibrations {
        fn prompt_of(&self, session: &str, model: &str, body: &[u8]) -> u64 {
            self.prompt(session, model, body, Value::parse(body).ok())
        }
    }

    #[test]
    fn a_session_is_estimated_by_what_it_came_to() {
        let calibrations = Calibrations::default();
        let body = vec![b' '; 3_072];
        assert_eq!(calibrations.prompt_of("s", "m", &body), 1_023);
        calibrations.learn("s", 1_000, 250);
        assert_eq!(calibrations.prompt_of("s", "m", &body), 845);
        assert_eq!(calibrations.prompt_of("t", "m", &body), 1_023);
        // A report that cannot be is not believed.
        calibrations.learn("s", 10, 1_000_000);
        assert_eq!(calibrations.prompt_of("s", "m", &body), 3_380);
        calibrations.learn("s", 1_000_000, 1);
        assert_eq!(calibrations.prompt_of("s", "m", &body), 106);
        for number in 0..2 * MAX_SESSIONS {
            calibrations.learn(&number.to_string(), 10, 5);
        }
        assert!(calibrations.0.lock().unwrap().len() <= MAX_SESSIONS);
    }

    #[test]
    fn media_teach_nothing_of_text() {
        let calibrations = Calibrations::default();
        let video = r#"{"fileData":{"mimeType":"video/mp4","fileUri":"gs://a/b"}}"#;
        let body = |text: &str| format!(r#"{{"contents":[{{"parts":[{video},{{"text":"{text}"}}]}}]}}"#);
        let first = body("What is in it?");
        assert!(calibrations.prompt_of("s", "m", first.as_bytes()) > 10_000);
        calibrations.learn("s", first.len() as u64, 20_000);
        // 20,000 for the video, and a token for three bytes of text, with a margin.
        let next = calibrations.prompt_of("s", "m", body(&"x".repeat(200_000)).as_bytes());
        assert!((90_000..100_000).contains(&next), "{next}");
    }

    #[test]
    fn a_large_body_is_counted() {
        let image = "A".repeat(400_000);
        let body = format!(
            r#"{{"messages":[{{"role":"user","content":[{{"type":"image_url","image_url":{{"url":"data:image/png;base64,{image}"}}}}]}}]}}"#
        );
        assert!(Calibrations::default().prompt_of("s", "gpt-5", body.as_bytes()) < 3_000);
    }

    #[test]
    fn a_limit_counts_for_each_choice() {
        let output = |format: &str, body: &str| {
            most_output(Value::parse_str(body).unwrap(), named(format).unwrap().deciding(), 4_096)
        };
        assert_eq!(output("openai_chat", r#"{"messages":[],"max_tokens":10,"n":3}"#), 30);
        assert_eq!(output("openai_chat", r#"{"messages":[]}"#), 4_096);
        assert_eq!(output("gemini", r#"{"contents":[],"generationConfig":{"maxOutputTokens":7}}"#), 7);
    }
}
