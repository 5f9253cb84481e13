//! Phrases that announce missing content, as data. They are found in one pass and then checked in detail.

mod pattern;
mod words;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use pattern::{Classes, Pattern};
pub(crate) use words::{is_same, is_unspaced, words};

/// The part of its surroundings that a phrase must cover, and its required place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// A part of a sentence.
    Part,
    /// A part of a sentence near the end of the text.
    End,
    /// A whole sentence, or all text in a pair of brackets.
    Sentence,
    /// A whole paragraph, item, cell or heading, or the value of a field.
    Block,
    /// All text under a heading.
    Section,
    /// Text in square or angle brackets, anywhere.
    Brackets,
    /// A whole comment.
    Comment,
    /// A whole comment with dots or in brackets.
    Elliptical,
    /// A whole comment that begins with dots.
    Dotted,
    /// A whole comment that no code follows.
    Alone,
    /// A whole comment in a code file that no code follows.
    Code,
    /// A phrase that makes the rest of its sentence a statement about phrases, or a negation.
    About,
}

impl Scope {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "part" => Self::Part,
            "end" => Self::End,
            "sentence" => Self::Sentence,
            "block" => Self::Block,
            "section" => Self::Section,
            "brackets" => Self::Brackets,
            "comment" => Self::Comment,
            "elliptical" => Self::Elliptical,
            "dotted" => Self::Dotted,
            "alone" => Self::Alone,
            "code" => Self::Code,
            "about" => Self::About,
            _ => return None,
        })
    }
}

/// What a phrase indicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Sign {
    Handoff,
    Placeholder,
    Omission,
    Forbidden,
}

/// One phrase.
#[derive(Debug)]
pub(crate) struct Phrase {
    pub(crate) sign: Sign,
    pub(crate) scope: Scope,
    pattern: Pattern,
}

impl Phrase {
    /// Returns the first match in a text with these words, as a range of words.
    pub(crate) fn find(&self, text: &str, words: &[Range<usize>]) -> Option<Range<usize>> {
        self.find_from(text, words, 0..words.len())
    }

    /// Returns the first match that begins at one of the given words.
    pub(crate) fn find_from(
        &self,
        text: &str,
        words: &[Range<usize>],
        mut first: Range<usize>,
    ) -> Option<Range<usize>> {
        first.find_map(|first| {
            let count = self.pattern.match_at(text, words.get(first..)?)?;
            Some(first..first + count)
        })
    }

    /// Whether the phrase matches all of these words.
    pub(crate) fn is_all(&self, text: &str, words: &[Range<usize>]) -> bool {
        !words.is_empty() && self.pattern.match_at(text, words) == Some(words.len())
    }
}

/// Phrases that are searched for together.
#[derive(Debug)]
pub(crate) struct Bank {
    phrases: Vec<Phrase>,
    /// The automaton that finds the anchors, or `None` without any.
    automaton: Option<AhoCorasick>,
    /// The phrases of each anchor, by index.
    by_anchor: Vec<Vec<usize>>,
}

/// An anchor in a text, and the phrases that it may belong to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hit<'b> {
    /// The byte offset of the anchor.
    pub(crate) position: usize,
    bank: &'b Bank,
    anchor: usize,
}

impl<'b> Hit<'b> {
    /// Returns the phrases that the anchor may belong to.
    pub(crate) fn phrases(self) -> impl Iterator<Item = (usize, &'b Phrase)> {
        self.bank.by_anchor[self.anchor].iter().map(move |&index| (index, &self.bank.phrases[index]))
    }
}

impl Bank {
    fn new(phrases: Vec<Phrase>) -> Self {
        let mut by_anchor: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, phrase) in phrases.iter().enumerate() {
            for anchor in phrase.pattern.anchors() {
                for spelling in spellings(&anchor) {
                    by_anchor.entry(spelling).or_default().push(index);
                }
            }
        }
        let (anchors, of_anchor): (Vec<_>, Vec<_>) = by_anchor.into_iter().unzip();
        let is_empty = anchors.is_empty();
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .ascii_case_insensitive(true)
            .kind(Some(AhoCorasickKind::DFA))
            .build(anchors)
            .ok()
            .filter(|_| !is_empty);
        Self { phrases, automaton, by_anchor: of_anchor }
    }

    /// Creates a bank of forbidden phrases.
    pub(crate) fn forbidden<'p>(phrases: impl IntoIterator<Item = &'p str>) -> Self {
        let of = |pattern| Phrase { sign: Sign::Forbidden, scope: Scope::Part, pattern };
        Self::new(phrases.into_iter().filter_map(Pattern::literal).map(of).collect())
    }

    /// Returns the phrases with this scope.
    pub(crate) fn in_scope(&self, scope: Scope) -> impl Iterator<Item = &Phrase> {
        self.phrases.iter().filter(move |phrase| phrase.scope == scope)
    }

    /// Returns all anchors in a text, in the order of their ends.
    pub(crate) fn hits<'b>(&'b self, text: &'b str) -> impl Iterator<Item = Hit<'b>> {
        let found = self.automaton.as_ref().map(|automaton| automaton.find_overlapping_iter(text));
        // An anchor must begin at the start of a word, not inside one.
        let begins = |at: usize| at == 0 || !(is_letter(text, at - 1) && is_letter(text, at));
        found.into_iter().flatten().filter(move |found| begins(found.start())).map(|found| Hit {
            position: found.start(),
            bank: self,
            anchor: found.pattern().as_usize(),
        })
    }
}

