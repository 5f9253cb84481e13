//! Policies decide when a conversation is compacted, and to which size (CX-1, CX-2).

/// Counts the tokens of a text.
pub type TokenCounter = fn(&str) -> u64;

/// The sliding window compacts a history of at least this many tokens.
pub const WINDOW_TRIGGER_TOKENS: u64 = 24_000;
/// Default number of tokens that the history may have after a window compaction.
pub const WINDOW_BUDGET_TOKENS: u64 = 32_000;
/// The emergency brake compacts a request of at least this many tokens.
pub const EMERGENCY_TRIGGER_TOKENS: u64 = 850_000;
/// Default number of newest turns that stay in full.
pub const KEEP_TURNS: usize = 10;

/// The occasion of a compaction, which decides the style of the summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CompactionMode {
    /// The sliding window. Its summary is a narrative in sentences (CX-1).
    Window,
    /// The emergency brake. Its summary is a list of calls and thoughts (CX-2).
    Emergency,
}

/// When a conversation is compacted, and to which size.
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// Decides the style of the summary, and which tokens count for the trigger.
    pub mode: CompactionMode,
    /// Smaller conversations are not compacted. [`CompactionMode::Window`] counts the tokens of the history,
    /// [`CompactionMode::Emergency`] those of the whole request.
    pub trigger_tokens: u64,
    /// Maximum tokens of the history after a compaction, if this can be reached.
    pub budget_tokens: u64,
    /// Number of newest turns that stay in full. Fewer stay if the budget requires it.
    pub keep_turns: usize,
    /// If given, the history is always compacted to this share of its tokens (0 to 1). Trigger and budget are
    /// then ignored.
    pub keep_share: Option<f64>,
    /// Tokens of the request outside the conversation, for example for tool definitions.
    pub fixed_tokens: u64,
    /// The token counter.
    pub count: TokenCounter,
}

impl Policy {
    /// Returns the policy of the sliding window (CX-1).
    pub fn window(count: TokenCounter) -> Self {
        Self {
            mode: CompactionMode::Window,
            trigger_tokens: WINDOW_TRIGGER_TOKENS,
            budget_tokens: WINDOW_BUDGET_TOKENS,
            keep_turns: KEEP_TURNS,
            keep_share: None,
            fixed_tokens: 0,
            count,
        }
    }

    /// Returns the policy of the emergency brake (CX-2).
    pub fn emergency(count: TokenCounter) -> Self {
        Self {
            mode: CompactionMode::Emergency,
            trigger_tokens: EMERGENCY_TRIGGER_TOKENS,
            budget_tokens: EMERGENCY_TRIGGER_TOKENS / 10 * 6,
            ..Self::window(count)
        }
    }

    /// Sets trigger and budget. If only one of them is given, the other is scaled by the same ratio.
    #[must_use]
    pub fn with_sizes(self, trigger: Option<u64>, budget: Option<u64>) -> Self {
        let trigger_tokens = match (trigger, budget) {
            (Some(trigger), _) => trigger,
            (None, Some(budget)) => scale(budget, self.trigger_tokens, self.budget_tokens),
            (None, None) => self.trigger_tokens,
        };
        let in_ratio = || scale(trigger_tokens, self.budget_tokens, self.trigger_tokens).max(1);
        Self { trigger_tokens, budget_tokens: budget.unwrap_or_else(in_ratio), ..self }
    }
}

/// Returns `number` times `to` / `from`.
fn scale(number: u64, to: u64, from: u64) -> u64 {
    u64::try_from(u128::from(number) * u128::from(to) / u128::from(from.max(1))).unwrap_or(u64::MAX)
}
