//! Phrases that announce missing content, as data. One pass over a text finds all candidates, which are then
//! checked in detail.

mod pattern;
mod words;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use pattern::{Pattern, WordLists};
pub(crate) use words::{is_same, is_unspaced, words};

/// The text that a phrase must cover completely, and where it must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PhraseScope {
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
    /// A whole comment that contains dots or is in brackets.
    Elliptical,
    /// A whole comment that begins with dots.
    Dotted,
    /// A whole comment without code after it.
    WithoutCodeAfter,
    /// A whole comment in a code file, without code after it.
    Code,
    /// A phrase after which the sentence is about such phrases or negates them.
    AboutPhrases,
}

impl PhraseScope {
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
            "alone" => Self::WithoutCodeAfter,
            "code" => Self::Code,
            "about" => Self::AboutPhrases,
            _ => return None,
        })
    }
}

/// What a phrase indicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum PhraseKind {
    Handoff,
    Placeholder,
    Omission,
    Forbidden,
}

/// A phrase that indicates missing content.
#[derive(Debug)]
pub(crate) struct Phrase {
    pub(crate) kind: PhraseKind,
    pub(crate) scope: PhraseScope,
    pattern: Pattern,
}

impl Phrase {
    /// Returns the first match in a text with these words. The result is a range of indices into `words`.
    pub(crate) fn find(&self, text: &str, words: &[Range<usize>]) -> Option<Range<usize>> {
        self.find_from(text, words, 0..words.len())
    }

    /// Returns the first match that begins at one of these words.
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
    pub(crate) fn covers_all(&self, text: &str, words: &[Range<usize>]) -> bool {
        !words.is_empty() && self.pattern.match_at(text, words) == Some(words.len())
    }
}

/// A set of phrases that one pass over a text finds.
#[derive(Debug)]
pub(crate) struct PhraseSet {
    phrases: Vec<Phrase>,
    /// Finds the anchors. `None` if there are no anchors.
    automaton: Option<AhoCorasick>,
    /// The indices of the phrases with each anchor.
    by_anchor: Vec<Vec<usize>>,
}

/// An occurrence of an anchor in a text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnchorMatch<'b> {
    /// The byte offset of the anchor.
    pub(crate) position: usize,
    set: &'b PhraseSet,
    anchor: usize,
}

impl<'b> AnchorMatch<'b> {
    /// Returns the phrases with this anchor, each with its index.
    pub(crate) fn phrases(self) -> impl Iterator<Item = (usize, &'b Phrase)> {
        self.set.by_anchor[self.anchor].iter().map(move |&index| (index, &self.set.phrases[index]))
    }
}

impl PhraseSet {
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

    /// Creates a bank with the forbidden phrases of a user.
    pub(crate) fn forbidden<'p>(phrases: impl IntoIterator<Item = &'p str>) -> Self {
        let of = |pattern| Phrase { kind: PhraseKind::Forbidden, scope: PhraseScope::Part, pattern };
        Self::new(phrases.into_iter().filter_map(Pattern::literal).map(of).collect())
    }

    /// Returns the phrases with this scope.
    pub(crate) fn in_scope(&self, scope: PhraseScope) -> impl Iterator<Item = &Phrase> {
        self.phrases.iter().filter(move |phrase| phrase.scope == scope)
    }

    /// Returns all anchors in a text, in the order of their ends.
    pub(crate) fn hits<'b>(&'b self, text: &'b str) -> impl Iterator<Item = AnchorMatch<'b>> {
        let found = self.automaton.as_ref().map(|automaton| automaton.find_overlapping_iter(text));
        // An anchor must begin at the start of a word, not inside one.
        let begins = |at: usize| at == 0 || !(is_letter(text, at - 1) && is_letter(text, at));
        found.into_iter().flatten().filter(move |found| begins(found.start())).map(|found| AnchorMatch {
            position: found.start(),
            set: self,
            anchor: found.pattern().as_usize(),
        })
    }
}

