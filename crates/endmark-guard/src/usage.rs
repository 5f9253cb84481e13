//! The usage of a run, and the risk that its context overflows. (CG-4)

use serde::{Deserialize, Serialize};

/// The tokens of a run or a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TokenUsage {
    /// Input tokens, including those from a cache.
    pub input: u64,
    /// Output tokens, including reasoning.
    pub output: u64,
    /// The sum of `input` and `output`.
    pub total: u64,
}

impl TokenUsage {
    /// Creates a usage with the total of both counts.
    pub fn new(input: u64, output: u64) -> Self {
        Self { input, output, total: input.saturating_add(output) }
    }

    /// Returns the sum of two usages.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self::new(self.input.saturating_add(other.input), self.output.saturating_add(other.output))
    }
}

/// The usage that an agent's stream reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentUsage {
    /// The sum over all calls. Each call sends the history again, so this sum does not show how full the
    /// context is.
    pub run: TokenUsage,
    /// The tokens of the largest single call, input and output together, if the stream reports calls.
    pub largest_call_tokens: Option<u64>,
    /// The cost in billionths of a US dollar, if the agent reports it.
    pub cost_nanodollars: Option<u64>,
    /// The model, as the agent names it.
    pub model: Option<String>,
    /// The size of the model's context, if the agent reports it.
    pub context_tokens: Option<u64>,
}

/// Whether a run is close to exhausting its context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextRisk {
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
/// use endmark_guard::{AgentUsage, ContextRisk, TokenUsage, risk};
///
/// let usage = AgentUsage { largest_call_tokens: Some(180_000), ..AgentUsage::default() };
/// assert_eq!(risk(&usage, 0.85, Some(200_000)), ContextRisk::Exceeded);
/// assert_eq!(risk(&usage, 0.95, Some(200_000)), ContextRisk::None);
/// let sum = AgentUsage { run: TokenUsage::new(900_000, 20_000), ..AgentUsage::default() };
/// assert_eq!(risk(&sum, 0.85, Some(200_000)), ContextRisk::SumOnly);
/// assert_eq!(risk(&sum, 0.85, None), ContextRisk::Unknown);
/// ```
pub fn risk(usage: &AgentUsage, threshold: f64, limit_tokens: Option<u64>) -> ContextRisk {
    let Some(limit) = limit_tokens.or(usage.context_tokens) else { return ContextRisk::Unknown };
    match usage.largest_call_tokens {
        Some(largest) if is_above(largest, threshold, limit) => ContextRisk::Exceeded,
        None if usage.run.total == 0 => ContextRisk::Unknown,
        None if is_above(usage.run.total, threshold, limit) => ContextRisk::SumOnly,
        // If only the sum is known and it is below the threshold, no call can be above it.
        Some(_) | None => ContextRisk::None,
    }
}

#[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
fn is_above(tokens: u64, threshold: f64, limit: u64) -> bool {
    tokens as f64 > threshold * limit as f64
}
