//! What an agent handed over, as it was read. (AR-1, AR-3)

use std::collections::HashSet;
use std::fmt;

use serde::Serialize;

use super::expected::{Basis, Expected, Numbers};
use super::finding::{Field, Finding, FindingId, OtherField};
use super::form::ResultForm;

/// All that was read of one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transcript {
    /// The results, in order: never none, since a text in which none begins is a severe cut (AR-1).
    pub results: Vec<AgentResult>,
    /// All checkpoints, in order (AR-3).
    pub checkpoints: Vec<Checkpoint>,
    /// What was ignored or not understood, in order.
    pub remarks: Vec<Remark>,
    /// How many more remarks there would be.
    pub remarks_omitted: usize,
}

/// One result of one agent (AR-1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentResult {
    /// Whose it is; none if it was cut before that, or does not say.
    pub agent_id: Option<String>,
    /// What the agent looked into, in order.
    pub dimensions: Vec<String>,
    /// Fields of its header that are not known.
    pub other: Vec<OtherField>,
    /// How many findings the agent says there are.
    pub declared_findings: Option<u32>,
    /// Its findings, in order; empty if the cut is severe, since all are discarded then (AR-4).
    pub findings: Vec<ReadFinding>,
    /// How many findings were discarded with a severe cut.
    pub discarded: u32,
    /// How many places of it look like findings and could not be read: it has fewer findings than it should.
    pub unread: u32,
    /// Whether it is whole.
    pub cut: Cut,
    /// Where its start marker is; none if there is none.
    pub begins: Option<Position>,
    /// Where it stops: behind its end marker, or at the cut.
    pub ends: Position,
    /// The last checkpoint before its end (AR-3).
    pub checkpoint: Option<Checkpoint>,
    /// The numbers in the ids that were seen, those of discarded findings too.
    pub(super) numbers: Numbers,
}

/// Whether a result is whole (AR-1, AR-4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cut {
    /// Its end marker is there.
    Whole,
    /// The end marker is missing, but the agent is known: complete findings are kept.
    Mild,
    /// The agent, or even the start marker, is missing: all is discarded.
    Severe,
}

/// A finding, and how much of it is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadFinding {
    /// What is there. Of a field that was cut in the middle there is nothing, but of evidence what came.
    pub finding: Finding,
    /// How much that is.
    pub state: FindingState,
    /// What a complete one would have and this one lacks.
    pub missing: Vec<Field>,
    /// Where it begins.
    pub position: Position,
}

/// How much of a finding is there (AR-1, AR-5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FindingState {
    /// All a finding has to have, and its end.
    Complete,
    /// Not that, but source and sink: worth validating, with a note.
    Truncated,
    /// Source or sink is missing: someone has to look again.
    NeedsReaudit,
}

/// A place in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Position {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// In UTF-8 bytes from the beginning, from 0.
    pub byte: usize,
}

/// How far an agent says it has come (AR-3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Checkpoint {
    /// After how many turns.
    pub turn: u32,
    /// How many findings it has by now.
    pub findings: Option<u32>,
    /// How many files it has read.
    pub files_read: Option<u32>,
    /// What it has yet to look into; none if it does not say, empty if nothing is left.
    pub remaining_dims: Option<Vec<String>>,
    /// Where it says so.
    pub position: Position,
}

/// Something that was ignored or not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// Where.
    pub position: Position,
    /// What kind of thing.
    pub kind: RemarkKind,
    /// What stands there, shortened.
    pub text: String,
}

