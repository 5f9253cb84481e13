//! Claude Code: `claude -p --output-format stream-json --verbose`.
//!
//! Known false reports are `success` with the stop reason `tool_use` or `max_tokens`, `success` without text,
//! and `success` with `is_error`. A result may also be missing, which the index of a later result shows. Each
//! line of a message repeats the usage of that message.

use std::collections::HashMap;

use serde_json::Value;

use super::account::{AttemptState, nanodollars, open_points, text, tokens};
use super::{AttemptJudgement, ProcessEnd, StreamParser, exhaustion};
use crate::outcome::AttemptVerdict;
use crate::usage::TokenUsage;

/// The maximum number of messages whose lines are counted only once. A run has at most some thousands of
/// messages.
const MAX_MESSAGES: usize = 1 << 16;

/// The model name of messages that Claude Code creates without a model call, for example for an error.
const SYNTHETIC_MODEL: &str = "<synthetic>";

/// A part of the error text after several consecutive replies reached the output limit.
const OUTPUT_MAXIMUM: &str = "output token maximum";

/// Parses the stream of Claude Code.
#[derive(Debug, Default)]
pub(super) struct Claude {
    /// The usage of each message by id.
    messages: HashMap<String, TokenUsage>,
    /// The last result.
    result: Option<ResultEvent>,
    /// The reason why the last message counts as cut, if it does.
    cut: Option<String>,
    /// The stop reason of the last message, if one of its lines contains it.
    stop_reason: Option<String>,
    /// Whether the last message ends with a tool call.
    ends_in_call: bool,
    /// Whether a result is missing, because the index of a result was higher than the number of earlier
    /// results.
    is_result_missing: bool,
    result_count: u64,
}

/// The final result event.
#[derive(Debug)]
struct ResultEvent {
    subtype: String,
    is_error: bool,
    /// The stop reason. In older versions it is missing or null, and the last message contains it instead.
    stop_reason: Option<String>,
    terminal_reason: Option<String>,
    text: String,
    errors: String,
}

impl StreamParser for Claude {
    fn read_event(&mut self, event: &Value, account: &mut AttemptState) {
        let Some(kind) = text(event, "type") else { return };
        account.events += 1;
        if let Some(session) = text(event, "session_id") {
            account.session = Some(session.to_owned());
        }
        match kind {
            "system" if text(event, "subtype") == Some("init") => {
                // If a result came before, this event begins the next turn of the same process.
                account.is_over = false;
                if let Some(model) = text(event, "model") {
                    account.usage.model = Some(model.to_owned());
                }
            }
            "assistant" => self.read_assistant(event, account),
            "result" => self.read_result(event, account),
            _ => {}
        }
    }

    fn judge(&self, account: &AttemptState, _process: ProcessEnd) -> AttemptJudgement {
        let Some(result) = &self.result else {
            return match &self.cut {
                Some(cut) => AttemptJudgement::new(AttemptVerdict::Truncated, cut.clone()),
                None => AttemptJudgement::new(AttemptVerdict::Crashed, "the stream has no `result`"),
            };
        };
        result.judge(account, self)
    }
}

