//! Any command. Only its exit is known.

use serde_json::Value;

use super::account::AttemptState;
use super::{AttemptJudgement, ProcessEnd, StreamParser};
use crate::outcome::AttemptVerdict;

/// Judges any command by its exit.
#[derive(Debug)]
pub(super) struct Plain;

impl StreamParser for Plain {
    fn read_event(&mut self, _event: &Value, _account: &mut AttemptState) {}

    fn judge(&self, account: &AttemptState, process: ProcessEnd) -> AttemptJudgement {
        match process {
            // The exit code alone does not show whether the work is finished.
            ProcessEnd::Exited(_) => account.judge_success("the command came to its own end"),
            ProcessEnd::Killed(_) | ProcessEnd::Unknown => {
                AttemptJudgement::new(AttemptVerdict::Crashed, "the command did not come to its own end")
            }
        }
    }
}
