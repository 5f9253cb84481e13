//! The gateway's own keys.

use std::time::Duration;

use endmark_setting::{AtLeast, settings};

settings! {
    /// The gateway's own keys.
    #[derive(Debug, Clone)]
    pub struct KeySettings {
        // Enough time for most database repairs. Instances check for changed keys twice a second, and a standby takes
        // over within three seconds.
        /// With PostgreSQL: how long the last known keys are accepted if the database fails; after that, requests with them get the status 503.
        stale_after as "stale_seconds": Duration = Duration::from_hours(1), AtLeast(5);
    }
}
