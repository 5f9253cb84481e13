//! How clients learn about the recovery of a reply.

use endmark_setting::{Flag, settings};

use super::incomplete::{INCOMPLETE, Incomplete};

settings! {
    /// How clients learn about the recovery of a reply (PC-9).
    #[derive(Debug, Clone)]
    pub struct DiscloseSettings {
        /// Whether a reply that needed no recovery is marked as well.
        always: bool = false, Flag;
        /// How a reply is delivered that could not be made whole, or may lack calls: with its finish reason, or as an error.
        incomplete: Incomplete = Incomplete::FinishReason, INCOMPLETE;
    }
}
