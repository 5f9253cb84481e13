//! What is known of an attempt up to now, whatever agent it is of.

use serde_json::Value;

use super::AttemptJudgement;
use crate::outcome::AttemptVerdict;
use crate::usage::{TokenUsage, Usage};

/// How much is kept of what an agent said last, in bytes. Its end is kept, since that is where it is cut.
const SAID_BYTES: usize = 64 << 10;
/// How many open points of a to-do list are named in the evidence.
const NAMED_POINTS: usize = 3;

/// What is known of an attempt.
#[derive(Debug, Default)]
pub(super) struct Account {
    pub(super) session: Option<String>,
    pub(super) usage: Usage,
    /// What the session had used before this attempt.
    pub(super) before: TokenUsage,
    /// What that had cost, in billionths of a US dollar, where it is known.
    pub(super) cost_before: Option<u64>,
    /// The last message to whoever gave the task.
    pub(super) said: String,
    /// What is still open on the agent's own list, as it was last written.
    pub(super) open_points: Vec<String>,
    /// The last word was said.
    pub(super) is_over: bool,
    /// How many events of this agent there were.
    pub(super) events: u64,
    /// How many replies of a model are reported, at least.
    pub(super) model_calls: u64,
}

impl Account {
    /// A new message in place of the last one.
    pub(super) fn say(&mut self, text: &str) {
        self.said.clear();
        self.say_on(text);
    }

    /// More of the same message.
    pub(super) fn say_on(&mut self, text: &str) {
        self.said.push_str(text);
        if self.said.len() > SAID_BYTES {
            let at = self.said.ceil_char_boundary(self.said.len() - SAID_BYTES);
            self.said.drain(..at);
        }
    }

    /// One call of the model.
    pub(super) fn call(&mut self, tokens: TokenUsage) {
        let largest = self.usage.largest_call_tokens.unwrap_or(0).max(tokens.total);
        self.usage.largest_call_tokens = Some(largest);
    }

    /// Notes that a model was asked at least once, for agents that do not report single calls.
    pub(super) fn has_called(&mut self) {
        self.model_calls = self.model_calls.max(1);
    }

    /// What an end that looks well comes to, where the agent's own list says otherwise.
    pub(super) fn end(&self, evidence: &str) -> AttemptJudgement {
        if self.open_points.is_empty() {
            return AttemptJudgement::new(AttemptVerdict::Whole, evidence);
        }
        let named: Vec<String> =
            self.open_points.iter().take(NAMED_POINTS).map(|point| format!("`{point}`")).collect();
        let more = self.open_points.len().saturating_sub(NAMED_POINTS);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let list = format!("its own to-do list is still open: {}{more}", named.join(", "));
        AttemptJudgement { verdict: AttemptVerdict::WrappedUp, evidence: vec![list, evidence.to_owned()] }
    }
}

/// A number of tokens, 0 where there is none.
pub(super) fn tokens(object: &Value, key: &str) -> u64 {
    object.get(key).and_then(Value::as_u64).unwrap_or(0)
}

/// A text, where there is one.
pub(super) fn text<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    object.get(key).and_then(Value::as_str)
}

/// Points of a to-do list that are not done.
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

/// Dollars as billionths.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast to an integer saturates")]
pub(super) fn nanodollars(dollars: &Value) -> Option<u64> {
    dollars.as_f64().filter(|dollars| *dollars >= 0.0).map(|dollars| (dollars * 1e9).round() as u64)
}
