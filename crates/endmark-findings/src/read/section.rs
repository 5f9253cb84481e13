//! A heading that says how bad everything under it is: `## High`, `**Critical severity**`. (AR-1)

use super::names::{Key, folded};
use super::words::{EMPHASIS, said, without_lead};
use crate::{Field, Severity};

/// A heading of this kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) severity: Severity,
    /// How many `#` of a heading; none where it is bold, or a colon ends it.
    hashes: usize,
    /// It is written as the field is: `## Severity: High`.
    pub(super) is_field: bool,
}

/// Words that such a heading may have besides.
const BESIDES: [&str; 11] = [
    "severity",
    "risk",
    "risks",
    "finding",
    "findings",
    "issue",
    "issues",
    "vulnerability",
    "vulnerabilities",
    "problems",
    "level",
];

impl Section {
    /// The heading that a line is. One that counts (`**High: 2**`) sums up, and so heads nothing.
    pub(super) fn of(text: &str) -> Option<Self> {
        let (inner, lead) = without_lead(text);
        let bare = inner.trim_start_matches(EMPHASIS);
        let is_bold = inner[..inner.len() - bare.len()].contains("**") && closes_bold(bare);
        let is_set_apart = lead.hashes > 0 || is_bold || inner.ends_with([':', '：']);
        if !is_set_apart || lead.is_bullet {
            return None;
        }
        let field = said(text).filter(|said| said.key == Some(Key::Of(Field::Severity)));
        // `Risk level: High` speaks of all that was looked into.
        if field.is_some_and(|said| !said.value.is_empty() && !folded(said.name).starts_with("severity")) {
            return None;
        }
        let words =
            without_count(bare.trim_end_matches(|sign: char| EMPHASIS.contains(&sign) || sign == ':'));
        let words = folded(words);
        let (mut severity, mut others) = (None, 0);
        for word in words.split('_') {
            match Severity::read(word) {
                Some(Severity::Other(_)) | None if BESIDES.contains(&word) => others += 1,
                Some(Severity::Other(_)) | None => return None,
                known if severity.is_none() => severity = known,
                Some(_) => return None,
            }
        }
        (others <= 3).then_some(())?;
        Some(Self { severity: severity?, hashes: lead.hashes, is_field: field.is_some() })
    }

    /// Whether a line is a heading that ends it: one as high that says no severity.
    pub(super) fn ends_at(&self, text: &str) -> bool {
        let (inner, lead) = without_lead(text);
        let bare = inner.trim_start_matches(EMPHASIS);
        let is_bold = inner[..inner.len() - bare.len()].contains("**") && closes_bold(bare);
        match (lead.hashes, self.hashes) {
            (0, 0) => is_bold && !lead.is_bullet && said(text).is_none(),
            (0, _) => false,
            (_, 0) => true,
            (hashes, own) => hashes <= own,
        }
    }

    /// Whether it stands above headings of so many `#`, or as high; not known where one of both is none.
    pub(super) fn is_above(&self, hashes: usize) -> Option<bool> {
        (self.hashes > 0 && hashes > 0).then_some(self.hashes <= hashes)
    }

    /// How many `#` it has.
    pub(super) fn hashes(&self) -> usize {
        self.hashes
    }
}

fn closes_bold(text: &str) -> bool {
    text.trim_end_matches([':', '：', ' ']).ends_with("**")
}

/// `High` of `High (2)`.
fn without_count(text: &str) -> &str {
    let text = text.trim_end();
    let inner = text.strip_suffix([')', ']']).and_then(|inner| inner.rsplit_once(['(', '[']));
    let is_count = |count: &str| count.chars().any(|sign| sign.is_ascii_digit()) && count.len() <= 16;
    inner.filter(|(_, count)| is_count(count)).map_or(text, |(words, _)| words)
}

#[cfg(test)]
mod tests {
    use super::Section;

    #[test]
    fn a_heading_with_one_severity_and_nothing_else_is_one() {
        for (text, severity) in [
            ("## High", Some("High")),
            ("## 🔴 Critical Severity (2)", Some("Critical")),
            ("### Medium-risk issues", Some("Medium")),
            ("**LOW**", Some("Low")),
            ("**Severity: High**", Some("High")),
            ("High severity findings:", Some("High")),
            ("## 1. Informational", Some("Info")),
            ("High", None),
            ("- High", None),
            ("## High / Medium", None),
            ("**High: 2**", None),
            ("**High**: 2", None),
            ("## Risk level: High", None),
            ("## Overall severity: High", None),
            ("## Highlights", None),
            ("**High** in all of it", None),
            ("## Findings", None),
        ] {
            let found = Section::of(text).map(|section| section.severity.name().to_owned());
            assert_eq!(found.as_deref(), severity, "{text}");
        }
    }
}
