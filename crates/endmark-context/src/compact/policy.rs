//! Policies: when a conversation is compacted, and to which size (CX-1, CX-2).

/// Counts the tokens of a text.
pub type Count = fn(&str) -> u64;

/// The window compacts a history of at least this many tokens.
pub const WINDOW_TRIGGER_TOKENS: u64 = 24_000;
/// Default budget of the history after a window compaction, in tokens.
pub const WINDOW_BUDGET_TOKENS: u64 = 32_000;
/// The emergency brake applies to whole requests of at least this many tokens.
pub const EMERGENCY_TRIGGER_TOKENS: u64 = 850_000;
/// Number of newest turns that stay in full.
pub const KEEP_TURNS: usize = 10;

/// The style of the summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The sliding window: a narrative in sentences (CX-1).
    Window,
    /// The emergency brake: a list of calls and thoughts (CX-2).
    Emergency,
}

/// The policy: when a conversation is compacted, and to which size.
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// The style of the summary, which also determines what the trigger counts.
    pub mode: Mode,
    /// Smaller conversations are not compacted. [`Mode::Window`] counts the history, [`Mode::Emergency`] the whole
    /// request.
    pub trigger_tokens: u64,
    /// Most tokens of the history after a compaction, if that can be reached.
    pub budget_tokens: u64,
    /// Number of newest turns that stay in full; fewer if the budget requires it.
    pub keep_turns: usize,
    /// Compacts to this share of the history's tokens (0 to 1) regardless of its size, instead of by trigger and budget.
    pub keep_share: Option<f64>,
    /// Tokens of the request outside the conversation, such as tool definitions.
    pub fixed_tokens: u64,
    /// The token counter.
    pub count: Count,
}

impl Policy {
    /// Returns the policy of the sliding window (CX-1).
    pub fn window(count: Count) -> Self {
        Self {
            mode: Mode::Window,
            trigger_tokens: WINDOW_TRIGGER_TOKENS,
            budget_tokens: WINDOW_BUDGET_TOKENS,
            keep_turns: KEEP_TURNS,
            keep_share: None,
            fixed_tokens: 0,
            count,
        }
    }

    /// Returns the policy of the emergency brake (CX-2).
    pub fn emergency(count: Count) -> Self {
        Self {
            mode: Mode::Emergency,
            trigger_tokens: EMERGENCY_TRIGGER_TOKENS,
            budget_tokens: EMERGENCY_TRIGGER_TOKENS / 10 * 6,
            ..Self::window(count)
        }
    }

    /// Returns the policy with this trigger and budget. If only one is given, the other keeps its ratio to it.
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

/// Returns a number times a ratio.
fn scale(number: u64, to: u64, from: u64) -> u64 {
    u64::try_from(u128::from(number) * u128::from(to) / u128::from(from.max(1))).unwrap_or(u64::MAX)
}