/// What kind of thing a remark is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RemarkKind {
    /// Text inside of a result that belongs to no field.
    IgnoredText,
    /// A field that no result has.
    UnknownField,
    /// A field that is there already; the first one counts.
    RepeatedField,
    /// Another finding under an id that one has already.
    RepeatedId,
    /// More findings than the agent declares.
    MoreThanDeclared,
    /// A severity that is none of the five words; it is kept as it is written.
    UnknownSeverity,
    /// A weakness without a number.
    NoCwe,
    /// A number that is none.
    NoNumber,
    /// A value that stands for something that is not said; the field counts as missing.
    SaysNothing,
    /// Something that looks like a finding and cannot be read as one.
    UnreadFinding,
    /// A template with `<…>` in place of what it is about.
    Template,
    /// An end marker where no result is open.
    EndWithoutStart,
    /// A start marker with nothing behind it before the next one.
    EmptyResult,
    /// A whole result that does not say whose it is.
    NoAgent,
    /// Bytes that are no UTF-8; they are replaced.
    NotUtf8,
    /// A marker or the beginning of a finding inside of evidence, taken for evidence.
    InsideEvidence,
    /// A checkpoint without a turn, or in which something cannot be read.
    BrokenCheckpoint,
    /// JSON that is not of the form, or cut.
    BrokenJson,
    /// The markers stand in a text whose line breaks are escaped, and which is no JSON: it has to be taken out first.
    InsideJson,
    /// An answer of `endmark findings` in JSON: it is no result, and stands for a cut one.
    OwnAnswer,
    /// Another turn of the conversation inside of a result.
    InnerTurn,
}

impl RemarkKind {
    /// The word for programs.
    pub fn name(self) -> &'static str {
        self.words().0
    }

    /// The word for programs, and what is said of it to people.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::IgnoredText => ("ignored_text", "belongs to no field and is ignored"),
            Self::UnknownField => ("unknown_field", "is a field that is not known and is ignored"),
            Self::RepeatedField => ("repeated_field", "is there already; the first one counts"),
            Self::RepeatedId => {
                ("repeated_id", "is the id of another finding, too: which one is meant cannot be told")
            }
            Self::MoreThanDeclared => {
                ("more_than_declared", "is how many findings are declared, and there are more")
            }
            Self::UnknownSeverity => ("unknown_severity", "is none of Critical, High, Medium, Low, Info"),
            Self::NoCwe => ("no_cwe", "has no number of a weakness, as in CWE-89"),
            Self::NoNumber => ("no_number", "is no number"),
            Self::SaysNothing => ("says_nothing", "says nothing: the field counts as missing"),
            Self::UnreadFinding => (
                "unread_finding",
                "looks like a finding and cannot be read as one: someone has to look again",
            ),
            Self::Template => ("template", "is a template and no finding"),
            Self::EndWithoutStart => ("end_without_start", "ends a result that never began"),
            Self::EmptyResult => ("empty_result", "has nothing behind it"),
            Self::NoAgent => {
                ("no_agent", "begins a result that does not say whose it is: `agent_id` is missing")
            }
            Self::NotUtf8 => ("not_utf8", "has bytes that are no UTF-8"),
            Self::InsideEvidence => {
                ("inside_evidence", "stands inside of evidence and is taken for a part of it")
            }
            Self::BrokenCheckpoint => (
                "broken_checkpoint",
                "is a checkpoint in which something cannot be read: turn, findings and files_read are numbers",
            ),
            Self::BrokenJson => ("broken_json", "is what is wrong with this as a result in JSON"),
            Self::InsideJson => (
                "inside_json",
                "has its line breaks escaped and is no JSON: take the text out first, so that it has lines",
            ),
            Self::OwnAnswer => (
                "own_answer",
                "begins an answer of `endmark findings`, which is not read again: read the results that it was made from, or \
                 what `endmark findings merge` prints without --json",
            ),
            Self::InnerTurn => (
                "inner_turn",
                "begins another turn of the conversation inside of a result: what stands before it may be cut, and nothing is joined",
            ),
        }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: `{}` {}", self.position, self.text, self.kind.words().1)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}, column {}", self.line, self.column)
    }
}

impl Cut {
    /// The word for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Mild => "mild",
            Self::Severe => "severe",
        }
    }

    /// Whether the end marker is there.
    pub fn is_whole(self) -> bool {
        self == Self::Whole
    }
}

impl FindingState {
    /// The word for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Truncated => "truncated",
            Self::NeedsReaudit => "needs_reaudit",
        }
    }
}

impl ReadFinding {
    /// Classes a finding: `is_ended` says that something that ends it came behind it (AR-1, AR-5).
    pub(super) fn new(finding: Finding, is_ended: bool, position: Position) -> Self {
        let missing = finding.missing();
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
    /// A severe cut of which nothing is there.
    pub(super) fn nothing(ends: Position) -> Self {
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
            numbers: Numbers::default(),
        }
    }

