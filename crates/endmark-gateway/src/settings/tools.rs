//! Settings for the tool calls of a reply.

use endmark_recovery::Restart;
use endmark_setting::{Flag, settings};

use super::on_missing::{ON_MISSING_VALUES, OnMissing};
use super::value_types::RESTART_VALUES;

settings! {
    /// How the tool calls of a reply are handled (PC-9).
    #[derive(Debug, Clone)]
    pub struct ToolSettings {
        /// Whether tool calls in a stream are held until they are whole.
        hold: bool = false, Flag;
        // A call is an action, so a regenerated call must have the same values.
        /// Which regenerated tool call may replace a cut one: any, only one with the same complete values, or none.
        restart: Restart = Restart::Same, RESTART_VALUES;
        /// How a reply is delivered if its tool calls are whole but more calls may be missing: with its calls, or as cut.
        on_missing: OnMissing = OnMissing::Deliver, ON_MISSING_VALUES;
    }
}
