//! Settings for correcting the format of a reply.

use endmark_recovery::MAX_CORRECTION_ATTEMPTS;
use endmark_setting::{AtLeast, Flag, settings};

settings! {
    /// What a correction of a reply's form may do (PC-6).
    #[derive(Debug, Clone)]
    pub struct CorrectSettings {
        /// Formatting corrections tried (`MAX_CORRECTION_ATTEMPTS`).
        max_attempts: u32 = MAX_CORRECTION_ATTEMPTS, AtLeast(0);
        /// Whether a correction may change or drop a value that was received complete.
        may_change: bool = false, Flag;
    }
}
