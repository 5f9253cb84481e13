//! The settings of fault injection: see [`FaultPlan`].

mod fault;
mod parse;

pub(crate) use fault::{Fault, Kind, Place};
pub use fault::{FaultPlan, FaultSide, UnknownFaultSide};
pub(crate) use parse::ALL;
pub use parse::FaultError;

/// Faults to inject; none by default.
#[derive(Debug, Clone, Default)]
pub struct FaultSettings {
    /// Which faults, where and how often.
    pub plan: FaultPlan,
    /// On which side of the gateway.
    pub side: FaultSide,
    /// The seed that determines which replies get a fault; `None` for a new order each time.
    pub seed: Option<u64>,
}