impl Claude {
    fn read_assistant(&mut self, event: &Value, account: &mut AttemptState) {
        let is_of_sub_agent = event.get("parent_tool_use_id").is_some_and(|id| !id.is_null());
        let Some(message) = event.get("message") else { return };
        if let (Some(id), Some(usage)) = (text(message, "id"), message.get("usage")) {
            let used = call_usage(usage);
            if self.messages.len() < MAX_MESSAGES || self.messages.contains_key(id) {
                let before = self.messages.insert(id.to_owned(), used);
                // Several lines with the same id belong to one message, so count only the first.
                let is_of_model =
                    text(message, "model").map_or(used.total > 0, |model| model != SYNTHETIC_MODEL);
                if before.is_none() && is_of_model {
                    account.model_calls += 1;
                }
                let before = before.unwrap_or_default();
                // The lines of a message repeat its usage with increasing numbers, so add only the
                // difference.
                let more = TokenUsage::new(
                    used.input.saturating_sub(before.input),
                    used.output.saturating_sub(before.output),
                );
                account.usage.run = account.usage.run.plus(more);
            }
            // A sub-agent has its own context.
            if !is_of_sub_agent {
                account.note_call(used);
            }
        }
        if is_of_sub_agent {
            return;
        }
        self.cut = match (text(event, "error"), event.get("aborted").and_then(Value::as_bool)) {
            (Some("max_output_tokens"), _) => Some("a message reached the limit on its output".to_owned()),
            (_, Some(true)) => Some("the last message was aborted in the middle".to_owned()),
            _ if text(message, "stop_reason") == Some("max_tokens") => {
                Some("the last stop reason is `max_tokens`".to_owned())
            }
            _ => None,
        };
        self.stop_reason = text(message, "stop_reason").map(str::to_owned);
        let last = message.get("content").and_then(Value::as_array).and_then(|blocks| blocks.last());
        self.ends_in_call = last.is_some_and(|last| text(last, "type") == Some("tool_use"));
        for block in message.get("content").and_then(Value::as_array).into_iter().flatten() {
            match text(block, "type") {
                Some("text") => account.set_last_message(text(block, "text").unwrap_or_default()),
                Some("tool_use") if text(block, "name") == Some("TodoWrite") => {
                    account.open_points = block.pointer("/input/todos").map(open_points).unwrap_or_default();
                }
                _ => {}
            }
        }
    }

    fn read_result(&mut self, event: &Value, account: &mut AttemptState) {
        account.is_over = true;
        let index = event.get("result_index").and_then(Value::as_u64);
        self.is_result_missing |= index.is_some_and(|index| index > self.result_count);
        self.result_count = index.unwrap_or(self.result_count) + 1;
        read_result_usage(event, account);
        let result_text = text(event, "result").unwrap_or_default();
        if !result_text.trim().is_empty() {
            account.set_last_message(result_text);
        }
        let owned = |key: &str| text(event, key).map(str::to_owned);
        let errors = event.get("errors").and_then(Value::as_array).into_iter().flatten();
        let errors: Vec<&str> = errors.filter_map(Value::as_str).collect();
        self.result = Some(ResultEvent {
            subtype: owned("subtype").unwrap_or_default(),
            is_error: event.get("is_error").and_then(Value::as_bool).unwrap_or(false),
            stop_reason: owned("stop_reason"),
            terminal_reason: owned("terminal_reason"),
            text: result_text.to_owned(),
            errors: errors.join("; "),
        });
    }
}

