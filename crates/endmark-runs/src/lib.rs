//! Supervises an agent's command until its artifact is finished, or there is a reason to let it go. (CG-3, CG-4, CG-5)
//!
//! [`supervise`] drives `endmark_guard::Run`: it starts the command in a group that a keeper ends if the supervisor is killed,
//! reads the agent's stream, judges the artifact when the attempt is over, and starts the agent again with what it lacks. What
//! happens is in the store before it is believed, and goes to a [`Watch`].

mod artifact;
mod between;
mod call;
mod identity;
mod listening;
mod record;
mod report;
mod reported;
mod supervise;
mod taken_up;
mod task;

pub use between::Between;
pub use call::{Call, Session, missing_stream};
pub use endmark_guard::TokenUsage;
pub use identity::{run_id, session_id};
pub use report::{AgentRun, RunEventReport};
pub use reported::{ReportedError, ReportedEvent, RunReport, reported};
pub use supervise::{AGENT_VARIABLES, RunOutcome, supervise};
pub use taken_up::TakenUp;
pub use task::{Task, Watch};
