//! What stands between an agent and its model: it knows exactly what was used. (CG-4, CX-7)

use std::ffi::OsString;
use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;

use endmark_guard::Usage;

/// What stands between an agent and its model.
pub trait Between: Debug {
    /// The command, with the words that lead the agent here.
    fn words(&self, command: &[OsString]) -> Vec<OsString>;

    /// Variables of the environment that lead it here.
    fn variables(&self) -> &[(String, OsString)];

    /// Whether a call of the run was refused here since its money is used up: then no further one comes through.
    fn has_refused_for_budget(&self) -> bool;

    /// What the attempt used that has just ended; none if nothing of it came through here. The error says why nobody knows.
    fn used(&self) -> Pin<Box<dyn Future<Output = Result<Option<Usage>, String>> + '_>>;
}
