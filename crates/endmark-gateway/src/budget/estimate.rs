//! Estimates the tokens of a prompt before the call is made.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use endmark_wire::json::Value;

use super::parts::{PART_KIND_COUNT, TEXT, measure};

/// Maximum number of remembered sessions. When it is exceeded, all are forgotten.
const MAX_SESSIONS: usize = 4_096;
/// Percentage of the estimate that is held for a call: the estimate plus a margin of 10 %.
const HELD_PERCENT: u64 = 110;
/// Tokens that a provider may add to a prompt, as Anthropic does for tools. They are assumed for a session
/// without earlier prompts, up to the size of the prompt itself.
const MAX_ADDED_TOKENS: u64 = 350;
/// The factor 1, in thousandths.
const UNIT_FACTOR: u64 = 1_000;
/// The range of correction factors for text: from an eighth to four times the usual tokens.
const TEXT_FACTORS: (u64, u64) = (UNIT_FACTOR / 8, UNIT_FACTOR * 4);
/// The range of correction factors for media. It is wide, because a short URL can refer to an hour of video.
const MEDIA_FACTORS: (u64, u64) = (1, UNIT_FACTOR * 250);

/// The estimate of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PromptEstimate {
    /// Tokens of each kind of content, before corrections.
    measured: [u64; PART_KIND_COUNT],
    /// Total tokens, corrected by earlier prompts of the session.
    pub(crate) tokens: u64,
    /// Whether earlier prompts of the session are known.
    is_learned: bool,
}

impl PromptEstimate {
    /// Returns the number of tokens to hold for the call.
    pub(crate) fn held_tokens(&self) -> u64 {
        let added = if self.is_learned { 0 } else { self.tokens.min(MAX_ADDED_TOKENS) };
        self.tokens.saturating_mul(HELD_PERCENT).div_ceil(100).saturating_add(added)
    }
}

/// The correction factors of each session by kind of part, in thousandths.
#[derive(Debug, Default)]
pub(super) struct Calibrations(Mutex<HashMap<String, [u64; PART_KIND_COUNT]>>);

impl Calibrations {
    /// Estimates the prompt of a request.
    pub(super) fn estimate(
        &self,
        session: &str,
        model: &str,
        body: &[u8],
        root: Option<Value<'_>>,
    ) -> PromptEstimate {
        let measured = measure(body, root, model);
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let learned = sessions.get(session).copied();
        let factors = learned.unwrap_or([UNIT_FACTOR; PART_KIND_COUNT]);
        let tokens = corrected_kinds(&measured, &factors).iter().sum();
        PromptEstimate { measured, tokens, is_learned: learned.is_some() }
    }

    /// Learns from the reported tokens of a call's prompt. If the prompt contains media, all tokens beyond
    /// the estimate for its text are attributed to the media.
    pub(super) fn learn(&self, session: &str, estimate: &PromptEstimate, tokens: u64) {
        if tokens == 0 {
            return;
        }
        let measured = &estimate.measured;
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= MAX_SESSIONS && !sessions.contains_key(session) {
            sessions.clear();
        }
        let factors = sessions.entry(session.to_owned()).or_insert([UNIT_FACTOR; PART_KIND_COUNT]);
        let expected = corrected_kinds(measured, factors);
        let media_tokens: u64 = expected.iter().skip(TEXT + 1).sum();
        if media_tokens == 0 {
            factors[TEXT] = scale(UNIT_FACTOR, tokens, measured[TEXT]).clamp(TEXT_FACTORS.0, TEXT_FACTORS.1);
            return;
        }
        let reported_media_tokens = tokens.saturating_sub(expected[TEXT]);
        for (factor, measured) in factors.iter_mut().zip(measured).skip(TEXT + 1) {
            if *measured > 0 {
                *factor = scale(*factor, reported_media_tokens, media_tokens)
                    .clamp(MEDIA_FACTORS.0, MEDIA_FACTORS.1);
            }
        }
    }
}

