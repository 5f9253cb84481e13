//! The tokens of a call, as the provider reports them.

use super::Details;

/// The tokens of one call, or the sum over several calls.
///
/// ```
/// use endmark_wire::reply::Usage;
/// let first = Usage { prompt: 10, completion: 20, total: 30, cached: Some(8), ..Usage::default() };
/// let second = Usage { prompt: 31, completion: 4, total: 35, ..Usage::default() };
/// let sum = Usage { prompt: 41, completion: 24, total: 65, cached: Some(8), ..Usage::default() };
/// assert_eq!(first + second, sum);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens of the prompt, including cached ones.
    pub prompt: u64,
    /// Generated tokens, including reasoning.
    pub completion: u64,
    /// The sum of `prompt` and `completion`, or the provider's own total.
    pub total: u64,
    /// Tokens of the prompt that were written to a cache. `None` if the provider does not count them.
    pub written: Option<u64>,
    /// Tokens of the prompt that were read from a cache.
    pub cached: Option<u64>,
    /// Generated tokens that were reasoning.
    pub reasoning: Option<u64>,
    /// Further counts by the provider.
    pub details: Details,
}

/// Google's name for audio tokens.
const AUDIO: &str = "AUDIO";

/// The objects in which OpenAI's formats count parts of the prompt.
const OPENAI_PROMPT_DETAILS: [&str; 2] = ["prompt_tokens_details", "input_tokens_details"];

impl Usage {
    /// Returns the tokens of the prompt that were written to a cache with any lifetime.
    pub fn cache_writes(&self) -> Option<u64> {
        let at_openai = |object| self.details.member(object, "cache_write_tokens");
        self.written.or_else(|| OPENAI_PROMPT_DETAILS.into_iter().find_map(at_openai))
    }

    /// Returns the audio tokens in the prompt, including cached ones.
    pub fn prompt_audio(&self) -> Option<u64> {
        let at_openai = |object| self.details.member(object, "audio_tokens");
        let at_google = || self.details.modality("promptTokensDetails", AUDIO);
        OPENAI_PROMPT_DETAILS.into_iter().find_map(at_openai).or_else(at_google)
    }

    /// Returns the audio tokens in the prompt that were read from a cache.
    pub fn cached_audio(&self) -> Option<u64> {
        self.details.modality("cacheTokensDetails", AUDIO)
    }

    /// Returns the generated audio tokens.
    pub fn completion_audio(&self) -> Option<u64> {
        let at_openai = |object| self.details.member(object, "audio_tokens");
        let at_google = || self.details.modality("candidatesTokensDetails", AUDIO);
        ["completion_tokens_details", "output_tokens_details"]
            .into_iter()
            .find_map(at_openai)
            .or_else(at_google)
    }

    /// Returns the number of web searches that the provider counts.
    pub fn web_searches(&self) -> Option<u64> {
        let at_perplexity = || self.details.count("num_search_queries");
        self.details.member("server_tool_use", "web_search_requests").or_else(at_perplexity)
    }

    /// Returns the tokens that were written to a cache for one hour. Anthropic bills them separately.
    pub fn cache_writes_for_an_hour(&self) -> Option<u64> {
        self.details.member("cache_creation", "ephemeral_1h_input_tokens")
    }

    /// Returns whether the provider reports only a total, without counts of the prompt and the reply.
    pub fn has_only_total(&self) -> bool {
        self.total > 0 && self.prompt == 0 && self.completion == 0
    }

    /// Returns the largest of its token counts.
    pub fn largest_count(&self) -> u64 {
        let parts = [
            self.cached,
            self.reasoning,
            self.cache_writes(),
            self.cache_writes_for_an_hour(),
            self.prompt_audio(),
            self.cached_audio(),
            self.completion_audio(),
        ];
        let parts = parts.into_iter().flatten();
        parts.chain([self.prompt, self.completion, self.total]).max().unwrap_or(0)
    }
}

/// The token counts of a call as a provider states them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StatedCounts {
    pub(crate) prompt: u64,
    pub(crate) completion: u64,
    pub(crate) total: Option<u64>,
    /// Tokens that were read from a cache or written to one.
    pub(crate) in_cache: u64,
    pub(crate) reasoning: Option<u64>,
}

impl StatedCounts {
    /// Returns the prompt, the completion and the total, such that no part exceeds its whole.
    ///
    /// If the total shows that the provider counts a part outside its whole, that part is added to the whole.
    /// xAI and Google count reasoning outside the completion, and some proxies count Anthropic's cached
    /// tokens outside the prompt. Parts that do not add up to the total are kept. In that case the total
    /// differs from the sum of prompt and completion.
    pub(crate) fn with_parts_within(self) -> (u64, u64, u64) {
        let Self { mut prompt, mut completion, in_cache, reasoning, .. } = self;
        let stated = prompt.saturating_add(completion);
        let total = self.total.filter(|total| *total > 0);
        let beside = total.unwrap_or(0).saturating_sub(stated);
        let (beside_prompt, beside_completion) = match beside {
            0 => (0, 0),
            _ if reasoning == Some(beside) => (0, beside),
            _ if beside == in_cache => (beside, 0),
            _ if reasoning.is_some_and(|reasoning| reasoning.saturating_add(in_cache) == beside) => {
                (in_cache, beside - in_cache)
            }
            _ if reasoning.is_none() => (0, beside),
            _ => (0, 0),
        };
        prompt = prompt.saturating_add(beside_prompt);
        completion = completion.saturating_add(beside_completion);
        // No part may exceed its whole.
        if in_cache > prompt {
            prompt = prompt.saturating_add(in_cache);
        }
        if let Some(reasoning) = reasoning.filter(|reasoning| *reasoning > completion) {
            completion = completion.saturating_add(reasoning);
        }
        let sum = prompt.saturating_add(completion);
        let total = if sum == stated { total.unwrap_or(sum) } else { total.unwrap_or(0).max(sum) };
        (prompt, completion, total)
    }
}

impl Usage {
    /// Returns whether all token counts are zero.
    pub(crate) fn is_zero(&self) -> bool {
        self.prompt == 0 && self.completion == 0 && self.total == 0
    }
}

impl std::ops::Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let both = |one: Option<u64>, two: Option<u64>| match (one, two) {
            (Some(one), Some(two)) => Some(one.saturating_add(two)),
            (one, two) => one.or(two),
        };
        Self {
            prompt: self.prompt.saturating_add(other.prompt),
            completion: self.completion.saturating_add(other.completion),
            total: self.total.saturating_add(other.total),
            written: both(self.written, other.written),
            cached: both(self.cached, other.cached),
            reasoning: both(self.reasoning, other.reasoning),
            details: self.details.plus(&other.details),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_does_not_overflow() {
        let most = Usage {
            prompt: u64::MAX,
            completion: u64::MAX,
            total: u64::MAX,
            cached: Some(u64::MAX),
            ..Usage::default()
        };
        assert_eq!(most.clone() + most.clone(), most);
    }
}
