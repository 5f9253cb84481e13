//! The commands that agents run as hooks: guard, cap, ledger and findings protocol. Each agent gets output in
//! its own format.

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
pub use check::check_hooks;
pub use event::{HookInput, MAX_EVENT_BYTES};
pub use findings::check_findings;
pub use install::{Change, Installation, PlannedChanges, StopRequirement, plan};
pub use ledger::build_ledger_answer;
pub use stop::{StopRequest, answer_stop};
pub use tool::cap_result;