/// Whether a byte is an ASCII letter or digit.
fn is_letter(text: &str, at: usize) -> bool {
    text.as_bytes().get(at).is_some_and(u8::is_ascii_alphanumeric)
}

/// Returns the spellings of an anchor, because the automaton folds only ASCII case.
fn spellings(anchor: &str) -> Vec<String> {
    if anchor.is_ascii() {
        return vec![anchor.to_owned()];
    }
    let mut characters = anchor.chars();
    let title: String =
        characters.next().into_iter().flat_map(char::to_uppercase).chain(characters).collect();
    let mut spellings = vec![anchor.to_owned(), title, anchor.to_uppercase()];
    spellings.sort();
    spellings.dedup();
    spellings
}

const HANDOFFS: &str = include_str!("../data/handoffs.txt");
const PLACEHOLDERS: &str = include_str!("../data/placeholders.txt");
const OMISSIONS: &str = include_str!("../data/omissions.txt");
const ABOUT: &str = include_str!("../data/about.txt");

/// The built-in phrases (CG-1).
pub(crate) static DEFAULT: LazyLock<Bank> = LazyLock::new(|| {
    let files = [(Sign::Handoff, HANDOFFS), (Sign::Placeholder, PLACEHOLDERS), (Sign::Omission, OMISSIONS)];
    // An invalid line is skipped. A test ensures that the files have none.
    Bank::new(files.into_iter().flat_map(|(sign, file)| read(sign, file).0).collect())
});

/// Phrases that make a sentence a statement about phrases.
static SPEAKING: LazyLock<Vec<Phrase>> = LazyLock::new(|| read(Sign::Handoff, ABOUT).0);

/// Whether these words before a phrase make the sentence a statement about it, or negate it.
pub(crate) fn is_about(text: &str, words: &[Range<usize>]) -> bool {
    SPEAKING.iter().any(|phrase| phrase.find(text, words).is_some())
}

/// Parses a phrase file: `scope: pattern`, `name = a|b` for a list, `#` for comments.
fn read(sign: Sign, file: &str) -> (Vec<Phrase>, Vec<String>) {
    let (mut phrases, mut problems, mut classes) = (Vec::new(), Vec::new(), Classes::new());
    for line in file.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some((name, list)) = line.split_once(" = ") {
            // A further line with the same name extends the list.
            let known: &mut String = classes.entry(name.trim().to_owned()).or_default();
            let separator = if known.is_empty() { "" } else { "|" };
            known.extend([separator, list.trim()]);
            continue;
        }
        let parsed = line.split_once(':').ok_or_else(|| format!("`{line}` has no scope")).and_then(
            |(scope, pattern)| {
                let scope =
                    Scope::from_name(scope.trim()).ok_or_else(|| format!("there is no scope `{scope}`"))?;
                Ok(Phrase { sign, scope, pattern: Pattern::parse(pattern, &classes)? })
            },
        );
        match parsed {
            Ok(phrase) => phrases.push(phrase),
            Err(problem) => problems.push(problem),
        }
    }
    (phrases, problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_data_can_be_parsed() {
        for (file, text) in [
            ("handoffs", HANDOFFS),
            ("placeholders", PLACEHOLDERS),
            ("omissions", OMISSIONS),
            ("about", ABOUT),
        ] {
            let (phrases, problems) = read(Sign::Handoff, text);
            assert!(problems.is_empty(), "{file}: {problems:?}");
            assert!(phrases.len() > 5, "{file}");
        }
    }

    #[test]
    fn anchors_are_found_in_any_case() {
        let bank = Bank::forbidden(["überall gültig", "to be continued"]);
        for text in ["ÜBERALL GÜLTIG", "Überall gültig", "To Be Continued"] {
            assert!(bank.hits(text).next().is_some(), "{text}");
        }
        assert!(bank.hits("nothing").next().is_none());
        assert!(Bank::forbidden([]).hits("anything").next().is_none());
    }
}
