//! The usage of a run, and the risk for its context. (CG-4)

use serde::{Deserialize, Serialize};

/// The tokens of a run or a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TokenUsage {
    /// Input tokens, including those from a cache.
    pub input: u64,
    /// Output tokens, including reasoning.
    pub output: u64,
    /// The sum of both.
    pub total: u64,
}

impl TokenUsage {
    /// Creates a usage with the sum of both.
    pub fn new(input: u64, output: u64) -> Self {
        Self { input, output, total: input.saturating_add(output) }
    }

    /// Adds two usages.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self::new(self.input.saturating_add(other.input), self.output.saturating_add(other.output))
    }
}

/// The usage that an agent's stream reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// The sum of all calls. The history counts once per call, so this says nothing about the size of the context.
    pub run: TokenUsage,
    /// The largest single call, input and output together, if the stream reports calls.
    pub largest_call_tokens: Option<u64>,
    /// The cost in billionths of a US dollar, if the agent reports it.
    pub cost_nanodollars: Option<u64>,
    /// The model, as the agent names it.
    pub model: Option<String>,
    /// The size of the model's context, if the agent reports it.
    pub context_tokens: Option<u64>,
}

/// Whether a run is about to exhaust its context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Risk {
    /// The usage or the model's limit is unknown.
    Unknown,
    /// All calls were below the threshold.
    None,
    /// Only the sum of all calls is known, and it is above the threshold. This is only a warning.
    SumOnly,
    /// A call was above the threshold.
    Exceeded,
}

/// Compares the usage with a share of the model's context. (CG-4)
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
        // If only the sum is known and it is below, no call can be above.
        Some(_) | None => Risk::None,
    }
}

#[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
fn is_above(tokens: u64, threshold: f64, limit: u64) -> bool {
    tokens as f64 > threshold * limit as f64
}
