//! Parses locations of findings: files and lines, in the spellings that models use. (AR-1, AR-5)

use std::fmt;

use super::transcript::alphanumeric_key;
use lines::{find_lines, parse_lines};
use path::{find_file, has_other_words};
pub(super) use path::{is_url, names_file};

mod lines;
mod path;

/// A location as written, and the places that it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    text: String,
    places: Vec<FileLines>,
}

/// A file, optionally with lines.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileLines {
    /// The path, with `/` between folders and without a leading `./`.
    pub file: String,
    /// The lines, or `None` if the location names none.
    pub lines: Option<LineRange>,
}

/// A range of lines, from 1, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineRange {
    /// The first line.
    pub start: u32,
    /// The last line, never before the first.
    pub end: u32,
}

/// The maximum number of places in one location. Further ones are ignored.
const MAX_PLACES_PER_LOCATION: usize = 64;

impl Location {
    /// Parses `src/db/user.rs:41-58`, `user.rs#L41-L58`, `user.rs (lines 41 to 58)`, or several separated by commas.
    /// Returns `None` for an empty text.
    ///
    /// ```
    /// use endmark_findings::Location;
    ///
    /// let location = Location::read("`./src/db.rs`, lines 41–58").unwrap();
    /// assert_eq!(location.places()[0].to_string(), "src/db.rs:41-58");
    /// ```
    pub fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text
            .strip_prefix('`')
            .and_then(|inner| inner.strip_suffix('`'))
            .filter(|inner| !inner.contains('`'))
            .unwrap_or(text)
            .trim();
        (!text.is_empty()).then(|| Self { text: text.to_owned(), places: parse_places(text) })
    }

    /// Whether the location has line numbers for at least one file.
    pub(super) fn has_lines(&self) -> bool {
        self.places.iter().any(|place| place.lines.is_some())
    }

    /// Creates a location from places. Returns `None` if there are no places.
    pub fn from_places(places: Vec<FileLines>) -> Option<Self> {
        let text = places.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        (!text.is_empty()).then_some(Self { text, places })
    }

    /// Whether the location has words besides its places, such as the route in `POST /login (a.rs:10)`.
    pub(super) fn has_other_words(&self) -> bool {
        let mut named: Vec<&str> = self.places.iter().map(|place| place.file.as_str()).collect();
        // Remove `src/a.rs` before the `a` of `a.rs`.
        named.sort_unstable_by_key(|name| std::cmp::Reverse(name.len()));
        has_other_words(&self.text, named.into_iter())
    }

    /// Whether both locations share a line of a file. If neither has line numbers, their words must be equal.
    pub(super) fn is_same_place(&self, other: &Self) -> bool {
        let mut pairs = self.places.iter().flat_map(|one| other.places.iter().map(move |other| (one, other)));
        let has_same_words = || {
            !self.has_lines()
                && !other.has_lines()
                && self.alphanumeric_key().is_some_and(|words| other.alphanumeric_key() == Some(words))
        };
        pairs.any(|(one, other)| one.overlaps(other)) || has_same_words()
    }

    /// Returns the letters and digits of the location in lower case, which identify one without line numbers.
    pub(super) fn alphanumeric_key(&self) -> Option<String> {
        Some(alphanumeric_key(&self.text)).filter(|words| !words.is_empty())
    }

    /// Returns the text as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the places in order; empty if no file is recognised.
    pub fn places(&self) -> &[FileLines] {
        &self.places
    }
}

impl fmt::Display for Location {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl LineRange {
    /// Creates a range from two lines in any order, or returns `None` if one is 0.
    pub fn new(one: u32, other: u32) -> Option<Self> {
        (one > 0 && other > 0).then(|| Self { start: one.min(other), end: one.max(other) })
    }

    /// Returns the smallest range that contains both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

impl FileLines {
    /// Whether both name a common line of the same file.
    fn overlaps(&self, other: &Self) -> bool {
        let both = self.lines.zip(other.lines).filter(|_| self.file == other.file);
        both.is_some_and(|(one, other)| one.start <= other.end && other.start <= one.end)
    }
}

impl fmt::Display for FileLines {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lines {
            None => formatter.write_str(&self.file),
            Some(LineRange { start, end }) if start == end => write!(formatter, "{}:{start}", self.file),
            Some(LineRange { start, end }) => write!(formatter, "{}:{start}-{end}", self.file),
        }
    }
}

/// Returns the places that a location names, in order.
fn parse_places(text: &str) -> Vec<FileLines> {
    // In the link `[src/a.rs](src/a.rs#L10)`, details follow the file.
    let text = text.replace("](", " (");
    let mut places: Vec<FileLines> = Vec::new();
    let mut lines_before = None;
    for item in split_items(&text).into_iter().take(MAX_PLACES_PER_LOCATION) {
        if let Some(lines) = parse_lines(item) {
            // Lines without a file belong to the file before them, or to the first one after them.
            match places.last_mut() {
                Some(last) if last.lines.is_none() => last.lines = Some(lines),
                Some(last) => {
                    let file = last.file.clone();
                    places.push(FileLines { file, lines: Some(lines) });
                }
                None => lines_before = Some(lines),
            }
        } else if let Some((file, before, tail)) = find_file(item) {
            let lines = find_lines(tail).or_else(|| find_lines(before)).or_else(|| lines_before.take());
            places.push(FileLines { file, lines });
        } else if let Some(last) = places.last_mut().filter(|last| last.lines.is_none()) {
            // `function get, lines 41-58`
            last.lines = find_lines(item);
        }
    }
    places
}

/// Splits a location at commas, semicolons, arrows and `and`. The comma in `a.rs(3,9)` does not split it.
fn split_items(text: &str) -> Vec<&str> {
    let mut items = Vec::new();
    let (mut begins, mut closes) = (0, 0);
    for (at, _) in text.char_indices() {
        let rest = &text[at..];
        if let Some(inner) =
            rest.strip_prefix('(').filter(|inner| inner.starts_with(|ch: char| ch.is_ascii_digit()))
        {
            closes = at + inner.find(')').unwrap_or(0);
        }
        let separator = [",", ";", " and ", "->", "→"].into_iter().find(|between| rest.starts_with(between));
        if let Some(separator) = separator.filter(|_| at >= closes && at >= begins) {
            items.push(&text[begins..at]);
            begins = at + separator.len();
        }
    }
    items.push(&text[begins..]);
    items
}

#[cfg(test)]
mod tests;