    /// Takes that its last finding goes on behind what was taken for its end.
    pub(super) fn cut_in_its_last(&mut self) {
        if self.cut.is_whole() && self.agent_id.is_some() {
            self.cut = Cut::Mild;
            if let Some(last) = self.findings.last_mut().filter(|last| last.state == FindingState::Complete) {
                last.state = FindingState::Truncated;
            }
        }
    }

    /// Whether another one says the same, wherever it stands.
    pub(super) fn says_the_same(&self, other: &Self) -> bool {
        (self.cut, self.unread) == (other.cut, other.unread) && ResultForm::of(self) == ResultForm::of(other)
    }

    /// How many findings there must have been: the largest number that the last checkpoint, the declared total or the
    /// ids give; none if nothing says. Of a whole result only what it declares counts (AR-6).
    pub fn expected(&self) -> Option<Expected> {
        let known = [
            (self.declared_findings, Basis::Declared),
            (self.checkpoint.as_ref().and_then(|checkpoint| checkpoint.findings), Basis::Checkpoint),
            (self.numbers.highest(), Basis::HighestId),
        ];
        let known = known.into_iter().take(if self.cut.is_whole() { 1 } else { 3 });
        let known = known.filter_map(|(findings, basis)| Some((findings?, basis)));
        // Of equal numbers the first counts.
        let largest = known.reduce(|best, next| if next.0 > best.0 { next } else { best });
        largest.map(|(findings, basis)| Expected { findings, basis })
    }

    /// How many findings it must have had at least, by what it says and by what of it was seen.
    pub(super) fn seen(&self) -> usize {
        let expected = self.expected().map_or(0, |expected| expected.findings as usize);
        expected.max(self.findings.len() + self.unread as usize).max(self.discarded as usize)
    }

    /// The findings that go on: complete, or truncated with source and sink (AR-5).
    pub fn kept(&self) -> impl Iterator<Item = &ReadFinding> {
        self.findings.iter().filter(|read| read.state != FindingState::NeedsReaudit)
    }

    /// How many findings are in this state.
    pub fn count(&self, state: FindingState) -> usize {
        self.findings.iter().filter(|read| read.state == state).count()
    }

    /// How many fewer findings are kept than there must have been.
    pub fn lost(&self) -> usize {
        let expected = self.expected().map_or(0, |expected| expected.findings as usize);
        let unseen = expected.saturating_sub(self.kept().count());
        unseen.max(self.count(FindingState::NeedsReaudit) + self.unread as usize)
    }

    /// Whether two of its findings have one id, or there are more of them than it declares.
    pub fn contradicts_itself(&self) -> bool {
        let mut known = HashSet::new();
        let is_twice = self.ids().any(|id| !known.insert(id));
        is_twice || self.declared_findings.is_some_and(|declared| self.findings.len() > declared as usize)
    }

    /// What the agent has yet to look into after a cut: what its last checkpoint says, else all its dimensions (AR-4).
    pub fn remaining_dimensions(&self) -> Vec<String> {
        let said = self.checkpoint.as_ref().and_then(|checkpoint| checkpoint.remaining_dims.as_ref());
        match said {
            Some(said) if !said.is_empty() => {
                said.iter().map(|dimension| spelled_as(dimension, &self.dimensions)).collect()
            }
            _ => self.dimensions.clone(),
        }
    }

    /// The ids of the findings that are there, of use for a message.
    pub fn ids(&self) -> impl Iterator<Item = &FindingId> {
        self.findings.iter().map(|read| &read.finding.id)
    }
}

/// The dimension in the spelling of the list, if only case and signs differ.
pub(super) fn spelled_as(dimension: &str, list: &[String]) -> String {
    let found = list.iter().find(|known| same_dimension(known, dimension));
    found.map_or_else(|| dimension.to_owned(), Clone::clone)
}

/// Whether two dimensions differ in case and signs at most.
pub(super) fn same_dimension(one: &str, other: &str) -> bool {
    letters(one) == letters(other)
}

/// Whether a list names a dimension, alone or among other words: `authentication (login, tokens)`.
pub(super) fn is_named(dimension: &str, list: &[String]) -> bool {
    let wanted = letters(dimension);
    !wanted.is_empty() && letters(&list.concat()).contains(&wanted)
        || list.iter().any(|known| known == dimension)
}

/// A text in small letters, without signs.
pub(super) fn letters(text: &str) -> String {
    text.chars().filter(|character| character.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
