//! Settings for the tool calls of a reply.

use endmark_recovery::Restart;
use endmark_setting::{Flag, settings};

use super::kinds::RESTART;
use super::on_missing::{ON_MISSING, OnMissing};

settings! {
    /// The handling of the tool calls of a reply (PC-9).
    #[derive(Debug, Clone)]
    pub struct ToolSettings {
        /// Whether tool calls in a stream are held until they are whole.
        hold: bool = false, Flag;
        // A call is an action, so a regenerated call must have the same values.
        /// Which regenerated tool call may replace a cut one: any, one with the same complete values, none.
        restart: Restart = Restart::Same, RESTART;
        /// How a reply is delivered whose tool calls are whole, and that may lack further ones: with its calls, or as a cut one.
        on_missing: OnMissing = OnMissing::Deliver, ON_MISSING;
    }
}
