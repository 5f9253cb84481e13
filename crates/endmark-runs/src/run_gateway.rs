//! The interface of a gateway between an agent and its model. It measures usage exactly (CG-4, CX-7).

use std::ffi::OsString;
use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;

use endmark_guard::AgentUsage;

/// A gateway for one run, between the agent and its model.
pub trait RunGateway: Debug {
    /// Returns the agent's command, including arguments that connect it to the gateway.
    fn command(&self) -> &[OsString];

    /// Returns the environment variables that connect the agent to the gateway.
    fn variables(&self) -> &[(String, OsString)];

    /// Returns the variables of this process that must not be passed to the agent.
    fn withheld_variables(&self) -> &[String];

    /// Returns the number of requests for model replies since the run began. A request is counted before it
    /// is answered.
    fn request_count(&self) -> u64;

    /// Whether the gateway refused a call because the run's budget is used up. It then refuses all further
    /// calls.
    fn has_refused_for_budget(&self) -> bool;

    /// Returns the usage of the attempt that has just ended. Returns `None` if none of its calls used the
    /// gateway.
    ///
    /// The error states why the usage is unknown.
    fn take_usage(&self) -> Pin<Box<dyn Future<Output = Result<Option<AgentUsage>, String>> + '_>>;
}
