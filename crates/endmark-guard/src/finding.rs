//! Findings, verdicts and reports.

use std::borrow::Cow;
use std::ops::Range;

use serde::Serialize;

use crate::artifact::{Artifact, PositionFinder};

/// The maximum number of findings in a report. The first ones already show the problem.
const MAX_LISTED_FINDINGS: usize = 1_000;

/// A check of the guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// The artifact does not exist.
    Missing,
    /// The artifact is empty.
    Empty,
    /// The artifact is the unchanged template.
    Untouched,
    /// The artifact has too few lines.
    MinLines,
    /// A required section is missing.
    SectionMissing,
    /// A section has a heading and no content.
    SectionEmpty,
    /// A code block is not closed.
    OpenFence,
    /// A table is cut off.
    OpenTable,
    /// The text stops in the middle of a sentence.
    MidSentence,
    /// A code or data file stops inside an open bracket, string or comment.
    OpenCode,
    /// The artifact contains a placeholder instead of content.
    Placeholder,
    /// The author defers the rest to a later time or another person.
    Handoff,
    /// A comment replaces code.
    Omission,
    /// The artifact contains a phrase that the criteria forbid.
    ForbiddenPhrase,
}

impl Check {
    /// All checks.
    pub const ALL: [Self; 14] = [
        Self::Missing,
        Self::Empty,
        Self::Untouched,
        Self::MinLines,
        Self::SectionMissing,
        Self::SectionEmpty,
        Self::OpenFence,
        Self::OpenTable,
        Self::MidSentence,
        Self::OpenCode,
        Self::Placeholder,
        Self::Handoff,
        Self::Omission,
        Self::ForbiddenPhrase,
    ];

    /// Returns the stable machine-readable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Empty => "empty",
            Self::Untouched => "untouched",
            Self::MinLines => "min_lines",
            Self::SectionMissing => "section_missing",
            Self::SectionEmpty => "section_empty",
            Self::OpenFence => "open_fence",
            Self::OpenTable => "open_table",
            Self::MidSentence => "mid_sentence",
            Self::OpenCode => "open_code",
            Self::Placeholder => "placeholder",
            Self::Handoff => "handoff",
            Self::Omission => "omission",
            Self::ForbiddenPhrase => "forbidden_phrase",
        }
    }

    /// Returns a description in one sentence.
    pub fn description(self) -> &'static str {
        match self {
            Self::Missing => "The artifact does not exist.",
            Self::Empty => "The artifact has no content.",
            Self::Untouched => "The artifact is identical to its template.",
            Self::MinLines => "The artifact has fewer lines than its criteria demand.",
            Self::SectionMissing => "A required section is missing.",
            Self::SectionEmpty => "A section has a heading and no content.",
            Self::OpenFence => "A code block is never closed.",
            Self::OpenTable => "A table breaks off.",
            Self::MidSentence => "The text stops in the middle of a sentence.",
            Self::OpenCode => "Code or data stops inside of a bracket, a string or a comment.",
            Self::Placeholder => "A placeholder instead of content.",
            Self::Handoff => "The author announces the rest instead of writing it.",
            Self::Omission => "Code is left out and replaced by a comment.",
            Self::ForbiddenPhrase => "A phrase that the criteria forbid.",
        }
    }

    /// Returns whether the check indicates that the text was cut off, not that its author stopped early.
    pub fn is_cut(self) -> bool {
        matches!(self, Self::OpenFence | Self::OpenTable | Self::MidSentence | Self::OpenCode)
    }
}

/// A problem, and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// The check that failed.
    pub check: Check,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// The first line of the affected text, at most 160 characters. Empty if the finding is that content is
    /// missing.
    pub text: String,
    /// The reason for the finding.
    pub why: String,
    /// How to satisfy the check.
    pub fix: String,
}

