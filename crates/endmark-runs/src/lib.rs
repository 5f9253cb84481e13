//! Supervises an agent's command until its artifact is finished or the run is released for a reason (CG-3 to
//! CG-5).
//!
//! [`supervise()`] drives `endmark_guard::Run`. It starts the command in a process group and reads the
//! agent's stream. A keeper process ends the group if the supervisor is killed. After each attempt, it checks
//! the artifact, and restarts the agent with a list of what is missing. It writes events to the store, and
//! reports them to a [`RunObserver`].

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

pub use call::{AgentCommand, AgentSession, missing_stream_options};
pub use earlier_progress::ResumedProgress;
pub use endmark_guard::TokenUsage;
pub use identity::{run_id, session_id};
pub use report::{AgentRun, MachineReport, RunEventReport};
pub use reported::{ReportError, ReportedEvent, RunReport, apply_event};
pub use run_gateway::RunGateway;
pub use supervise::{AGENT_VARIABLES, RunOutcome, supervise};
pub use task::{RunObserver, Task};
