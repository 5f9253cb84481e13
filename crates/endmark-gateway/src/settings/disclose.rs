//! How clients learn about the recovery of a reply.

use endmark_setting::{Flag, settings};

use super::incomplete::{INCOMPLETE_VALUES, IncompleteDelivery};

settings! {
    /// How clients learn about the recovery of a reply (PC-9).
    #[derive(Debug, Clone)]
    pub struct DiscloseSettings {
        /// Whether a reply that needed no recovery is also marked.
        always: bool = false, Flag;
        /// How an incomplete reply, or one that may lack calls, is delivered: with its finish reason, or as an error.
        incomplete: IncompleteDelivery = IncompleteDelivery::FinishReason, INCOMPLETE_VALUES;
    }
}
