//! Defines the parsed form of an agent's output. (AR-1, AR-3)

use std::collections::HashSet;
use std::fmt;

use serde::Serialize;

use super::expected::{Basis, Expected, IdNumbers};
use super::finding::{Field, Finding, FindingId, OtherField};
use super::form::ResultForm;

/// The results, checkpoints and remarks of one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transcript {
    /// The results, in order. Never empty: a text without any result counts as one severe cut (AR-1).
    pub results: Vec<AgentResult>,
    /// All checkpoints, in order (AR-3).
    pub checkpoints: Vec<Checkpoint>,
    /// Remarks about ignored or unknown text, in order.
    pub remarks: Vec<Remark>,
    /// The number of further remarks that were left out.
    pub remarks_omitted: usize,
}

/// One result of one agent (AR-1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentResult {
    /// The agent that wrote it. `None` if the result was cut before the name or does not state it.
    pub agent_id: Option<String>,
    /// The areas that the agent examined, in order.
    pub dimensions: Vec<String>,
    /// Unknown fields of its header.
    pub other: Vec<OtherField>,
    /// The number of findings that the agent declares.
    pub declared_findings: Option<u32>,
    /// Its findings, in order. Empty after a severe cut, which discards all of them (AR-4).
    pub findings: Vec<ReadFinding>,
    /// The number of findings that a severe cut discarded.
    pub discarded: u32,
    /// The number of passages that look like findings but cannot be parsed. The result lacks this many findings.
    pub unread: u32,
    /// Whether the result is complete.
    pub cut: Cut,
    /// The position of its start marker, or `None` if it has no start marker.
    pub begins: Option<Position>,
    /// The position where it ends: after its end marker, or at the cut.
    pub ends: Position,
    /// The last checkpoint before its end (AR-3).
    pub checkpoint: Option<Checkpoint>,
    /// The numbers in all ids, including those of discarded findings.
    pub(super) numbers: IdNumbers,
}

/// Whether a result is complete (AR-1, AR-4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cut {
    /// The end marker is present.
    Whole,
    /// The end marker is missing, but the agent is known. Complete findings are kept.
    Mild,
    /// The agent or even the start marker is missing. All findings are discarded.
    Severe,
}

/// A finding and how complete it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadFinding {
    /// The fields that were read. A field that was cut in the middle is dropped, except evidence, which keeps its
    /// beginning.
    pub finding: Finding,
    /// How complete the finding is.
    pub state: FindingState,
    /// The required fields that it lacks.
    pub missing: Vec<Field>,
    /// The position where it begins.
    pub position: Position,
}

/// How complete a finding is (AR-1, AR-5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FindingState {
    /// The finding has all required fields and was not cut.
    Complete,
    /// The finding is incomplete, but has a source and a sink. It is kept with a mark.
    Truncated,
    /// The source or the sink is missing. The finding must be audited again.
    NeedsReaudit,
}

/// A position in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Position {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The offset in UTF-8 bytes, from 0.
    pub byte: usize,
}

/// The progress that an agent reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Checkpoint {
    /// The number of turns so far.
    pub turn: u32,
    /// The number of findings so far.
    pub findings: Option<u32>,
    /// The number of files read so far.
    pub files_read: Option<u32>,
    /// The dimensions that are still to be examined. `None` if not stated, empty if nothing is left.
    pub remaining_dims: Option<Vec<String>>,
    /// The position of the checkpoint.
    pub position: Position,
}

/// A part of the text that was ignored or not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// The position where the text begins.
    pub position: Position,
    /// What the remark is about.
    pub kind: RemarkKind,
    /// The affected text, shortened.
    pub text: String,
}

/// What a remark is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RemarkKind {
    /// Text inside a result that belongs to no field.
    IgnoredText,
    /// A field that is not part of the format.
    UnknownField,
    /// A field that occurs twice. The first one counts.
    RepeatedField,
    /// A second finding with the same id.
    RepeatedId,
    /// More findings than the agent declared.
    MoreThanDeclared,
    /// A severity that is not one of the five words. It is kept as written.
    UnknownSeverity,
    /// A value of `cwe` that contains no CWE number.
    NoCwe,
    /// A value that should be a number but is not.
    NotANumber,
    /// A placeholder value. The field counts as missing.
    PlaceholderValue,
    /// Text that looks like a finding but cannot be parsed as one.
    UnreadFinding,
    /// A template with `<…>` placeholders instead of content.
    Template,
    /// An end marker while no result is open.
    EndWithoutStart,
    /// A start marker with nothing between it and the next one.
    EmptyResult,
    /// A complete result that does not name its agent.
    NoAgent,
    /// Bytes that are not UTF-8. They are replaced.
    NotUtf8,
    /// A marker or the first line of a finding inside evidence. It is kept as evidence.
    InsideEvidence,
    /// A checkpoint without a turn, or with a value that cannot be read.
    BrokenCheckpoint,
    /// JSON that does not follow the format, or that is cut.
    BrokenJson,
    /// Markers in a text with escaped line breaks that is not JSON. The text must be unescaped first.
    InsideJson,
    /// A JSON response of `endmark findings`. It is not a result and counts as a cut one.
    OwnResponse,
    /// Another turn of the conversation inside a result.
    InnerTurn,
}

