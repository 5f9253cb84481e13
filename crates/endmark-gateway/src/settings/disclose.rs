//! How clients learn what was done for a reply.

use endmark_setting::{Flag, settings};

use super::incomplete::{INCOMPLETE, Incomplete};

settings! {
    /// How clients learn what was done for a reply (PC-9).
    #[derive(Debug, Clone)]
    pub struct DiscloseSettings {
        /// Whether a reply that needed nothing is marked as well.
        always: bool = false, Flag;
        /// How a reply is shown that could not be made whole, or may lack calls: as far as it came, or as an error.
        incomplete: Incomplete = Incomplete::FinishReason, INCOMPLETE;
    }
}
