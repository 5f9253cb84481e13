//! What is done for a conversation on its way to an upstream (CX-1, CX-2, CX-5).

use endmark_context::cap::{DEFAULT_MAX_CHARS, DEFAULT_MAX_ITEMS};
use endmark_context::compact::{
    EMERGENCY_TRIGGER_TOKENS, KEEP_TURNS, WINDOW_BUDGET_TOKENS, WINDOW_TRIGGER_TOKENS,
};

/// How long the results of tools may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapSettings {
    /// Whether they are capped at all.
    pub enabled: bool,
    /// The most characters of one.
    pub max_chars: usize,
    /// The most items of a list in one.
    pub max_items: usize,
    /// Whether a model is offered a tool that reads what was left out.
    pub tool: bool,
}

impl Default for CapSettings {
    fn default() -> Self {
        Self { enabled: true, max_chars: DEFAULT_MAX_CHARS, max_items: DEFAULT_MAX_ITEMS, tool: false }
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

/// The older part of a long history is condensed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowSettings {
    /// Whether it is, where a request does not say so itself.
    pub enabled: bool,
    /// Tokens of a history from which on it is.
    pub trigger_tokens: u64,
    /// The most tokens of a history afterwards.
    pub budget_tokens: u64,
    /// How many of the newest turns stay in full.
    pub keep_turns: usize,
}

impl Default for WindowSettings {
    fn default() -> Self {
        Self {
            enabled: false,
            trigger_tokens: WINDOW_TRIGGER_TOKENS,
            budget_tokens: WINDOW_BUDGET_TOKENS,
            keep_turns: KEEP_TURNS,
        }
    }
}

/// A request is condensed that its model could not take, or that its provider refused for length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmergencySettings {
    /// Whether it is.
    pub enabled: bool,
    /// Tokens of a request from which on it is; fewer where its model takes fewer.
    pub trigger_tokens: u64,
    /// How many of the newest turns stay in full.
    pub keep_turns: usize,
}

impl Default for EmergencySettings {
    fn default() -> Self {
        Self { enabled: true, trigger_tokens: EMERGENCY_TRIGGER_TOKENS, keep_turns: KEEP_TURNS }
    }
}
