//! Settings for changing a conversation on its way to an upstream (CX-1, CX-2, CX-5).

use endmark_context::cap::{DEFAULT_MAX_CHARS, DEFAULT_MAX_ITEMS};
use endmark_context::compact::{
    EMERGENCY_TRIGGER_TOKENS, KEEP_TURNS, WINDOW_BUDGET_TOKENS, WINDOW_TRIGGER_TOKENS,
};
use endmark_setting::{AtLeast, Flag, settings};

/// Minimum limit of a tool's output in characters. The marker with the handle must fit.
const MIN_CAP_CHARS: u64 = 200;

/// Minimum size of a history that is compacted, in tokens. A smaller history could not contain the summary.
const MIN_COMPACT_TOKENS: u64 = 500;

settings! {
    /// Limits of tool results.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct CapSettings {
        /// Maximum characters of a tool's output (`MAX_RESULT_CHARS`).
        max_chars: usize = DEFAULT_MAX_CHARS, AtLeast(MIN_CAP_CHARS);
        /// Maximum items of a list in a tool's output.
        max_items: usize = DEFAULT_MAX_ITEMS, AtLeast(1);
        /// Whether tool outputs are capped before they are sent upstream.
        enabled: bool = true, Flag;
        /// Whether models are offered a tool that reads the omitted parts.
        tool: bool = false, Flag;
    }
}

/// When conversations are compacted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompactSettings {
    /// Settings for condensing a long history (CX-1).
    pub window: WindowSettings,
    /// Settings for condensing a request that is too long for its model (CX-2).
    pub emergency: EmergencySettings,
}

settings! {
    /// Settings for condensing the older part of a long history.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct WindowSettings {
        /// Whether the older part of a long history is condensed.
        enabled: bool = false, Flag;
        /// Size in tokens from which a history is condensed.
        trigger_tokens: u64 = WINDOW_TRIGGER_TOKENS, AtLeast(MIN_COMPACT_TOKENS);
        /// Maximum tokens of a condensed history.
        budget_tokens: u64 = WINDOW_BUDGET_TOKENS, AtLeast(MIN_COMPACT_TOKENS);
        /// Number of newest messages that stay in full.
        keep_turns as "keep_events": usize = KEEP_TURNS, AtLeast(1);
    }
}

settings! {
    /// When a request is condensed that exceeds its model's context window, or that its provider refused for length.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct EmergencySettings {
        /// Whether a request is condensed if it exceeds its model's window, or if its provider rejected it as too long.
        enabled: bool = true, Flag;
        /// Size in tokens from which such a request is condensed; smaller if its model has a smaller window (`SAFE_TRIGGER_TOKENS`).
        trigger_tokens: u64 = EMERGENCY_TRIGGER_TOKENS, AtLeast(MIN_COMPACT_TOKENS);
        /// Number of newest messages that stay in full in such a request.
        keep_turns as "keep_messages": usize = KEEP_TURNS, AtLeast(1);
    }
}
