//! Where a finding is: files and lines, in the spellings that models use. (AR-1, AR-5)

use std::fmt;

use super::transcript::letters;
use lines::{bare, lines_in};
use path::{file_in, says_more, words_of};
pub(super) use path::{is_url, names_file};

mod lines;
mod path;

/// Where a finding is, as it was written, and the places that this names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    text: String,
    places: Vec<Place>,
}

/// A file, and perhaps lines of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// With `/` between folders, and without `./` before them.
    pub file: String,
    /// Which lines; none means that none is named.
    pub lines: Option<LineRange>,
    /// What of the file is named in words where no lines are: `login` of `src/a.rs (login)`.
    pub part: Option<String>,
}

/// Lines of a file, from 1, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineRange {
    /// The first one.
    pub start: u32,
    /// The last one, never before the first.
    pub end: u32,
}

/// More places in one location are not looked at.
const MOST_PLACES: usize = 64;

impl Location {
    /// Reads `src/db/user.rs:41-58`, `user.rs#L41-L58`, `user.rs (lines 41 to 58)`, several with commas between; none if
    /// there is no text.
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
        (!text.is_empty()).then(|| Self { text: text.to_owned(), places: places(text) })
    }

    /// Whether it says which lines, at least of one file.
    pub(super) fn has_lines(&self) -> bool {
        self.places.iter().any(|place| place.lines.is_some())
    }

    /// The location that names these places.
    pub fn of_places(places: Vec<Place>) -> Option<Self> {
        let text = places.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        (!text.is_empty()).then_some(Self { text, places })
    }

    /// Whether it has words that its places do not: the route in `POST /login (a.rs:10)`.
    pub(super) fn says_more_than_places(&self) -> bool {
        let named = |place: &'_ Place| [Some(place.file.clone()), place.part.clone()];
        let mut named: Vec<String> = self.places.iter().flat_map(named).flatten().collect();
        // `src/a.rs` before the `a` of `a.rs`.
        named.sort_unstable_by_key(|name| std::cmp::Reverse(name.len()));
        says_more(&self.text, named.iter().map(String::as_str))
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What it names, in order; empty if no file can be recognised.
    pub fn places(&self) -> &[Place] {
        &self.places
    }
}

impl fmt::Display for Location {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl LineRange {
    /// These lines, whichever is named first; none if one is 0.
    pub fn new(one: u32, other: u32) -> Option<Self> {
        (one > 0 && other > 0).then(|| Self { start: one.min(other), end: one.max(other) })
    }

    /// Both, and what is between them.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

impl Place {
    /// These lines of a file, or all of it.
    pub fn of_file(file: String, lines: Option<LineRange>) -> Self {
        Self { file, lines, part: None }
    }

    /// Whether they have a line in common; without lines, whether the same of the same file is named.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        self.file == other.file
            && match (self.lines, other.lines) {
                (None, None) => self.part_in_letters() == other.part_in_letters(),
                (Some(one), Some(other)) => one.start <= other.end && other.start <= one.end,
                (None, Some(_)) | (Some(_), None) => false,
            }
    }

    /// Whether the other is this with more said of it: lines, or more words.
    pub(super) fn may_begin(&self, other: &Self) -> bool {
        let begun = self.part_in_letters().unwrap_or_default();
        self.file == other.file
            && self.lines.is_none()
            && other.part_in_letters().unwrap_or_default().starts_with(&begun)
    }

    /// The part without what only sets its words apart.
    pub(super) fn part_in_letters(&self) -> Option<String> {
        self.part.as_deref().map(letters)
    }

    /// Adds words of its location that name a part of it.
    fn add_words(&mut self, words: &str) {
        if self.lines.is_some() || words.is_empty() {
            return;
        }
        match &mut self.part {
            None => self.part = Some(words.to_owned()),
            Some(part) => {
                part.push_str(", ");
                part.push_str(words);
            }
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.lines, &self.part) {
            (None, None) => formatter.write_str(&self.file),
            (None, Some(part)) => write!(formatter, "{} ({part})", self.file),
            (Some(LineRange { start, end }), _) if start == end => {
                write!(formatter, "{}:{start}", self.file)
            }
            (Some(LineRange { start, end }), _) => write!(formatter, "{}:{start}-{end}", self.file),
        }
    }
}

/// What the items of a location name, one after the other.
fn places(text: &str) -> Vec<Place> {
    // `[src/a.rs](src/a.rs#L10)` is a file, and what is said of it.
    let text = text.replace("](", " (");
    let mut places: Vec<Place> = Vec::new();
    let (mut words_before, mut lines_before) = (String::new(), None);
    for item in items(&text).into_iter().take(MOST_PLACES) {
        if let Some(lines) = bare(item) {
            // Lines alone are of the file before them, or of the first one.
            match places.last_mut() {
                Some(last) if last.lines.is_none() => (last.lines, last.part) = (Some(lines), None),
                Some(last) => {
                    let file = last.file.clone();
                    places.push(Place::of_file(file, Some(lines)));
                }
                None => lines_before = Some(lines),
            }
            continue;
        }
        let Some((file, before, behind)) = file_in(item) else {
            // `etc.`, `function get`
            match places.last_mut() {
                Some(last) if last.lines.is_none() && lines_in(item).is_some() => last.lines = lines_in(item),
                Some(last) => last.add_words(&words_of(item)),
                None => words_before = words_of(item),
            }
            continue;
        };
        let lines = lines_in(behind).or_else(|| lines_in(before)).or_else(|| lines_before.take());
        let mut place = Place::of_file(file, lines);
        for words in [std::mem::take(&mut words_before), words_of(&format!("{before} {behind}"))] {
            place.add_words(&words);
        }
        places.push(place);
    }
    places
}

/// What stands between commas, and between arrows; a comma in `a.rs(3,9)` is between a line and its column.
fn items(text: &str) -> Vec<&str> {
    let mut items = Vec::new();
    let (mut begins, mut closes) = (0, 0);
    for (at, _) in text.char_indices() {
        let rest = &text[at..];
        if let Some(inner) =
            rest.strip_prefix('(').filter(|inner| inner.starts_with(|sign: char| sign.is_ascii_digit()))
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
