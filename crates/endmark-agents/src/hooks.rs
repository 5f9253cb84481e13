//! The commands that agents' hooks run: guard, cap, ledger and findings protocol, answered in each agent's format.

mod agent;
mod attempts;
mod check;
mod event;
mod findings;
mod install;
mod ledger;
mod stop;
mod tool;

pub use agent::{HookAgent, HookEvent, HookKind};
pub use check::checks;
pub use event::{Event, MAX_EVENT_BYTES};
pub use findings::check_findings;
pub use install::{Change, Installation, PlannedChanges, StopRequirement, plan};
pub use ledger::build_ledger_answer;
pub use stop::{StopRequest, stop};
pub use tool::cap_result;
