//! Token counts of calls, in one form for all providers (CX-6).

/// The token counts of one call, or the sum of several calls.
///
/// Totals include their parts: `prompt` includes cached and written tokens, and `completion` includes
/// reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tokens {
    /// All prompt tokens.
    pub prompt: u64,
    /// Prompt tokens, without audio, that were read from a cache.
    pub cached: u64,
    /// Prompt tokens that were written to a short-lived cache (minutes).
    pub cache_write: u64,
    /// Prompt tokens that were written to a one-hour cache.
    pub cache_write_1h: u64,
    /// Audio tokens in the prompt that were not cached.
    pub prompt_audio: u64,
    /// Audio tokens in the prompt that were read from a cache.
    pub cached_audio: u64,
    /// All generated tokens.
    pub completion: u64,
    /// Generated reasoning tokens.
    pub reasoning: u64,
    /// Generated audio tokens.
    pub completion_audio: u64,
    /// Number of searches that the provider made.
    pub web_searches: u64,
}

impl std::ops::Add for Tokens {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            prompt: self.prompt.saturating_add(other.prompt),
            cached: self.cached.saturating_add(other.cached),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            cache_write_1h: self.cache_write_1h.saturating_add(other.cache_write_1h),
            prompt_audio: self.prompt_audio.saturating_add(other.prompt_audio),
            cached_audio: self.cached_audio.saturating_add(other.cached_audio),
            completion: self.completion.saturating_add(other.completion),
            reasoning: self.reasoning.saturating_add(other.reasoning),
            completion_audio: self.completion_audio.saturating_add(other.completion_audio),
            web_searches: self.web_searches.saturating_add(other.web_searches),
        }
    }
}
