//! A gateway between an agent and its model, which measures usage exactly (CG-4, CX-7).

use std::ffi::OsString;
use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;

use endmark_guard::Usage;

/// A gateway between an agent and its model.
pub trait RunGateway: Debug {
    /// Returns the agent's command, with arguments that connect it to the gateway.
    fn command(&self) -> &[OsString];

    /// Returns the environment variables that connect the agent to the gateway.
    fn variables(&self) -> &[(String, OsString)];

    /// Returns the variables of this process that the agent must not get.
    fn withheld(&self) -> &[String];

    /// Returns the number of requests for model replies since the run began. The gateway counts a request before it
    /// answers it.
    fn request_count(&self) -> u64;

    /// Whether the gateway refused a call because the run's budget is exhausted. It then admits no further call.
    fn has_refused_for_budget(&self) -> bool;

    /// Returns the usage of the attempt that has just ended. `None` if none of its calls used the gateway.
    ///
    /// The error explains why the usage is unknown.
    fn take_usage(&self) -> Pin<Box<dyn Future<Output = Result<Option<Usage>, String>> + '_>>;
}
