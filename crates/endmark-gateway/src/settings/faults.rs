//! What goes wrong on command, as it is written: see [`FaultPlan`].

mod fault;
mod parse;

pub(crate) use fault::{Fault, Kind, Place};
pub use fault::{FaultPlan, FaultSide, UnknownFaultSide};
pub(crate) use parse::ALL;
pub use parse::FaultError;

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
