//! The state of an attempt so far, independent of the agent.

use serde_json::Value;

use super::AttemptJudgement;
use crate::outcome::AttemptVerdict;
use crate::usage::{TokenUsage, Usage};

/// The maximum number of bytes kept of the agent's last message. The end is kept, because a cut shows there.
const MESSAGE_BYTES: usize = 64 << 10;
/// The maximum number of open to-do points to name in the evidence.
const MAX_NAMED_POINTS: usize = 3;

/// The state of an attempt so far.
#[derive(Debug, Default)]
pub(super) struct Account {
    pub(super) session: Option<String>,
    pub(super) usage: Usage,
    /// The session's usage before this attempt.
    pub(super) before: TokenUsage,
    /// The cost of that usage in billionths of a US dollar, if known.
    pub(super) cost_before: Option<u64>,
    /// The last message to the giver of the task.
    pub(super) last_message: String,
    /// The open points of the agent's own to-do list, as last written.
    pub(super) open_points: Vec<String>,
    /// Whether the agent has reported its end.
    pub(super) is_over: bool,
    /// The number of events of this agent.
    pub(super) events: u64,
    /// The minimum number of model replies reported.
    pub(super) model_calls: u64,
}

impl Account {
    /// Starts a new message, which replaces the last one.
    pub(super) fn set_text(&mut self, text: &str) {
        self.last_message.clear();
        self.append_message(text);
    }

    /// Continues the message.
    pub(super) fn append_message(&mut self, text: &str) {
        self.last_message.push_str(text);
        if self.last_message.len() > MESSAGE_BYTES {
            let at = self.last_message.ceil_char_boundary(self.last_message.len() - MESSAGE_BYTES);
            self.last_message.drain(..at);
        }
    }

    /// Records a model call.
    pub(super) fn call(&mut self, tokens: TokenUsage) {
        let largest = self.usage.largest_call_tokens.unwrap_or(0).max(tokens.total);
        self.usage.largest_call_tokens = Some(largest);
    }

    /// Records that there was at least one model call, for agents that do not report single calls.
    pub(super) fn has_called(&mut self) {
        self.model_calls = self.model_calls.max(1);
    }

    /// Returns the judgement of an apparent success. Open points on the agent's own list contradict it.
    pub(super) fn end(&self, evidence: &str) -> AttemptJudgement {
        if self.open_points.is_empty() {
            return AttemptJudgement::new(AttemptVerdict::Whole, evidence);
        }
        let named: Vec<String> =
            self.open_points.iter().take(MAX_NAMED_POINTS).map(|point| format!("`{point}`")).collect();
        let more = self.open_points.len().saturating_sub(MAX_NAMED_POINTS);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let list = format!("its own to-do list is still open: {}{more}", named.join(", "));
        AttemptJudgement { verdict: AttemptVerdict::WrappedUp, evidence: vec![list, evidence.to_owned()] }
    }
}

/// Returns a number of tokens, or 0 if it is missing.
pub(super) fn tokens(object: &Value, key: &str) -> u64 {
    object.get(key).and_then(Value::as_u64).unwrap_or(0)
}

/// Returns a text, if it is present.
pub(super) fn text<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    object.get(key).and_then(Value::as_str)
}

/// Returns the open points of a to-do list.
pub(super) fn open_points(list: &Value) -> Vec<String> {
    const SHOWN_CHARACTERS: usize = 80;
    let is_done = |point: &Value| {
        point.get("completed").and_then(Value::as_bool).unwrap_or(false)
            || matches!(text(point, "status"), Some("completed" | "cancelled"))
    };
    let points = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let open = points.iter().filter(|point| point.is_object() && !is_done(point));
    let name = |point: &Value| {
        text(point, "content").or_else(|| text(point, "text")).unwrap_or("a point").to_owned()
    };
    open.map(|point| name(point).chars().take(SHOWN_CHARACTERS).collect()).collect()
}

/// Converts dollars to billionths.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast to an integer saturates")]
pub(super) fn nanodollars(dollars: &Value) -> Option<u64> {
    dollars.as_f64().filter(|dollars| *dollars >= 0.0).map(|dollars| (dollars * 1e9).round() as u64)
}