impl ResultEvent {
    fn judge(&self, account: &AttemptState, stream: &Claude) -> AttemptJudgement {
        use AttemptVerdict::{Budget, ContextExhausted, Crashed, Truncated, WrappedUp};
        let (is_result_missing, cut) = (stream.is_result_missing, stream.cut.as_deref());
        let stop = self.stop_reason.as_deref().or(stream.stop_reason.as_deref());
        let terminal = self.terminal_reason.as_deref();
        let judge_by = |verdict, what: &str, word: Option<&str>| {
            AttemptJudgement::new(verdict, format!("{what} is `{}`", word.unwrap_or("none")))
        };
        let words = if self.subtype == "success" && !self.is_error { &self.errors } else { &self.text };
        if matches!(terminal, Some("prompt_too_long" | "blocking_limit" | "rapid_refill_breaker")) {
            return judge_by(ContextExhausted, "the terminal reason", terminal);
        }
        if stop == Some("model_context_window_exceeded") {
            return judge_by(ContextExhausted, "the last stop reason", stop);
        }
        if exhaustion::states_exhaustion(words) || exhaustion::states_exhaustion(&self.errors) {
            return AttemptJudgement::new(
                ContextExhausted,
                format!("the error says so: {}{}", self.errors, words),
            );
        }
        if matches!(self.subtype.as_str(), "error_max_turns" | "error_max_budget_usd") {
            return judge_by(Budget, "the result", Some(&self.subtype));
        }
        if matches!(terminal, Some("max_turns" | "budget_exhausted")) {
            return judge_by(Budget, "the terminal reason", terminal);
        }
        if let Some(cut) = cut {
            return AttemptJudgement::new(Truncated, cut);
        }
        if self.is_error && self.text.contains(OUTPUT_MAXIMUM) {
            return AttemptJudgement::new(Truncated, format!("the result is an error: {}", self.text));
        }
        if self.subtype != "success" || self.is_error {
            let result_text = if self.errors.is_empty() { &self.text } else { &self.errors };
            return AttemptJudgement::new(
                Crashed,
                format!("the result is `{}`, an error: {result_text}", self.subtype),
            );
        }
        if matches!(terminal, Some("aborted_streaming" | "aborted_tools" | "malformed_tool_use_exhausted")) {
            return judge_by(Truncated, "the result says `success`, but its terminal reason", terminal);
        }
        if matches!(terminal, Some("stop_hook_prevented" | "hook_stopped" | "background_requested")) {
            return judge_by(WrappedUp, "the terminal reason", terminal);
        }
        if is_result_missing {
            return AttemptJudgement::new(Truncated, "a result is missing in the count of results");
        }
        if stop == Some("refusal") {
            return judge_by(WrappedUp, "the last stop reason", stop);
        }
        let is_end = matches!(stop, Some("end_turn" | "stop_sequence"))
            || (stop.is_none() && terminal == Some("completed"))
            // Claude Code prints the lines of a message before its stop reason is known.
            || (stop.is_none() && terminal.is_none() && !stream.ends_in_call);
        if !is_end {
            return judge_by(Truncated, "the result says `success`, but its stop reason", stop);
        }
        if self.text.trim().is_empty() {
            return AttemptJudgement::new(Truncated, "the result says `success`, and has no text");
        }
        account.judge_success("the result is `success`, with a text and a normal stop reason")
    }
}

/// Records the usage of the newest result, which includes all models, sub-agents and compaction.
///
/// Since version 2.1.331 it is the sum over a resumed session. In 2.1.197 it was the sum over the process.
/// The sum over a session is at least the earlier usage plus that of this process's messages.
fn read_result_usage(event: &Value, account: &mut AttemptState) {
    let models = event.get("modelUsage").and_then(Value::as_object).filter(|models| !models.is_empty());
    let of_models = models
        .map(|models| models.values().fold(TokenUsage::default(), |sum, usage| sum.plus(model_usage(usage))));
    let reported = of_models.or_else(|| event.get("usage").map(call_usage).filter(|used| used.total > 0));
    let before = account.usage_before;
    let min_session_usage = before.plus(account.usage.run);
    let is_of_session =
        before.total > 0 && reported.is_some_and(|reported| reported.total >= min_session_usage.total);
    if let Some(reported) = reported {
        account.usage.run = if is_of_session {
            TokenUsage::new(
                reported.input.saturating_sub(before.input),
                reported.output.saturating_sub(before.output),
            )
        } else {
            reported
        };
    }
    if let Some(cost) = event.get("total_cost_usd").and_then(nanodollars) {
        let cost_before = if is_of_session { account.cost_before } else { Some(0) };
        // If the cost of earlier attempts is unknown, this cost is unknown, too.
        account.usage.cost_nanodollars = cost_before.map(|before| cost.saturating_sub(before));
    }
    let Some(models) = models else { return };
    let main = account.usage.model.as_ref().and_then(|model| models.get(model));
    let only = models.values().next().filter(|_| models.len() == 1);
    if let Some(window) =
        main.or(only).map(|usage| tokens(usage, "contextWindow")).filter(|window| *window > 0)
    {
        account.usage.context_tokens = Some(window);
    }
}

fn model_usage(usage: &Value) -> TokenUsage {
    let input = ["inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens"];
    let input = input.iter().map(|key| tokens(usage, key)).fold(0, u64::saturating_add);
    TokenUsage::new(input, tokens(usage, "outputTokens"))
}

/// Returns the usage of a call. Tokens that were read from or written to a cache count as input.
fn call_usage(usage: &Value) -> TokenUsage {
    let input = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
    let input = input.iter().map(|key| tokens(usage, key)).fold(0, u64::saturating_add);
    TokenUsage::new(input, tokens(usage, "output_tokens"))
}
