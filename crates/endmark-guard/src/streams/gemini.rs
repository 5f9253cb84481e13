//! Gemini CLI: `gemini --output-format stream-json`.
//!
//! It reports no finish reason, and it reports a reply that reached its output limit as a `success`. Its
//! usage is the sum over all calls, and `output_tokens` excludes reasoning.

use serde_json::Value;

use super::account::{AttemptState, text, tokens};
use super::{AttemptJudgement, ProcessEnd, StreamParser, exhaustion, tail};
use crate::outcome::AttemptVerdict;
use crate::usage::TokenUsage;

/// The exit code after the turn limit was reached.
const EXIT_TURN_LIMIT: i32 = 53;

/// Parses the stream of Gemini CLI.
#[derive(Debug, Default)]
pub(super) struct Gemini {
    result: Option<Result<(), String>>,
    last_error: Option<String>,
    /// Whether the last event before the result was a text by the agent.
    ends_in_text: bool,
    /// Whether the next piece continues the current message.
    is_in_message: bool,
}

impl StreamParser for Gemini {
    fn read_event(&mut self, event: &Value, account: &mut AttemptState) {
        let Some(kind) = text(event, "type") else { return };
        account.events += 1;
        match kind {
            "init" => {
                account.session = text(event, "session_id").map(str::to_owned);
                account.usage.model = text(event, "model").map(str::to_owned);
            }
            "message" if text(event, "role") == Some("assistant") => {
                let content = text(event, "content").unwrap_or_default();
                if !content.trim().is_empty() {
                    account.note_any_call();
                }
                let is_piece = event.get("delta").and_then(Value::as_bool).unwrap_or(false);
                if is_piece && self.is_in_message {
                    account.append_message(content);
                } else {
                    account.set_last_message(content);
                }
                self.is_in_message = is_piece;
                self.ends_in_text = true;
            }
            "tool_use" | "tool_result" => {
                self.is_in_message = false;
                self.ends_in_text = false;
            }
            "error" if text(event, "severity") != Some("warning") => {
                self.last_error = text(event, "message").map(str::to_owned);
            }
            "result" => self.read_result(event, account),
            _ => {}
        }
    }

    fn judge(&self, account: &AttemptState, process: ProcessEnd) -> AttemptJudgement {
        let message = match &self.result {
            Some(Ok(())) => return self.judge_success(account),
            Some(Err(message)) => Some(message),
            None => self.last_error.as_ref(),
        };
        if process == ProcessEnd::Exited(EXIT_TURN_LIMIT) {
            return AttemptJudgement::new(
                AttemptVerdict::Budget,
                "its exit code says that its turns are used up",
            );
        }
        match message {
            Some(message) if exhaustion::states_exhaustion(message) => AttemptJudgement::new(
                AttemptVerdict::ContextExhausted,
                format!("the error says so: {message}"),
            ),
            Some(message) => {
                AttemptJudgement::new(AttemptVerdict::Crashed, format!("it ended with an error: {message}"))
            }
            None => AttemptJudgement::new(AttemptVerdict::Crashed, "the stream has no `result`"),
        }
    }
}

impl Gemini {
    fn read_result(&mut self, event: &Value, account: &mut AttemptState) {
        account.is_over = true;
        let message = || event.pointer("/error/message").and_then(Value::as_str).unwrap_or("no message");
        let is_success = text(event, "status") == Some("success");
        self.result = Some(if is_success { Ok(()) } else { Err(message().to_owned()) });
        if let Some(stats) = event.get("stats") {
            let (input, total) = (tokens(stats, "input_tokens"), tokens(stats, "total_tokens"));
            let output = tokens(stats, "output_tokens").max(total.saturating_sub(input));
            account.usage.run = TokenUsage::new(input, output);
        }
    }

    fn judge_success(&self, account: &AttemptState) -> AttemptJudgement {
        if !self.ends_in_text || account.last_message.trim().is_empty() {
            let evidence = "the result says `success`, and there is no message after the last tool call";
            return AttemptJudgement::new(AttemptVerdict::Truncated, evidence);
        }
        match tail::cut_evidence(&account.last_message, Some(account.usage.run.output)) {
            Some(cut) => AttemptJudgement::new(AttemptVerdict::Truncated, cut),
            None => account.judge_success("the result says `success`, and the last message is whole"),
        }
    }
}
