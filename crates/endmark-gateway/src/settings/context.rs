//! Settings for changing a conversation on its way to an upstream (CX-1, CX-2, CX-5).

use endmark_context::cap::{DEFAULT_MAX_CHARS, DEFAULT_MAX_ITEMS};
use endmark_context::compact::{
    EMERGENCY_TRIGGER_TOKENS, KEEP_TURNS, WINDOW_BUDGET_TOKENS, WINDOW_TRIGGER_TOKENS,
};
use endmark_setting::{AtLeast, Flag, settings};

/// Minimum limit of a tool's output in characters. The marker with the handle must fit.
const MIN_CAP: u64 = 200;

/// Minimum size of a history that is compacted, in tokens. A smaller history could not contain the summary.
const MIN_COMPACT: u64 = 500;

settings! {
    /// Limits of tool results.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct CapSettings {
        /// Most characters of a tool's output (`MAX_RESULT_CHARS`).
        max_chars: usize = DEFAULT_MAX_CHARS, AtLeast(MIN_CAP);
        /// Most items of a list in a tool's output.
        max_items: usize = DEFAULT_MAX_ITEMS, AtLeast(1);
        /// Whether outputs of tools are capped on their way to an upstream.
        enabled: bool = true, Flag;
        /// Whether models are offered a tool that reads what was left out.
        tool: bool = false, Flag;
    }
}

/// When conversations are compacted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompactSettings {
    /// The sliding window (CX-1).
    pub window: WindowSettings,
    /// The emergency brake (CX-2).
    pub emergency: EmergencySettings,
}

settings! {
    /// Settings for condensing the older part of a long history.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct WindowSettings {
        /// Whether the older part of a long history is condensed.
        enabled: bool = false, Flag;
        /// Tokens of a history from which on that is done.
        trigger_tokens: u64 = WINDOW_TRIGGER_TOKENS, AtLeast(MIN_COMPACT);
        /// Most tokens of a history afterwards.
        budget_tokens: u64 = WINDOW_BUDGET_TOKENS, AtLeast(MIN_COMPACT);
        /// Newest messages that stay in full.
        keep_turns as "keep_events": usize = KEEP_TURNS, AtLeast(1);
    }
}

settings! {
    /// When a request is condensed that exceeds its model's context window, or that its provider refused for length.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct EmergencySettings {
        /// Whether a request is condensed that no model could take, or that its provider refused for length.
        enabled: bool = true, Flag;
        /// Size in tokens from which such a request is condensed; less if its model has a smaller window (`SAFE_TRIGGER_TOKENS`).
        trigger_tokens: u64 = EMERGENCY_TRIGGER_TOKENS, AtLeast(MIN_COMPACT);
        /// Newest messages that stay in full then.
        keep_turns as "keep_messages": usize = KEEP_TURNS, AtLeast(1);
    }
}
