//! Patterns that match a phrase in many wordings: words, alternatives, optional parts and gaps.
//!
//! A pattern is a list of words separated by spaces. `a|b` matches either word, and `as_before` is a sequence of
//! words inside an alternative. `continu*` matches any word with this prefix, `[the]` is optional, `~3` matches at
//! most three words, and `<session>` is a named list.

use std::collections::BTreeMap;
use std::ops::Range;

use super::words::{begins_with, is_same, is_unspaced};

/// The named lists of words, by name.
pub(crate) type WordLists = BTreeMap<String, String>;

/// A parsed pattern.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    elements: Vec<Element>,
    first_letters: FirstLetters,
}

/// The ASCII letters with which a match can begin, as bits. Most words of a text begin with other letters.
#[derive(Debug, Clone, Copy)]
struct FirstLetters(u32);

impl FirstLetters {
    fn new(elements: &[Element]) -> Self {
        let mut letters = 0;
        for element in elements {
            let Element::OneOf { alternatives, is_optional } = element else { return Self(u32::MAX) };
            for token in alternatives.iter().filter_map(|tokens| tokens.first()) {
                letters |= token.word.bytes().next().map_or(u32::MAX, letter_bit);
            }
            if !is_optional {
                return Self(letters);
            }
        }
        // Every pattern contains at least one word.
        Self(letters)
    }

    /// Returns whether a match may begin with this word. A word that does not begin with an ASCII letter is
    /// always accepted.
    fn may_match(self, word: &str) -> bool {
        word.bytes()
            .next()
            .is_none_or(|first| !first.is_ascii_alphabetic() || self.0 & letter_bit(first) != 0)
    }
}

/// Returns the bit of a letter, or 0 for any other byte.
fn letter_bit(letter: u8) -> u32 {
    let place = letter.to_ascii_lowercase().wrapping_sub(b'a');
    if place < 26 { 1 << place } else { 0 }
}

#[derive(Debug, Clone)]
enum Element {
    /// One of several sequences of words.
    OneOf { alternatives: Vec<Vec<Token>>, is_optional: bool },
    /// At most this many arbitrary words.
    Gap(usize),
}

#[derive(Debug, Clone)]
struct Token {
    /// The word or the prefix, in lower case.
    word: String,
    /// Whether the token matches any word with this prefix.
    is_prefix: bool,
}

impl Token {
    fn matches(&self, word: &str) -> bool {
        if self.is_prefix { begins_with(word, &self.word) } else { is_same(word, &self.word) }
    }
}

impl Pattern {
    /// Parses a pattern.
    ///
    /// # Errors
    ///
    /// Returns a description of the syntax error.
    pub(crate) fn parse(source: &str, classes: &WordLists) -> Result<Self, String> {
        let elements = source.split_whitespace().map(|part| parse_element(part, classes));
        let elements = elements.collect::<Result<Vec<_>, _>>()?;
        let pattern = Self::new(elements);
        if pattern.anchors().is_empty() { Err(format!("`{source}` demands no word")) } else { Ok(pattern) }
    }

    /// Creates a pattern that matches exactly the words of a phrase. Returns `None` if the phrase has no
    /// words.
    pub(crate) fn literal(phrase: &str) -> Option<Self> {
        let word = |range: Range<usize>| Token { word: phrase[range].to_lowercase(), is_prefix: false };
        let tokens: Vec<Token> = super::words::words(phrase).into_iter().map(word).collect();
        let one_of = |token| Element::OneOf { alternatives: vec![vec![token]], is_optional: false };
        (!tokens.is_empty()).then(|| Self::new(tokens.into_iter().map(one_of).collect()))
    }

    fn new(elements: Vec<Element>) -> Self {
        Self { first_letters: FirstLetters::new(&elements), elements }
    }

    /// Returns strings, at least one of which occurs in every matching text. They belong to the element with
    /// the longest strings, because these are the rarest.
    pub(crate) fn anchors(&self) -> Vec<String> {
        let of_element = |element: &Element| match element {
            Element::OneOf { alternatives, is_optional: false } => {
                alternatives.iter().map(|tokens| longest_run(tokens)).collect::<Vec<_>>()
            }
            _ => Vec::new(),
        };
        let rarity = |anchors: &Vec<String>| anchors.iter().map(String::len).min().unwrap_or(0);
        self.elements.iter().map(of_element).max_by_key(rarity).unwrap_or_default()
    }

    /// Returns the length in words of the longest match that begins at the first word.
    pub(crate) fn match_at(&self, text: &str, words: &[Range<usize>]) -> Option<usize> {
        if !words.first().is_none_or(|first| self.first_letters.may_match(&text[first.clone()])) {
            return None;
        }
        longest(&self.elements, text, words)
    }
}