/// Returns whether the byte at this offset is an ASCII letter or digit.
fn is_letter(text: &str, at: usize) -> bool {
    text.as_bytes().get(at).is_some_and(u8::is_ascii_alphanumeric)
}

/// Returns an anchor in several spellings, because the automaton ignores only ASCII case.
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

const HANDOFFS_FILE: &str = include_str!("../data/handoffs.txt");
const PLACEHOLDERS_FILE: &str = include_str!("../data/placeholders.txt");
const OMISSIONS_FILE: &str = include_str!("../data/omissions.txt");
const ABOUT_FILE: &str = include_str!("../data/about.txt");

/// The built-in phrases (CG-1).
pub(crate) static BUILT_IN_PHRASES: LazyLock<PhraseSet> = LazyLock::new(|| {
    let files = [
        (PhraseKind::Handoff, HANDOFFS_FILE),
        (PhraseKind::Placeholder, PLACEHOLDERS_FILE),
        (PhraseKind::Omission, OMISSIONS_FILE),
    ];
    // Invalid lines are skipped. A test ensures that the files contain none.
    PhraseSet::new(files.into_iter().flat_map(|(sign, file)| parse_phrase_file(sign, file).0).collect())
});

/// Phrases after which a sentence is about phrases such as the built-in ones.
static ABOUT_PHRASES: LazyLock<Vec<Phrase>> =
    LazyLock::new(|| parse_phrase_file(PhraseKind::Handoff, ABOUT_FILE).0);

/// Returns whether these words before a phrase show that the sentence is about the phrase, or negates it.
pub(crate) fn is_about(text: &str, words: &[Range<usize>]) -> bool {
    ABOUT_PHRASES.iter().any(|phrase| phrase.find(text, words).is_some())
}

/// Parses a phrase file and returns its phrases and the errors. Lines are `scope: pattern`, `name = a|b` for
/// a list, or `#` for a comment.
fn parse_phrase_file(sign: PhraseKind, file: &str) -> (Vec<Phrase>, Vec<String>) {
    let (mut phrases, mut problems, mut classes) = (Vec::new(), Vec::new(), WordLists::new());
    for line in file.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some((name, list)) = line.split_once(" = ") {
            // Another line with the same name extends the list.
            let known: &mut String = classes.entry(name.trim().to_owned()).or_default();
            let separator = if known.is_empty() { "" } else { "|" };
            known.extend([separator, list.trim()]);
            continue;
        }
        let parsed = line.split_once(':').ok_or_else(|| format!("`{line}` has no scope")).and_then(
            |(scope, pattern)| {
                let scope = PhraseScope::from_name(scope.trim())
                    .ok_or_else(|| format!("there is no scope `{scope}`"))?;
                Ok(Phrase { kind: sign, scope, pattern: Pattern::parse(pattern, &classes)? })
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
    fn every_line_of_the_phrase_files_can_be_parsed() {
        for (file, text) in [
            ("handoffs", HANDOFFS_FILE),
            ("placeholders", PLACEHOLDERS_FILE),
            ("omissions", OMISSIONS_FILE),
            ("about", ABOUT_FILE),
        ] {
            let (phrases, problems) = parse_phrase_file(PhraseKind::Handoff, text);
            assert!(problems.is_empty(), "{file}: {problems:?}");
            assert!(phrases.len() > 5, "{file}");
        }
    }

    #[test]
    fn anchors_are_found_in_any_case() {
        let bank = PhraseSet::forbidden(["überall gültig", "to be continued"]);
        for text in ["ÜBERALL GÜLTIG", "Überall gültig", "To Be Continued"] {
            assert!(bank.hits(text).next().is_some(), "{text}");
        }
        assert!(bank.hits("nothing").next().is_none());
        assert!(PhraseSet::forbidden([]).hits("anything").next().is_none());
    }
}