impl RemarkKind {
    /// Returns the machine-readable name.
    pub fn name(self) -> &'static str {
        self.name_and_explanation().0
    }

    /// Returns the machine-readable name, and the explanation for people.
    fn name_and_explanation(self) -> (&'static str, &'static str) {
        match self {
            Self::IgnoredText => ("ignored_text", "belongs to no field and is ignored"),
            Self::UnknownField => ("unknown_field", "is an unknown field and is ignored"),
            Self::RepeatedField => ("repeated_field", "is a repeated field; the first one counts"),
            Self::RepeatedId => {
                ("repeated_id", "is also the id of another finding, so it does not identify either of them")
            }
            Self::MoreThanDeclared => {
                ("more_than_declared", "is the declared number of findings, but there are more")
            }
            Self::UnknownSeverity => ("unknown_severity", "is not one of Critical, High, Medium, Low, Info"),
            Self::NoCwe => ("no_cwe", "contains no CWE number such as CWE-89"),
            Self::NotANumber => ("no_number", "is not a number"),
            Self::PlaceholderValue => {
                ("says_nothing", "contains no information, so the field counts as missing")
            }
            Self::UnreadFinding => {
                ("unread_finding", "looks like a finding but cannot be read as one: check it manually")
            }
            Self::Template => ("template", "is a template and not a finding"),
            Self::EndWithoutStart => ("end_without_start", "is an end marker without a start marker"),
            Self::EmptyResult => ("empty_result", "starts a result without content"),
            Self::NoAgent => {
                ("no_agent", "starts a result that does not name its agent: `agent_id` is missing")
            }
            Self::NotUtf8 => ("not_utf8", "contains bytes that are not UTF-8"),
            Self::InsideEvidence => ("inside_evidence", "is inside evidence and counts as part of it"),
            Self::BrokenCheckpoint => (
                "broken_checkpoint",
                "is a checkpoint with an unreadable value: turn, findings and files_read must be numbers",
            ),
            Self::BrokenJson => ("broken_json", "is the problem with this result in JSON"),
            Self::InsideJson => (
                "inside_json",
                "has escaped line breaks and is not JSON: unescape the text first, so that it has lines",
            ),
            Self::OwnResponse => (
                "own_answer",
                "starts a response of `endmark findings`, which cannot be read as a result: read the original results, or the \
                 output of `endmark findings merge` without --json",
            ),
            Self::InnerTurn => (
                "inner_turn",
                "starts another turn of the conversation inside a result: the text before it may be cut, and the parts are not joined",
            ),
        }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: `{}` {}", self.position, self.text, self.kind.name_and_explanation().1)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}, column {}", self.line, self.column)
    }
}

impl Cut {
    /// Returns the machine-readable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Mild => "mild",
            Self::Severe => "severe",
        }
    }

    /// Whether the end marker is present.
    pub fn is_whole(self) -> bool {
        self == Self::Whole
    }
}

impl FindingState {
    /// Returns the machine-readable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Truncated => "truncated",
            Self::NeedsReaudit => "needs_reaudit",
        }
    }
}

impl ReadFinding {
    /// Classifies a finding. `is_ended` states that text follows which ends it (AR-1, AR-5).
    pub(super) fn new(finding: Finding, is_ended: bool, position: Position) -> Self {
        let missing = finding.missing_fields();
        let is_known = finding.has(Field::Source) && finding.has(Field::Sink);
        let state = if !is_known {
            FindingState::NeedsReaudit
        } else if is_ended && missing.is_empty() {
            FindingState::Complete
        } else {
            FindingState::Truncated
        };
        Self { finding, state, missing, position }
    }
}

impl AgentResult {
    /// Returns a severe cut without any content.
    pub(super) fn empty(ends: Position) -> Self {
        Self {
            agent_id: None,
            dimensions: Vec::new(),
            declared_findings: None,
            findings: Vec::new(),
            discarded: 0,
            other: Vec::new(),
            unread: 0,
            cut: Cut::Severe,
            begins: None,
            ends,
            checkpoint: None,
            numbers: IdNumbers::default(),
        }
    }

