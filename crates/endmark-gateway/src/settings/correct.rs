//! What corrections of a reply's form may do.

use endmark_recovery::MAX_CORRECTION_ATTEMPTS;

/// What corrections of a reply's form may do (PC-6).
#[derive(Debug, Clone)]
pub struct CorrectSettings {
    /// Calls that may be spent on them, for each choice that a request asks for.
    pub max_attempts: u32,
    /// Whether they may change or drop what was received complete, though its schema does not demand that.
    pub may_change: bool,
}

impl Default for CorrectSettings {
    fn default() -> Self {
        Self { max_attempts: MAX_CORRECTION_ATTEMPTS, may_change: false }
    }
}
