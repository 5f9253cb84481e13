//! Phrases by which an author says that something is not there, as data: found in one pass, then looked at closely.

mod pattern;
mod words;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use pattern::{Classes, Pattern};
pub(crate) use words::{is_same, is_unspaced, words};

/// How much of what it stands in a phrase has to be, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// A part of a sentence.
    Part,
    /// A part of a sentence among the last of the text.
    End,
    /// A whole sentence, or what stands in brackets.
    Sentence,
    /// A whole paragraph, item, cell or heading, or what a field has for a value.
    Block,
    /// All that is under a heading.
    Section,
    /// What stands in square or angle brackets, wherever.
    Brackets,
    /// A whole comment.
    Comment,
    /// A whole comment that is elliptical: with dots, or in brackets.
    Elliptical,
    /// A whole comment that begins with dots.
    Dotted,
    /// A whole comment behind which no code follows.
    Alone,
    /// A whole comment in a file of code, behind which no code follows.
    Code,
    /// What makes the rest of its sentence one that speaks of phrases, or denies.
    About,
}

impl Scope {
    fn named(name: &str) -> Option<Self> {
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

/// What a phrase is a sign of.
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
    /// Where it is in a text with these words: a range of words, the first there is.
    pub(crate) fn find(&self, text: &str, words: &[Range<usize>]) -> Option<Range<usize>> {
        self.find_from(text, words, 0..words.len())
    }

    /// The same, where it begins with one of some words.
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

    /// Whether all of these words are the phrase.
    pub(crate) fn is_all(&self, text: &str, words: &[Range<usize>]) -> bool {
        !words.is_empty() && self.pattern.match_at(text, words) == Some(words.len())
    }
}

/// Phrases that are looked for together.
#[derive(Debug)]
pub(crate) struct Bank {
    phrases: Vec<Phrase>,
    /// Finds the anchors; none if there is nothing to find.
    automaton: Option<AhoCorasick>,
    /// The phrases of each anchor.
    of_anchor: Vec<Vec<usize>>,
}

/// An anchor in a text, with the phrases that it may belong to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hit<'b> {
    /// The byte that the anchor begins at.
    pub(crate) at: usize,
    bank: &'b Bank,
    anchor: usize,
}

impl<'b> Hit<'b> {
    /// The phrases that the anchor may belong to.
    pub(crate) fn phrases(self) -> impl Iterator<Item = (usize, &'b Phrase)> {
        self.bank.of_anchor[self.anchor].iter().map(move |&index| (index, &self.bank.phrases[index]))
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
        Self { phrases, automaton, of_anchor }
    }

    /// The phrases that somebody forbids.
    pub(crate) fn forbidden<'p>(phrases: impl IntoIterator<Item = &'p str>) -> Self {
        let of = |pattern| Phrase { sign: Sign::Forbidden, scope: Scope::Part, pattern };
        Self::new(phrases.into_iter().filter_map(Pattern::literal).map(of).collect())
    }

    /// The phrases of this scope.
    pub(crate) fn of_scope(&self, scope: Scope) -> impl Iterator<Item = &Phrase> {
        self.phrases.iter().filter(move |phrase| phrase.scope == scope)
    }

    /// All anchors in a text, in the order of their ends.
    pub(crate) fn hits<'b>(&'b self, text: &'b str) -> impl Iterator<Item = Hit<'b>> {
        let found = self.automaton.as_ref().map(|automaton| automaton.find_overlapping_iter(text));
        // A word begins where another one has ended; what stands inside of one is part of it.
        let begins = |at: usize| at == 0 || !(is_letter(text, at - 1) && is_letter(text, at));
        found.into_iter().flatten().filter(move |found| begins(found.start())).map(|found| Hit {
            at: found.start(),
            bank: self,
            anchor: found.pattern().as_usize(),
        })
    }
}

/// Whether a byte is a letter or digit of ASCII.
fn is_letter(text: &str, at: usize) -> bool {
    text.as_bytes().get(at).is_some_and(u8::is_ascii_alphanumeric)
}

/// An anchor as it may be spelt: the automaton folds the case of ASCII alone.
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

/// The phrases that everybody is held to (CG-1).
pub(crate) static DEFAULT: LazyLock<Bank> = LazyLock::new(|| {
    let files = [(Sign::Handoff, HANDOFFS), (Sign::Placeholder, PLACEHOLDERS), (Sign::Omission, OMISSIONS)];
    // A line that cannot be read is left out; a test holds the files to having none.
    Bank::new(files.into_iter().flat_map(|(sign, file)| read(sign, file).0).collect())
});

/// What makes a sentence one about phrases.
static SPEAKING: LazyLock<Vec<Phrase>> = LazyLock::new(|| read(Sign::Handoff, ABOUT).0);

/// Whether these words, in front of a phrase, say that the sentence is about it, or denies it.
pub(crate) fn is_about(text: &str, words: &[Range<usize>]) -> bool {
    SPEAKING.iter().any(|phrase| phrase.find(text, words).is_some())
}

/// Reads a file of phrases: `scope: pattern`, `name = a|b` for a list, `#` for what people read.
fn read(sign: Sign, file: &str) -> (Vec<Phrase>, Vec<String>) {
    let (mut phrases, mut problems, mut classes) = (Vec::new(), Vec::new(), Classes::new());
    for line in file.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some((name, list)) = line.split_once(" = ") {
            // A list may go on in a further line of the same name.
            let known: &mut String = classes.entry(name.trim().to_owned()).or_default();
            let separator = if known.is_empty() { "" } else { "|" };
            known.extend([separator, list.trim()]);
            continue;
        }
        let parsed = line.split_once(':').ok_or_else(|| format!("`{line}` has no scope")).and_then(
            |(scope, pattern)| {
                let scope =
                    Scope::named(scope.trim()).ok_or_else(|| format!("there is no scope `{scope}`"))?;
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
    fn every_line_of_the_data_can_be_read() {
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
