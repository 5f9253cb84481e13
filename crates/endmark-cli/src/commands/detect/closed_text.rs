//! The closed form of a cut text, as part of an answer. (PC-1)

use endmark_text::{
    CompleteError, CompletedText, CompletionReport, Detection, Format, UnfinishedReport, Verdict, complete,
};
use serde::{Serialize, Serializer};

/// How many unfinished parts are shown on a terminal.
const MAX_SHOWN_PARTS: usize = 8;

/// The closed text, or why it is missing. Serialised as null if the text has nothing to close.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(transparent))]
pub(super) struct ClosingResult(
    #[cfg_attr(test, schemars(with = "Option<Closed>"))] Result<Closed, ClosingProblem>,
);

/// The closed text, and its unfinished parts.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Closed {
    #[serde(flatten)]
    pub(super) completed: CompletionReport,
    /// How many raw control characters in strings were escaped.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) escaped: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Why a text cannot be closed.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct ClosingProblem {
    code: &'static str,
    pub(super) message: String,
}

impl ClosingResult {
    /// Closes a text with this detection. A malformed text is not closed.
    pub(super) fn new(raw: &[u8], format: &Format, detection: &Detection) -> Self {
        let completed = match &detection.verdict {
            Verdict::Malformed { index, reason } => {
                Err(CompleteError::Malformed { index: *index, reason: reason.clone() })
            }
            Verdict::Whole | Verdict::Truncated(_) => complete(raw, format),
        };
        Self(completed.map(|completed| Closed::new(&completed)).map_err(|error| ClosingProblem::new(&error)))
    }

    /// Returns the closed text, or why it could not be closed.
    pub(super) fn closed(&self) -> Result<&Closed, &ClosingProblem> {
        self.0.as_ref()
    }
}

impl Serialize for ClosingResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.as_ref().ok().serialize(serializer)
    }
}

impl Closed {
    fn new(completed: &CompletedText) -> Self {
        Self { completed: CompletionReport::new(completed), escaped: completed.escaped }
    }

    /// Lists the unfinished parts on one line, innermost first. Empty if nothing is unfinished.
    pub(super) fn describe_unfinished(&self) -> String {
        let unfinished = &self.completed.unfinished;
        let shown = unfinished.iter().rev().take(MAX_SHOWN_PARTS).map(describe_unfinished_part);
        let more = unfinished.len().saturating_sub(MAX_SHOWN_PARTS) + self.completed.unfinished_omitted;
        let more = (more > 0).then(|| format!("{more} more around them"));
        shown.chain(more).collect::<Vec<_>>().join(", ")
    }
}

fn describe_unfinished_part(place: &UnfinishedReport) -> String {
    let pointer = if place.pointer.is_empty() { "the root" } else { place.pointer.as_str() };
    let left_out = if place.left_out { ", left out" } else { "" };
    format!("{pointer} ({}{left_out})", place.kind)
}

impl ClosingProblem {
    fn new(error: &CompleteError) -> Self {
        Self { code: error.code(), message: error.to_string() }
    }
}