/// Whether an artifact is finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// No findings.
    Whole,
    /// The author stopped before the work was done.
    WrappedUp,
    /// The artifact is cut off.
    Truncated,
}

impl Verdict {
    /// Returns the stable machine-readable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::WrappedUp => "wrapped_up",
            Self::Truncated => "truncated",
        }
    }
}

/// The guard's report on an artifact. The artifact is whole if there are no findings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Assessment {
    verdict: Verdict,
    findings: Vec<Finding>,
    /// The number of further findings.
    unlisted: usize,
}

impl Assessment {
    /// Returns the report on an artifact that does not exist.
    pub fn missing() -> Self {
        Self {
            verdict: Verdict::WrappedUp,
            findings: vec![Finding {
                check: Check::Missing,
                line: 1,
                column: 1,
                text: String::new(),
                why: "the artifact does not exist".to_owned(),
                fix: "Write it, under exactly this path.".to_owned(),
            }],
            unlisted: 0,
        }
    }

    pub(crate) fn new(artifact: &Artifact<'_>, mut found: Vec<UnplacedFinding>) -> Self {
        found.sort_by_key(|found| (found.range.start, found.check, found.range.end));
        let worst = found.iter().map(|found| check_verdict(found.check)).max();
        let unlisted = found.len().saturating_sub(MAX_LISTED_FINDINGS);
        if unlisted > 0 {
            // Findings of a cut are at the end of the text. They come first, because they matter most.
            found.sort_by_key(|found| !found.check.is_cut());
            found.truncate(MAX_LISTED_FINDINGS);
            found.sort_by_key(|found| found.range.start);
        }
        let mut places = PositionFinder::new(artifact.text());
        let findings: Vec<Finding> = found
            .into_iter()
            .map(|UnplacedFinding { check, range, why, fix }| {
                let (line, column) = places.line_and_column(range.start);
                let text = places.quote(range);
                Finding { check, line, column, text, why: why.into_owned(), fix: fix.into_owned() }
            })
            .collect();
        Self { verdict: worst.unwrap_or(Verdict::Whole), findings, unlisted }
    }

    /// Returns whether the artifact is finished.
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// Returns at most 1,000 findings, in the order of the text.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Returns the number of findings that are not listed.
    pub fn unlisted_count(&self) -> usize {
        self.unlisted
    }

    /// Returns the number of all findings, including those that are not listed.
    pub fn count(&self) -> usize {
        self.findings.len() + self.unlisted
    }
}

fn check_verdict(check: Check) -> Verdict {
    if check.is_cut() { Verdict::Truncated } else { Verdict::WrappedUp }
}

/// A finding whose line and column are not known yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnplacedFinding {
    pub(crate) check: Check,
    pub(crate) range: Range<usize>,
    pub(crate) why: Cow<'static, str>,
    pub(crate) fix: Cow<'static, str>,
}

impl UnplacedFinding {
    pub(crate) fn new(
        check: Check,
        range: Range<usize>,
        why: impl Into<Cow<'static, str>>,
        fix: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { check, range, why: why.into(), fix: fix.into() }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Artifact, Criteria, Guard, Verdict};

    #[test]
    fn a_text_with_many_findings_lists_some_and_counts_all() {
        let criteria = Criteria { forbidden_phrases: vec!["as planned".to_owned()], ..Criteria::default() };
        let text = format!("# Report\n\n{}\n\n```sh\nls\n", "It went as planned. ".repeat(5_000));
        let report = Guard::new(criteria).judge(&Artifact::read(&text));
        assert_eq!((report.findings().len(), report.count(), report.unlisted_count()), (1_000, 5_001, 4_001));
        assert_eq!(report.verdict(), Verdict::Truncated);
        // All findings are on one line, and columns count characters. The finding at the end is included.
        assert_eq!((report.findings()[998].line, report.findings()[998].column), (3, 998 * 20 + 9));
        assert_eq!(report.findings()[999].check.name(), "open_fence");
    }
}
