//! What stands between an agent and its model: it knows exactly what was used. (CG-4, CX-7)

use std::ffi::OsString;
use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;

use endmark_guard::Usage;

/// What stands between an agent and its model.
pub trait Between: Debug {
    /// The agent's command, with the words that lead it here.
    fn command(&self) -> &[OsString];

    /// Variables of the environment that lead it here.
    fn variables(&self) -> &[(String, OsString)];

    /// Variables of this process that the agent does not get.
    fn withheld(&self) -> &[String];

    /// How many requests for a reply of a model came through here since the run began, each counted before it was answered.
    fn received(&self) -> u64;

    /// Whether a call of the run was refused here since its money is used up: then no further one comes through.
    fn has_refused_for_budget(&self) -> bool;

    /// What the attempt used that has just ended; none if nothing of it came through here. The error says why nobody knows.
    fn used(&self) -> Pin<Box<dyn Future<Output = Result<Option<Usage>, String>> + '_>>;
}
