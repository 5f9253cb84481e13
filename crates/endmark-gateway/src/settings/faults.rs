//! What goes wrong on command.

use crate::faults::{FaultPlan, FaultSide};

/// Faults to rehearse; by default there are none.
#[derive(Debug, Clone, Default)]
pub struct FaultSettings {
    /// What goes wrong, where and how often.
    pub plan: FaultPlan,
    /// Between whom.
    pub side: FaultSide,
    /// What decides which reply it falls on; none for another order each time.
    pub seed: Option<u64>,
}
