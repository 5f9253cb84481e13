//! What a check of results answers. Commands and packages answer it as it is.

use serde::Serialize;

use super::expected::Expected;
use super::form::FindingForm;
use super::transcript::{AgentResult, FindingState, Position, ReadFinding};

/// Whether a result is whole, and which of its findings are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckedResult<'r> {
    /// Whose it is.
    pub agent_id: Option<&'r str>,
    /// What was looked into.
    pub dimensions: &'r [String],
    /// How many findings the agent declares.
    pub declared_findings: Option<u32>,
    /// `whole`, `mild` or `severe`.
    pub cut: &'static str,
    /// Whether the end marker is missing.
    pub truncated: bool,
    /// Where its start marker is.
    pub begins: Option<Position>,
    /// After the end marker, or where it is cut.
    pub ends: Position,
    /// How many findings are complete.
    pub complete: usize,
    /// How many findings are truncated, with source and sink.
    pub truncated_findings: usize,
    /// How many findings lack source or sink.
    pub needs_reaudit: usize,
    /// How many findings were discarded with a severe cut.
    pub discarded: u32,
    /// How many findings there must have been.
    pub expected: Option<Expected>,
    /// How many of them are not kept.
    pub lost: usize,
    /// The findings, in order.
    pub findings: Vec<CheckedFinding>,
}

/// A finding, and how much of it is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckedFinding {
    /// `F001`
    pub id: String,
    /// `complete`, `truncated` (source and sink are there) or `needs_reaudit`.
    pub state: &'static str,
    /// It is cut, here or when it was first handed over.
    pub originally_truncated: bool,
    /// What a complete one would have and this one lacks.
    pub missing: Vec<&'static str>,
    /// Where it begins.
    pub position: Position,
    /// What is there.
    pub finding: FindingForm,
}

impl<'r> CheckedResult<'r> {
    /// The check of a result.
    pub fn of(result: &'r AgentResult) -> Self {
        Self {
            agent_id: result.agent_id.as_deref(),
            dimensions: &result.dimensions,
            declared_findings: result.declared_findings,
            cut: result.cut.name(),
            truncated: !result.cut.is_whole(),
            begins: result.begins,
            ends: result.ends,
            complete: result.count(FindingState::Complete),
            truncated_findings: result.count(FindingState::Truncated),
            needs_reaudit: result.count(FindingState::NeedsReaudit),
            discarded: result.discarded,
            expected: result.expected(),
            lost: result.lost(),
            findings: result.findings.iter().map(CheckedFinding::of).collect(),
        }
    }
}

impl CheckedFinding {
    fn of(read: &ReadFinding) -> Self {
        let mut finding = FindingForm::of(&read.finding);
        finding.originally_truncated |= read.state == FindingState::Truncated;
        Self {
            id: finding.id.clone(),
            state: read.state.name(),
            originally_truncated: finding.originally_truncated,
            missing: read.missing.iter().map(|field| field.name()).collect(),
            position: read.position,
            finding,
        }
    }
}
