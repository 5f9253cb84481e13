//! Supervises an agent's command until its artifact is finished or there is a reason to release it (CG-3 to CG-5).
//!
//! [`supervise()`] drives `endmark_guard::Run`. It starts the command in a process group, which a keeper process ends
//! if the supervisor is killed, and reads the agent's stream. After each attempt it judges the artifact, and restarts
//! the agent with a list of what is missing. It writes events to the store and reports them to a [`Watch`].

mod artifact;
mod call;
mod earlier_progress;
mod identity;
mod listening;
mod record;
mod report;
mod reported;
mod run_gateway;
mod supervise;
mod task;

pub use call::{Call, Session, missing_stream};
pub use earlier_progress::ResumedProgress;
pub use endmark_guard::TokenUsage;
pub use identity::{run_id, session_id};
pub use report::{AgentRun, MachineReport, RunEventReport};
pub use reported::{ReportedError, ReportedEvent, RunReport, apply_event};
pub use run_gateway::RunGateway;
pub use supervise::{AGENT_VARIABLES, RunOutcome, supervise};
pub use task::{Task, Watch};
