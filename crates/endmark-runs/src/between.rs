//! A gateway between an agent and its model, which measures usage exactly. (CG-4, CX-7)

use std::ffi::OsString;
use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;

use endmark_guard::Usage;

/// A gateway between an agent and its model.
pub trait RunGateway: Debug {
    /// Returns the agent's command, with the arguments that direct it to the gateway.
    fn command(&self) -> &[OsString];

    /// Environment variables that direct the agent to the gateway.
    fn variables(&self) -> &[(String, OsString)];

    /// Variables of this process that are withheld from the agent.
    fn withheld(&self) -> &[String];

    /// Returns the number of requests for model replies that the gateway received since the run began. Each is
    /// counted before it is answered.
    fn received(&self) -> u64;

    /// Whether a call of the run was refused because its budget is used up: no further call is admitted then.
    fn has_refused_for_budget(&self) -> bool;

    /// Returns the usage of the attempt that has just ended; `None` if none of its calls came through the gateway.
    /// The error says why the usage is unknown.
    fn used(&self) -> Pin<Box<dyn Future<Output = Result<Option<Usage>, String>> + '_>>;
}
