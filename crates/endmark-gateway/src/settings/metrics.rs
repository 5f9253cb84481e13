//! Settings for access to the metrics.

use endmark_setting::{OneOf, settings};

/// Which clients may read the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsAccess {
    /// All clients that can reach the gateway.
    Open,
    /// Clients with the admin key.
    Admin,
}

const ACCESS_VALUES: OneOf<MetricsAccess> =
    OneOf(&[("open", MetricsAccess::Open), ("admin", MetricsAccess::Admin)]);

settings! {
    /// The counters at `/endmark/metrics`.
    #[derive(Debug, Clone)]
    pub struct MetricsSettings {
        /// Which clients may read the metrics: all, or those with the admin key; unset: all, but none if require_key is on without an admin_key.
        access: Option<MetricsAccess> = None, ACCESS_VALUES;
    }
}
