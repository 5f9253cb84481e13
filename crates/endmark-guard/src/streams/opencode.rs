//! opencode: `opencode run --format json`.
//!
//! It treats `length` as a normal end. Its exit code may be wrong for a success and for a failure, and it may
//! hang after its last event. It reports its usage per step, so the steps must be added up.

use serde_json::Value;

use super::account::{AttemptState, nanodollars, open_points, text, tokens};
use super::{AttemptJudgement, ProcessEnd, StreamParser, exhaustion};
use crate::outcome::AttemptVerdict;
use crate::usage::TokenUsage;

/// Parses the stream of opencode.
#[derive(Debug, Default)]
pub(super) struct Opencode {
    /// The reason of the last finished step.
    last_step_reason: Option<String>,
    is_in_step: bool,
    has_text: bool,
    /// An error, as its name and its message, after which no step finished.
    error: Option<(String, String)>,
}

impl StreamParser for Opencode {
    fn read_event(&mut self, event: &Value, account: &mut AttemptState) {
        let Some(kind) = text(event, "type") else { return };
        account.events += 1;
        if let Some(session) = text(event, "sessionID") {
            account.session = Some(session.to_owned());
        }
        let part = event.get("part").unwrap_or(&Value::Null);
        match kind {
            "step_start" => {
                account.is_over = false;
                self.is_in_step = true;
                self.has_text = false;
            }
            "text" => {
                self.has_text = true;
                account.set_last_message(text(part, "text").unwrap_or_default());
            }
            "tool_use" if text(part, "tool") == Some("todowrite") => {
                account.open_points = part.pointer("/state/input/todos").map(open_points).unwrap_or_default();
            }
            "step_finish" => self.read_finished_step(part, account),
            "error" => {
                let error = event.get("error").unwrap_or(&Value::Null);
                let message = error.pointer("/data/message").and_then(Value::as_str).unwrap_or("no message");
                self.error = Some((text(error, "name").unwrap_or("error").to_owned(), message.to_owned()));
            }
            _ => {}
        }
    }

    fn judge(&self, account: &AttemptState, _process: ProcessEnd) -> AttemptJudgement {
        use AttemptVerdict::{ContextExhausted, Crashed, Truncated};
        if let Some((name, message)) = &self.error {
            let evidence = format!("it reports `{name}`: {message}");
            return if exhaustion::states_exhaustion(message) || name.contains("ContextOverflow") {
                AttemptJudgement::new(ContextExhausted, evidence)
            } else if name == "MessageOutputLengthError" {
                AttemptJudgement::new(Truncated, evidence)
            } else {
                AttemptJudgement::new(Crashed, evidence)
            };
        }
        let Some(reason) = self.last_step_reason.as_deref() else {
            let is_cut = self.is_in_step;
            let verdict = if is_cut { Truncated } else { Crashed };
            return AttemptJudgement::new(verdict, "no step finished");
        };
        if self.is_in_step {
            return AttemptJudgement::new(Truncated, "the last step did not finish");
        }
        if reason != "stop" {
            return AttemptJudgement::new(Truncated, format!("the last step's reason is `{reason}`"));
        }
        if !self.has_text {
            return AttemptJudgement::new(Truncated, "the last step has no text");
        }
        account.judge_success("the last step's reason is `stop`, with a text")
    }
}

impl Opencode {
    fn read_finished_step(&mut self, part: &Value, account: &mut AttemptState) {
        self.is_in_step = false;
        // A step finished after the error, so the error was not fatal.
        self.error = None;
        let reason = text(part, "reason").unwrap_or("unknown");
        self.last_step_reason = Some(reason.to_owned());
        account.is_over = reason != "tool-calls";
        if let Some(used) = part.get("tokens") {
            let cache = |key: &str| used.get("cache").map_or(0, |cache| tokens(cache, key));
            let input = tokens(used, "input").saturating_add(cache("read")).saturating_add(cache("write"));
            let step =
                TokenUsage::new(input, tokens(used, "output").saturating_add(tokens(used, "reasoning")));
            account.note_call(step);
            account.model_calls += u64::from(step.total > 0 || self.has_text);
            account.usage.run = account.usage.run.plus(step);
        }
        if let Some(cost) = part.get("cost").and_then(nanodollars) {
            let sum = account.usage.cost_nanodollars.unwrap_or(0).saturating_add(cost);
            account.usage.cost_nanodollars = Some(sum);
        }
    }
}
