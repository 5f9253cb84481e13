//! Summarises how complete a result is. Commands and bindings return the summary unchanged.

use serde::Serialize;

use super::expected::Expected;
use super::form::FindingForm;
use super::transcript::{AgentResult, FindingState, Position, ReadFinding};

/// How complete a result and its findings are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckedResult<'r> {
    /// The name of the agent, or null if the result does not state it.
    pub agent_id: Option<&'r str>,
    /// The examined dimensions.
    pub dimensions: &'r [String],
    /// The number of findings that the agent declares.
    pub declared_findings: Option<u32>,
    /// `whole`, `mild` or `severe`.
    pub cut: &'static str,
    /// Whether the end marker is missing.
    pub truncated: bool,
    /// The position of the start marker, or null if the result has none.
    pub begins: Option<Position>,
    /// The position after the end marker, or of the cut.
    pub ends: Position,
    /// The number of complete findings.
    pub complete: usize,
    /// The number of truncated findings with source and sink.
    pub truncated_findings: usize,
    /// The number of findings without source or sink.
    pub needs_reaudit: usize,
    /// The number of findings discarded by a severe cut.
    pub discarded: u32,
    /// The number of findings to expect, or null if nothing states it.
    pub expected: Option<Expected>,
    /// The number of expected findings that were not kept.
    pub lost: usize,
    /// The findings, in order.
    pub findings: Vec<CheckedFinding>,
}

/// A finding and how complete it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckedFinding {
    /// The id, such as `F001`.
    pub id: String,
    /// `complete`, `truncated` (source and sink are present) or `needs_reaudit`.
    pub state: &'static str,
    /// Whether the finding is cut now, or was cut when it was first delivered.
    pub originally_truncated: bool,
    /// The required fields that it lacks.
    pub missing: Vec<&'static str>,
    /// The position where the finding begins.
    pub position: Position,
    /// The fields that were read.
    pub finding: FindingForm,
}

impl<'r> CheckedResult<'r> {
    /// Summarises how complete a parsed result is.
    pub fn new(result: &'r AgentResult) -> Self {
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
            expected: result.expected_count(),
            lost: result.lost_count(),
            findings: result.findings.iter().map(CheckedFinding::new).collect(),
        }
    }
}

impl CheckedFinding {
    fn new(read: &ReadFinding) -> Self {
        let mut finding = FindingForm::new(&read.finding);
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