    /// Records that the last finding continues after the supposed end of the result. A complete result then counts as
    /// a mild cut.
    pub(super) fn mark_last_finding_cut(&mut self) {
        if self.cut.is_whole() && self.agent_id.is_some() {
            self.cut = Cut::Mild;
            if let Some(last) = self.findings.last_mut().filter(|last| last.state == FindingState::Complete) {
                last.state = FindingState::Truncated;
            }
        }
    }

    /// Whether both results have the same content, regardless of their positions.
    pub(super) fn has_same_content(&self, other: &Self) -> bool {
        (self.cut, self.unread) == (other.cut, other.unread)
            && ResultForm::new(self) == ResultForm::new(other)
    }

    /// Returns the number of findings to expect, or `None` if nothing states it. This is the largest of the declared
    /// total, the last checkpoint and the highest id. For a complete result only the declared total counts (AR-6).
    pub fn expected_count(&self) -> Option<Expected> {
        let known = [
            (self.declared_findings, Basis::Declared),
            (self.checkpoint.as_ref().and_then(|checkpoint| checkpoint.findings), Basis::Checkpoint),
            (self.numbers.highest_count(), Basis::HighestId),
        ];
        let known = known.into_iter().take(if self.cut.is_whole() { 1 } else { 3 });
        let known = known.filter_map(|(findings, basis)| Some((findings?, basis)));
        // Among equal numbers, the first one wins.
        let largest = known.reduce(|best, next| if next.0 > best.0 { next } else { best });
        largest.map(|(findings, basis)| Expected { findings, basis })
    }

    /// Returns the minimum number of findings that the result must have had: as stated in it, or as counted.
    pub(super) fn seen_count(&self) -> usize {
        let expected = self.expected_count().map_or(0, |expected| expected.findings as usize);
        expected.max(self.findings.len() + self.unread as usize).max(self.discarded as usize)
    }

    /// Returns the findings to pass on: complete ones, and truncated ones with source and sink (AR-5).
    pub fn kept_findings(&self) -> impl Iterator<Item = &ReadFinding> {
        self.findings.iter().filter(|read| read.state != FindingState::NeedsReaudit)
    }

    /// Returns the number of findings in this state.
    pub fn count(&self, state: FindingState) -> usize {
        self.findings.iter().filter(|read| read.state == state).count()
    }

    /// Returns the number of expected findings that were not kept.
    pub fn lost_count(&self) -> usize {
        let expected = self.expected_count().map_or(0, |expected| expected.findings as usize);
        let unseen = expected.saturating_sub(self.kept_findings().count());
        unseen.max(self.count(FindingState::NeedsReaudit) + self.unread as usize)
    }

    /// Whether two findings share an id, or there are more findings than declared.
    pub fn contradicts_itself(&self) -> bool {
        let mut known = HashSet::new();
        let is_twice = self.ids().any(|id| !known.insert(id));
        is_twice || self.declared_findings.is_some_and(|declared| self.findings.len() > declared as usize)
    }

    /// Returns the dimensions to examine after a cut: those that the last checkpoint lists, or all if it lists none
    /// (AR-4).
    pub fn remaining_dimensions(&self) -> Vec<String> {
        let remaining = self.checkpoint.as_ref().and_then(|checkpoint| checkpoint.remaining_dims.as_ref());
        match remaining {
            Some(remaining) if !remaining.is_empty() => {
                remaining.iter().map(|dimension| spelling_in_list(dimension, &self.dimensions)).collect()
            }
            _ => self.dimensions.clone(),
        }
    }

    /// Returns the ids of the findings that were read.
    pub fn ids(&self) -> impl Iterator<Item = &FindingId> {
        self.findings.iter().map(|read| &read.finding.id)
    }
}

/// Returns a dimension in the spelling of the list, if the list contains it in another case or punctuation.
pub(super) fn spelling_in_list(dimension: &str, list: &[String]) -> String {
    let found = list.iter().find(|known| is_same_dimension(known, dimension));
    found.map_or_else(|| dimension.to_owned(), Clone::clone)
}

/// Whether two dimensions differ at most in case and punctuation.
fn is_same_dimension(one: &str, other: &str) -> bool {
    alphanumeric_key(one) == alphanumeric_key(other)
}

/// Whether a list contains a dimension, alone or among other words: `authentication (login, tokens)`.
pub(super) fn is_named(dimension: &str, list: &[String]) -> bool {
    let wanted = alphanumeric_key(dimension);
    !wanted.is_empty() && alphanumeric_key(&list.concat()).contains(&wanted)
        || list.iter().any(|known| known == dimension)
}

/// Returns the letters and digits of a text in lower case.
pub(super) fn alphanumeric_key(text: &str) -> String {
    text.chars().filter(|character| character.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
