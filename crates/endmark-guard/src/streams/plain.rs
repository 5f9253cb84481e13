//! A command of which nothing is known but how it ended.

use serde_json::Value;

use super::account::Account;
use super::{AttemptJudgement, Dialect, ProcessEnd};
use crate::outcome::AttemptVerdict;

/// Any command.
#[derive(Debug)]
pub(super) struct Plain;

impl Dialect for Plain {
    fn event(&mut self, _event: &Value, _account: &mut Account) {}

    fn judge(&self, account: &Account, process: ProcessEnd) -> AttemptJudgement {
        match process {
            // An exit code alone says nothing about the work, neither a good one nor a bad one.
            ProcessEnd::Exited(_) => account.end("the command came to its own end"),
            ProcessEnd::Killed(_) | ProcessEnd::Unknown => {
                AttemptJudgement::new(AttemptVerdict::Crashed, "the command did not come to its own end")
            }
        }
    }
}
