//! Any command, of which only the exit is known.

use serde_json::Value;

use super::account::Account;
use super::{AttemptJudgement, Dialect, ProcessEnd};
use crate::outcome::AttemptVerdict;

/// Any command.
#[derive(Debug)]
pub(super) struct Plain;

impl Dialect for Plain {
    fn read_event(&mut self, _event: &Value, _account: &mut Account) {}

    fn judge(&self, account: &Account, process: ProcessEnd) -> AttemptJudgement {
        match process {
            // An exit code alone says nothing about the work, whether 0 or not.
            ProcessEnd::Exited(_) => account.end("the command came to its own end"),
            ProcessEnd::Killed(_) | ProcessEnd::Unknown => {
                AttemptJudgement::new(AttemptVerdict::Crashed, "the command did not come to its own end")
            }
        }
    }
}
