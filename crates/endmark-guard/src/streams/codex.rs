//! Codex: `codex exec --json`.
//!
//! It reports no stop reason, and it reports a cut-off reply as a completed turn. Top-level `error` events
//! and items of type `error` are only warnings. Its usage is the sum over all calls of the session, including
//! calls before it was resumed.

use serde_json::Value;

use super::account::{AttemptState, open_points, text, tokens};
use super::{AttemptJudgement, ProcessEnd, StreamParser, exhaustion, tail};
use crate::outcome::AttemptVerdict;
use crate::usage::TokenUsage;

/// Parses the stream of Codex.
#[derive(Debug, Default)]
pub(super) struct Codex {
    turn: Option<TurnState>,
    /// The type of the last item that is a message or work, such as a command.
    last_item: Option<String>,
    last_error: Option<String>,
}

/// The state of the last turn.
#[derive(Debug)]
enum TurnState {
    InProgress,
    Completed,
    Failed(String),
}

impl StreamParser for Codex {
    fn read_event(&mut self, event: &Value, account: &mut AttemptState) {
        let Some(kind) = text(event, "type") else { return };
        account.events += 1;
        match kind {
            "thread.started" => account.session = text(event, "thread_id").map(str::to_owned),
            "turn.started" => {
                account.is_over = false;
                self.turn = Some(TurnState::InProgress);
                self.last_item = None;
            }
            "turn.completed" => {
                account.is_over = true;
                self.turn = Some(TurnState::Completed);
                if let Some(usage) = event.get("usage") {
                    account.usage.run = usage_since(account.usage_before, usage);
                    if account.usage.run.total > 0 {
                        account.note_any_call();
                    }
                }
            }
            "turn.failed" => {
                account.is_over = true;
                let message = event.pointer("/error/message").and_then(Value::as_str);
                self.turn = Some(TurnState::Failed(message.unwrap_or("no message").to_owned()));
            }
            "error" => self.last_error = text(event, "message").map(str::to_owned),
            "item.started" | "item.updated" | "item.completed" => {
                if let Some(item) = event.get("item") {
                    self.read_item(item, kind == "item.completed", account);
                }
            }
            _ => {}
        }
    }

    fn judge(&self, account: &AttemptState, _process: ProcessEnd) -> AttemptJudgement {
        match &self.turn {
            Some(TurnState::Failed(message)) => judge_failed(message),
            Some(TurnState::Completed) => self.judge_completed(account),
            Some(TurnState::InProgress) | None => match &self.last_error {
                Some(error) if exhaustion::states_exhaustion(error) => judge_failed(error),
                Some(error) => AttemptJudgement::new(
                    AttemptVerdict::Crashed,
                    format!("the stream ends in a turn, behind an error: {error}"),
                ),
                None => AttemptJudgement::new(AttemptVerdict::Crashed, "the stream has no `turn.completed`"),
            },
        }
    }
}

impl Codex {
    fn read_item(&mut self, item: &Value, is_complete: bool, account: &mut AttemptState) {
        match text(item, "type") {
            Some("todo_list") => account.open_points = item.get("items").map(open_points).unwrap_or_default(),
            Some("reasoning" | "error") | None => {}
            Some(kind) => {
                self.last_item = Some(kind.to_owned());
                if kind == "agent_message" && is_complete {
                    account.set_last_message(text(item, "text").unwrap_or_default());
                    account.note_any_call();
                }
            }
        }
    }

    fn judge_completed(&self, account: &AttemptState) -> AttemptJudgement {
        if self.last_item.as_deref() != Some("agent_message") || account.last_message.trim().is_empty() {
            let last = self.last_item.as_deref().unwrap_or("nothing");
            let evidence = format!("the turn completed without a last message; its last item is `{last}`");
            return AttemptJudgement::new(AttemptVerdict::Truncated, evidence);
        }
        let output = Some(account.usage.run.output);
        match tail::cut_evidence(&account.last_message, output) {
            Some(cut) => AttemptJudgement::new(AttemptVerdict::Truncated, cut),
            None => account.judge_success("the turn completed with a last message"),
        }
    }
}

/// Returns the usage since the session was resumed, because the reported sum covers the whole session.
/// `input_tokens` includes cached tokens, and `output_tokens` includes reasoning.
fn usage_since(before: TokenUsage, usage: &Value) -> TokenUsage {
    let (input, output) = (tokens(usage, "input_tokens"), tokens(usage, "output_tokens"));
    TokenUsage::new(input.saturating_sub(before.input), output.saturating_sub(before.output))
}

fn judge_failed(message: &str) -> AttemptJudgement {
    let verdict = if exhaustion::states_exhaustion(message) {
        AttemptVerdict::ContextExhausted
    } else if message.contains("max_output_tokens") {
        AttemptVerdict::Truncated
    } else {
        AttemptVerdict::Crashed
    };
    AttemptJudgement::new(verdict, format!("the turn failed: {message}"))
}