/// Returns the tokens of each kind, corrected by these factors.
fn corrected_kinds(
    measured: &[u64; PART_KIND_COUNT],
    factors: &[u64; PART_KIND_COUNT],
) -> [u64; PART_KIND_COUNT] {
    std::array::from_fn(|kind| scale(measured[kind], factors[kind], UNIT_FACTOR))
}

fn scale(amount: u64, numerator: u64, denominator: u64) -> u64 {
    let scaled = u128::from(amount) * u128::from(numerator) / u128::from(denominator.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX / PART_KIND_COUNT as u64)
}

#[cfg(test)]
mod tests {
    use endmark_wire::deciding::max_output_tokens;
    use endmark_wire::format::find_by_name;

    use super::*;

    impl Calibrations {
        fn estimate_prompt(&self, session: &str, model: &str, body: &str) -> PromptEstimate {
            self.estimate(session, model, body.as_bytes(), Value::parse_str(body).ok())
        }
    }

    fn request(text: &str) -> String {
        format!(r#"{{"messages":[{{"role":"user","content":"{text}"}}]}}"#)
    }

    #[test]
    fn a_session_estimate_follows_its_reported_usage() {
        let calibrations = Calibrations::default();
        let (body, longer) = (request(&"harbour ".repeat(400)), request(&"harbour ".repeat(800)));
        let first = calibrations.estimate_prompt("s", "m", &body);
        assert_eq!(first.held_tokens(), (first.tokens * 11).div_ceil(10) + 350);
        calibrations.learn("s", &first, 1_200);
        let next = calibrations.estimate_prompt("s", "m", &longer);
        assert!((2_300..2_500).contains(&next.tokens), "{next:?}");
        assert_eq!(next.held_tokens(), (next.tokens * 11).div_ceil(10));
        assert_eq!(calibrations.estimate_prompt("t", "m", &body).tokens, first.tokens);
        // An implausible report has a limited effect.
        for (reported, expected) in [(1 << 40, first.tokens * 4), (1, first.tokens / 8)] {
            calibrations.learn("s", &first, reported);
            assert!(
                calibrations.estimate_prompt("s", "m", &body).tokens.abs_diff(expected) <= 1,
                "{reported}"
            );
        }
        for number in 0..2 * MAX_SESSIONS {
            calibrations.learn(&number.to_string(), &first, 5);
        }
        assert!(calibrations.0.lock().unwrap().len() <= MAX_SESSIONS);
    }

    #[test]
    fn media_do_not_affect_the_text_estimate() {
        let calibrations = Calibrations::default();
        let video = r#"{"fileData":{"mimeType":"video/mp4","fileUri":"gs://a/b"}}"#;
        let body = |text: &str| format!(r#"{{"contents":[{{"parts":[{video},{{"text":"{text}"}}]}}]}}"#);
        let first = calibrations.estimate_prompt("s", "m", &body("What is in it?"));
        assert!(first.tokens > 10_000);
        calibrations.learn("s", &first, 20_000);
        // 20,000 for the video, and a token for each word.
        let next = calibrations.estimate_prompt("s", "m", &body(&"harbour ".repeat(50_000))).tokens;
        assert!((70_000..100_000).contains(&next), "{next}");
    }

    #[test]
    fn an_image_is_not_counted_as_text() {
        let image = "A".repeat(400_000);
        let body = format!(
            r#"{{"messages":[{{"role":"user","content":[{{"type":"image_url","image_url":{{"url":"data:image/png;base64,{image}"}}}}]}}]}}"#
        );
        assert!(Calibrations::default().estimate_prompt("s", "gpt-5", &body).tokens < 3_000);
    }

    #[test]
    fn an_output_limit_applies_to_each_choice() {
        let output = |format: &str, body: &str| {
            max_output_tokens(
                Value::parse_str(body).unwrap(),
                find_by_name(format).unwrap().facts().deciding_fields,
                4_096,
            )
        };
        assert_eq!(output("openai_chat", r#"{"messages":[],"max_tokens":10,"n":3}"#), 30);
        assert_eq!(output("openai_chat", r#"{"messages":[]}"#), 4_096);
        assert_eq!(output("gemini", r#"{"contents":[],"generationConfig":{"maxOutputTokens":7}}"#), 7);
    }
}
