//! The state of an attempt, independent of the agent.

use serde_json::Value;

use super::AttemptJudgement;
use crate::outcome::AttemptVerdict;
use crate::usage::{AgentUsage, TokenUsage};

/// The maximum number of bytes to keep of the agent's last message. Its end is kept, because it shows a cut.
const MAX_MESSAGE_BYTES: usize = 64 << 10;
/// The maximum number of open to-do points that the evidence names.
const MAX_NAMED_POINTS: usize = 3;

/// The state of an attempt so far.
#[derive(Debug, Default)]
pub(super) struct AttemptState {
    pub(super) session: Option<String>,
    pub(super) usage: AgentUsage,
    /// The session's usage before this attempt.
    pub(super) usage_before: TokenUsage,
    /// The session's cost before this attempt in billionths of a US dollar, if known.
    pub(super) cost_before: Option<u64>,
    /// The agent's last message to the user.
    pub(super) last_message: String,
    /// The open points of the agent's own to-do list, in its newest version.
    pub(super) open_points: Vec<String>,
    /// Whether the agent has reported its end.
    pub(super) is_over: bool,
    /// The number of events of this agent.
    pub(super) events: u64,
    /// The minimum number of model replies that the agent reported.
    pub(super) model_calls: u64,
}

impl AttemptState {
    /// Replaces the last message by a new one.
    pub(super) fn set_last_message(&mut self, text: &str) {
        self.last_message.clear();
        self.append_message(text);
    }

    /// Appends to the last message.
    pub(super) fn append_message(&mut self, text: &str) {
        self.last_message.push_str(text);
        if self.last_message.len() > MAX_MESSAGE_BYTES {
            let at = self.last_message.ceil_char_boundary(self.last_message.len() - MAX_MESSAGE_BYTES);
            self.last_message.drain(..at);
        }
    }

    /// Updates the size of the largest call.
    pub(super) fn note_call(&mut self, tokens: TokenUsage) {
        let largest = self.usage.largest_call_tokens.unwrap_or(0).max(tokens.total);
        self.usage.largest_call_tokens = Some(largest);
    }

    /// Records at least one model call, for agents that do not report single calls.
    pub(super) fn note_any_call(&mut self) {
        self.model_calls = self.model_calls.max(1);
    }

    /// Returns the judgement of an apparent success. Open points on the agent's own to-do list contradict it.
    pub(super) fn judge_success(&self, evidence: &str) -> AttemptJudgement {
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

/// Returns the number of tokens under this key, or 0 if it is missing.
pub(super) fn tokens(object: &Value, key: &str) -> u64 {
    object.get(key).and_then(Value::as_u64).unwrap_or(0)
}

/// Returns the string under this key, if there is one.
pub(super) fn text<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    object.get(key).and_then(Value::as_str)
}

/// Returns the open points of a to-do list, each shortened to 80 characters.
pub(super) fn open_points(list: &Value) -> Vec<String> {
    const MAX_POINT_CHARACTERS: usize = 80;
    let is_done = |point: &Value| {
        point.get("completed").and_then(Value::as_bool).unwrap_or(false)
            || matches!(text(point, "status"), Some("completed" | "cancelled"))
    };
    let points = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let open = points.iter().filter(|point| point.is_object() && !is_done(point));
    let name = |point: &Value| {
        text(point, "content").or_else(|| text(point, "text")).unwrap_or("a point").to_owned()
    };
    open.map(|point| name(point).chars().take(MAX_POINT_CHARACTERS).collect()).collect()
}

/// Converts US dollars to billionths of a dollar.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast to an integer saturates")]
pub(super) fn nanodollars(dollars: &Value) -> Option<u64> {
    dollars.as_f64().filter(|dollars| *dollars >= 0.0).map(|dollars| (dollars * 1e9).round() as u64)
}
