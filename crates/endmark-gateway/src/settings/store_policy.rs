//! Settings for what the store keeps.

use endmark_setting::{AtLeast, Flag, settings};

settings! {
    /// What the store keeps, and for how long.
    #[derive(Debug, Clone)]
    pub struct StorePolicy {
        /// Whether the texts of cut replies are stored.
        keep_text: bool = false, Flag;
        /// For how many days records are kept; 0: forever.
        keep_days: u32 = 30, AtLeast(0);
        /// Compressed size of all kept outputs in the store; the least recently used ones are removed first; 0: no limit.
        outputs_max_bytes: u64 = 2 << 30, AtLeast(0);
    }
}
