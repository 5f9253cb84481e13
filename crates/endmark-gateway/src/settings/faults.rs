//! Settings of fault injection. See [`FaultPlan`].

mod fault;
mod parse;

pub(crate) use fault::{Fault, FaultKind, FaultPosition};
pub use fault::{FaultPlan, FaultSide, UnknownFaultSide};
pub(crate) use parse::FULL_SHARE;
pub use parse::FaultError;

/// The faults to inject. Empty by default.
#[derive(Debug, Clone, Default)]
pub struct FaultSettings {
    /// The faults, their positions and their frequency.
    pub plan: FaultPlan,
    /// The side of the gateway on which they occur.
    pub side: FaultSide,
    /// The seed that determines which replies get a fault. `None` means a different order each time.
    pub seed: Option<u64>,
}