fn longest(elements: &[Element], text: &str, words: &[Range<usize>]) -> Option<usize> {
    let Some((element, rest)) = elements.split_first() else { return Some(0) };
    let after = |count: usize| longest(rest, text, words.get(count..)?).map(|more| count + more);
    match element {
        Element::Gap(most) => (0..=(*most).min(words.len())).filter_map(after).max(),
        Element::OneOf { alternatives, is_optional } => {
            let fits = |tokens: &&Vec<Token>| {
                tokens.len() <= words.len()
                    && tokens.iter().zip(words).all(|(token, word)| token.matches(&text[word.clone()]))
            };
            let taken = alternatives.iter().filter(fits).filter_map(|tokens| after(tokens.len())).max();
            if *is_optional { taken.max(after(0)) } else { taken }
        }
    }
}

/// Returns the longest string that occurs in every match of these tokens. Consecutive characters of a script
/// without spaces form one string.
fn longest_run(tokens: &[Token]) -> String {
    let mut runs: Vec<String> = Vec::new();
    let mut is_open = false;
    for token in tokens {
        let continues = token.word.chars().all(is_unspaced);
        match runs.last_mut().filter(|_| is_open && continues) {
            Some(run) => run.push_str(&token.word),
            None => runs.push(token.word.clone()),
        }
        is_open = continues;
    }
    runs.into_iter().max_by_key(String::len).unwrap_or_default()
}

fn parse_element(part: &str, classes: &WordLists) -> Result<Element, String> {
    if let Some(count) = part.strip_prefix('~') {
        return count.parse().map(Element::Gap).map_err(|_| format!("`{part}` is not a gap"));
    }
    let (inner, is_optional) = match part.strip_prefix('[') {
        Some(inner) => (inner.strip_suffix(']').ok_or_else(|| format!("`{part}` is not closed"))?, true),
        None => (part, false),
    };
    let mut alternatives = Vec::new();
    for choice in inner.split('|') {
        match choice.strip_prefix('<').and_then(|name| name.strip_suffix('>')) {
            None => alternatives.push(tokens(choice)),
            Some(name) => {
                let list = classes.get(name).ok_or_else(|| format!("there is no list `{name}`"))?;
                alternatives.extend(list.split('|').map(tokens));
            }
        }
    }
    if alternatives.iter().any(Vec::is_empty) {
        return Err(format!("`{part}` has an alternative without a word"));
    }
    Ok(Element::OneOf { alternatives, is_optional })
}

fn tokens(choice: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    for piece in choice.split('_') {
        let (piece, is_prefix) = match piece.strip_suffix('*') {
            Some(piece) => (piece, true),
            None => (piece, false),
        };
        let ranges = super::words::words(piece);
        let last = ranges.len().saturating_sub(1);
        tokens.extend(ranges.into_iter().enumerate().map(|(index, range)| Token {
            word: piece[range].to_lowercase(),
            is_prefix: is_prefix && index == last,
        }));
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::super::words::words;
    use super::*;

    fn matches(pattern: &str, text: &str) -> Option<usize> {
        let classes = WordLists::from([("session".to_owned(), "session|turn".to_owned())]);
        Pattern::parse(pattern, &classes).unwrap().match_at(text, &words(text))
    }

    #[test]
    fn the_longest_match_wins() {
        assert_eq!(
            matches("continu* [in] the|my next <session>", "Continuing in the next session."),
            Some(5)
        );
        assert_eq!(matches("continu* [in] the|my next <session>", "continue the next turn of it"), Some(4));
        assert_eq!(matches("continu* [in] the|my next <session>", "continue our next turn"), None);
        assert_eq!(matches("rest ~2 same|the_same", "rest of it the same"), Some(5));
        assert_eq!(matches("rest ~2 same", "rest of it is not same"), None);
        assert_eq!(matches("未完待续", "未完待续。"), Some(4));
    }

    #[test]
    fn the_rarest_word_is_the_anchor() {
        let anchors = |pattern: &str| Pattern::parse(pattern, &WordLists::new()).unwrap().anchors();
        assert_eq!(anchors("to be continued|continuing [tomorrowish]"), ["continued", "continuing"]);
        assert_eq!(anchors("其余 ~3 保持不变"), ["保持不变"]);
        assert_eq!(anchors("as_before_long|nowadays"), ["before", "nowadays"]);
    }

    #[test]
    fn an_invalid_pattern_is_refused_with_the_reason() {
        for wrong in ["~x", "[a", "<none>", "a||b", "~3", "[a] ~2"] {
            assert!(Pattern::parse(wrong, &WordLists::new()).is_err(), "{wrong}");
        }
    }
}
