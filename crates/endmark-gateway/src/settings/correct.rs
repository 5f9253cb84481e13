//! Settings for correcting the format of a reply.

use endmark_recovery::DEFAULT_MAX_CORRECTIONS;
use endmark_setting::{AtLeast, Flag, settings};

settings! {
    /// How the format of a reply may be corrected (PC-6).
    #[derive(Debug, Clone)]
    pub struct CorrectSettings {
        /// Attempts to correct the format of a reply (`MAX_CORRECTION_ATTEMPTS`).
        max_attempts: u32 = DEFAULT_MAX_CORRECTIONS, AtLeast(0);
        /// Whether a correction may change or drop a value that had arrived completely.
        may_change: bool = false, Flag;
    }
}
