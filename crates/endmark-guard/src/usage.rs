//! What a run used, and whether its context is at risk. (CG-4)

use serde::{Deserialize, Serialize};

/// Tokens of a run, or of one call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TokenUsage {
    /// What was read, with what came from a cache.
    pub input: u64,
    /// What was written, with what was thought.
    pub output: u64,
    /// Both.
    pub total: u64,
}

impl TokenUsage {
    /// The sum of both.
    pub fn new(input: u64, output: u64) -> Self {
        Self { input, output, total: input.saturating_add(output) }
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self::new(self.input.saturating_add(other.input), self.output.saturating_add(other.output))
    }
}

/// What an agent's stream says of what it used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// All calls together; the same history counts once for each call, so that this says nothing about the context.
    pub run: TokenUsage,
    /// The largest single call, input and output together, where the stream reports calls.
    pub largest_call_tokens: Option<u64>,
    /// What it cost, in billionths of a US dollar, where the agent says so.
    pub cost_nanodollars: Option<u64>,
    /// The model, as the agent names it.
    pub model: Option<String>,
    /// How large the model's context is, where the agent says so.
    pub context_tokens: Option<u64>,
}

/// Whether a run is about to run out of context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Risk {
    /// Nothing is known of what was used, or of the model's limit.
    Unknown,
    /// All calls were below the threshold.
    None,
    /// Only the sum of all calls is known, and it is above: a warning, and no more.
    SumOnly,
    /// A call was above.
    Exceeded,
}

/// Compares what was used with a share of the model's context. (CG-4)
///
/// ```
/// use endmark_guard::{Risk, TokenUsage, Usage, risk};
///
/// let usage = Usage { largest_call_tokens: Some(180_000), ..Usage::default() };
/// assert_eq!(risk(&usage, 0.85, Some(200_000)), Risk::Exceeded);
/// assert_eq!(risk(&usage, 0.95, Some(200_000)), Risk::None);
/// let sum = Usage { run: TokenUsage::new(900_000, 20_000), ..Usage::default() };
/// assert_eq!(risk(&sum, 0.85, Some(200_000)), Risk::SumOnly);
/// assert_eq!(risk(&sum, 0.85, None), Risk::Unknown);
/// ```
pub fn risk(usage: &Usage, threshold: f64, limit_tokens: Option<u64>) -> Risk {
    let Some(limit) = limit_tokens.or(usage.context_tokens) else { return Risk::Unknown };
    match usage.largest_call_tokens {
        Some(largest) if is_above(largest, threshold, limit) => Risk::Exceeded,
        None if usage.run.total == 0 => Risk::Unknown,
        None if is_above(usage.run.total, threshold, limit) => Risk::SumOnly,
        // Where only the sum is known and below, no call can be above.
        Some(_) | None => Risk::None,
    }
}

#[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
fn is_above(tokens: u64, threshold: f64, limit: u64) -> bool {
    tokens as f64 > threshold * limit as f64
}
