//! Signs that a text speaks of a finding where none could be read. (AR-1)

use std::collections::BTreeSet;

use super::super::finding::{Cwe, Finding};
use super::super::location::Location;
use super::words;

/// What a paragraph has said of a finding so far.
#[derive(Debug, Default)]
pub(super) struct Paragraph {
    is_severe: bool,
    has_place: bool,
    is_told: bool,
    named: Named,
}

/// What a text names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Named {
    weaknesses: BTreeSet<u32>,
    /// Files with lines, without their folders.
    files: BTreeSet<String>,
}

/// Words for how bad something is.
const SEVERE: [&str; 5] = ["critical", "high", "medium", "moderate", "low"];

/// Words that deny what follows them.
const DENIALS: [&str; 6] = ["no", "none", "nothing", "without", "neither", "nor"];

impl Paragraph {
    /// Takes the next line of text: whether it, or the paragraph with it, speaks of a finding.
    pub(super) fn takes(&mut self, text: &str) -> bool {
        // One thing after the other: what was told is another one.
        let is_item = words::item(text).is_some() || text.trim_start().starts_with('|');
        if self.is_told && is_item {
            *self = Self::default();
        }
        let named = Named::of(text);
        self.named.weaknesses.extend(&named.weaknesses);
        self.named.files.extend(named.files.iter().cloned());
        if !named.weaknesses.is_empty() && !is_denied_weakness(text) {
            self.is_told = true;
            return true;
        }
        let words: Vec<String> = words_of(text).map(str::to_lowercase).collect();
        let severe = words.iter().position(|word| SEVERE.contains(&word.as_str()));
        // `critical: … without a password` denies nothing.
        let is_denied = |at: usize| words[..at].iter().any(|word| DENIALS.contains(&word.as_str()));
        self.is_severe |= severe.is_some_and(|at| !is_denied(at));
        self.has_place |= !named.files.is_empty();
        let is_sign = self.is_severe && self.has_place && !self.is_told;
        self.is_told |= is_sign;
        is_sign
    }

    /// What it has named so far.
    pub(super) fn named(&self) -> &Named {
        &self.named
    }
}

impl Named {
    /// What a line names.
    pub(super) fn of(text: &str) -> Self {
        let mut named = Self::default();
        named.weaknesses.extend(Cwe::named_in(text).into_iter().map(|cwe| cwe.0));
        let mut is_line_named = false;
        let mut plain = Vec::new();
        for word in text.split_whitespace() {
            let word = word.trim_matches(|sign: char| !sign.is_alphanumeric());
            let (file, lines) = word.split_once(':').unwrap_or((word, ""));
            let is_file = file.rsplit_once('.').is_some_and(|(name, kind)| {
                name.ends_with(|sign: char| sign.is_alphanumeric() || sign == '_')
                    && (1..=5).contains(&kind.len())
                    && kind.chars().all(|sign| sign.is_ascii_alphanumeric())
                    && kind.starts_with(|sign: char| sign.is_ascii_alphabetic())
            });
            is_line_named |= matches!(word.to_ascii_lowercase().as_str(), "line" | "lines");
            if is_file {
                let name = file.rsplit(['/', '\\']).next().unwrap_or(file).to_owned();
                let has_lines = lines.starts_with(|sign: char| sign.is_ascii_digit());
                if has_lines {
                    named.files.insert(name);
                } else {
                    plain.push(name);
                }
            }
        }
        if is_line_named {
            named.files.extend(plain);
        }
        named
    }

    /// Adds what a finding says.
    pub(super) fn add(&mut self, finding: &Finding) {
        self.weaknesses.extend(finding.cwe.iter().map(|cwe| cwe.0));
        let places = finding.location.iter().flat_map(Location::places);
        self.files
            .extend(places.map(|place| place.file.rsplit('/').next().unwrap_or(&place.file).to_owned()));
        let texts = [&finding.source, &finding.sink, &finding.flow].into_iter().flatten();
        texts.for_each(|text| self.files.extend(Self::of(text).files));
    }

    /// Whether a place is named.
    pub(super) fn has_place(&self) -> bool {
        !self.files.is_empty()
    }

    /// Whether another one names one of these weaknesses or files.
    pub(super) fn has_some_of(&self, other: &Self) -> bool {
        self.weaknesses.iter().any(|number| other.weaknesses.contains(number))
            || self.files.iter().any(|file| other.files.contains(file))
    }

    /// Whether both a weakness and a place are named.
    pub(super) fn is_precise(&self) -> bool {
        !self.weaknesses.is_empty() && !self.files.is_empty()
    }
}

/// Whether it says `no CWE-89 …`.
fn is_denied_weakness(text: &str) -> bool {
    let words: Vec<String> = words_of(text).map(str::to_lowercase).collect();
    let at = words.iter().position(|word| word.starts_with("cwe"));
    at.and_then(|at| at.checked_sub(1)).is_some_and(|before| DENIALS.contains(&words[before].as_str()))
}

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|sign: char| !sign.is_alphanumeric()).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::{Named, Paragraph};

    #[test]
    fn a_weakness_or_a_severity_with_a_place_is_a_sign() {
        for (lines, is_sign) in [
            (&["An SQL injection (CWE-89)."][..], true),
            (&["SQL injection in src/a.py:10, severity high."], true),
            (&["**SQL injection** (High)", "In `src/a.py`, line 10, the name is concatenated."], true),
            (&["In src/a.py:10 the name is concatenated."], false),
            (&["All of it is high quality."], false),
            (&["No high risk in src/a.py:10."], false),
            (&["No CWE-89 or CWE-79 in all of it."], false),
            (&["No check of the name leads to CWE-89."], true),
            (&["Read src/a.py and src/b.py; medium effort."], false),
            (&["At 10:30 the critical path e.g. was read."], false),
        ] {
            let mut paragraph = Paragraph::default();
            let found = lines.iter().any(|line| paragraph.takes(line));
            assert_eq!(found, is_sign, "{lines:?}");
        }
        assert!(Named::of("CWE 79 in web/a.js:3").is_precise());
        assert!(!Named::of("CWE-79").is_precise());
    }
}
