//! The record of a compaction (CX-4).

use std::collections::BTreeMap;

use super::anchors::AnchorKind;
use super::ledger::Ledger;
use super::summary::WrittenSummary;
use crate::conversation::{Content, Conversation};

/// What a compaction did, with the sizes before and after.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompactionReceipt {
    /// Why the conversation is unchanged. `None` if it was compacted.
    pub not_compacted: Option<NotCompacted>,
    /// Estimated tokens of the history before the compaction.
    pub tokens_before: u64,
    /// Estimated tokens of the history after the compaction.
    pub tokens_after: u64,
    /// Numbers of condensed turns and parts, by kind.
    pub dropped: BTreeMap<&'static str, u64>,
    /// Number of results that were shortened in the turns that stay.
    pub shortened_results: u64,
    /// Whether the result still exceeds the budget after everything possible was removed.
    pub is_over_budget: bool,
    /// For each kind, the number of anchors in the condensed turns, and how many of them are kept.
    pub anchors: BTreeMap<AnchorKind, (u64, u64)>,
}

/// The reason why a conversation was not compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NotCompacted {
    /// The history is smaller than the trigger.
    BelowTrigger,
    /// All turns must stay unchanged.
    NothingToCondense,
    /// The history would hardly become smaller.
    TooLittleGain,
    /// The compaction could not be written into the request. This is an internal error.
    NotWritten,
}

impl NotCompacted {
    /// Returns the reason as text for users.
    pub fn reason(self) -> &'static str {
        match self {
            Self::BelowTrigger => "the history is below the trigger",
            Self::NothingToCondense => "all of the history has to stay, or was condensed before",
            Self::TooLittleGain => "the history would hardly become smaller",
            Self::NotWritten => "the request cannot be edited as the compaction needs it",
        }
    }

    /// Returns the reason's name in headers.
    pub fn name(self) -> &'static str {
        match self {
            Self::BelowTrigger => "below_trigger",
            Self::NothingToCondense => "nothing_to_condense",
            Self::TooLittleGain => "too_little_gain",
            Self::NotWritten => "not_written",
        }
    }
}

impl AnchorKind {
    /// Returns the kind's name in receipts.
    pub fn name(self) -> &'static str {
        match self {
            Self::UserLine => "user_lines",
            Self::Todo => "todos",
            Self::Decision => "decisions",
            Self::Error => "errors",
            Self::Command => "calls",
            Self::File => "files",
            Self::Url => "urls",
            Self::Identifier => "identifiers",
            Self::Number => "numbers",
            Self::Conclusion => "conclusions",
            Self::GroupedCall => "grouped_calls",
        }
    }
}

impl CompactionReceipt {
    pub(super) fn unchanged(history: u64, reason: NotCompacted) -> Self {
        Self { not_compacted: Some(reason), tokens_before: history, tokens_after: history, ..Self::default() }
    }

    pub(super) fn of(conversation: &Conversation<'_>, folded: &[usize], before: u64, after: u64) -> Self {
        let mut dropped: BTreeMap<&'static str, u64> = BTreeMap::new();
        for turn in folded.iter().filter_map(|turn| conversation.turns.get(*turn)) {
            *dropped.entry("turns").or_default() += 1;
            for part in &turn.parts {
                *dropped.entry(name(&part.content)).or_default() += 1;
            }
        }
        Self { tokens_before: before, tokens_after: after, dropped, ..Self::default() }
    }
}

fn name(content: &Content<'_>) -> &'static str {
    match content {
        Content::Text(_) => "texts",
        Content::Call(_) => "tool_calls",
        Content::Result(_) => "tool_results",
        Content::Reasoning { .. } => "reasoning",
        Content::Media(_) => "media",
        Content::Server { .. } | Content::Reference { .. } => "server_items",
        Content::Unknown { .. } => "unknown",
    }
}

/// Returns the number of anchors and of kept anchors, for each kind.
pub(super) fn count_anchors(
    ledger: &Ledger<'_>,
    conclusions: u64,
    written: &WrittenSummary,
) -> BTreeMap<AnchorKind, (u64, u64)> {
    let mut all: BTreeMap<AnchorKind, (u64, u64)> = BTreeMap::new();
    for entry in ledger.entries() {
        all.entry(entry.kind).or_default().0 += 1;
    }
    if conclusions > 0 {
        all.insert(AnchorKind::Conclusion, (conclusions, 0));
    }
    if written.calls_left_out > 0 {
        all.insert(AnchorKind::GroupedCall, (written.calls_left_out, 0));
    }
    for (kind, count) in &mut all {
        count.1 = written.kept_anchors.get(kind).copied().unwrap_or_default();
    }
    all
}
