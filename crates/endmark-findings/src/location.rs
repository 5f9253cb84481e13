//! Where a finding is: files and lines, in the spellings that models use. (AR-1, AR-5)

use std::borrow::Cow;
use std::fmt;

use super::narrow::narrow;
use super::transcript::letters;
use lines::{bare, in_brackets, in_parentheses, of_compiler, of_fragment, range, range_after_word};
use link::unlinked;
use part::{beside, says_more, words_of};
pub(super) use path::names_file;
use path::{Which, path_in};

mod lines;
mod link;
mod part;
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
        (!text.is_empty()).then(|| Self { text: text.to_owned(), places: places_in_any_width(text) })
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

/// The places; full-width signs are read as others are where no lines are named without that.
fn places_in_any_width(text: &str) -> Vec<Place> {
    let as_written = places(text);
    match narrow(text) {
        Cow::Owned(narrow) if as_written.iter().all(|place| place.lines.is_none()) => places(&narrow),
        _ => as_written,
    }
}

fn places(text: &str) -> Vec<Place> {
    let text = unlinked(text);
    let mut found = Places::default();
    for part in items(&text).into_iter().flat_map(split_further).take(MOST_PLACES) {
        found.part(part);
    }
    found.named
}

/// What the parts of a location name, one after the other.
#[derive(Default)]
struct Places {
    named: Vec<Place>,
    /// Words before the first file are of that one: `login, in src/a.rs`.
    words_before: String,
    /// So are lines: `lines 3-9, src/a.rs`.
    lines_before: Vec<LineRange>,
}

impl Places {
    fn part(&mut self, part: &str) {
        let part =
            part.trim_matches(|character: char| character.is_whitespace() || "`*\"'".contains(character));
        match named(part) {
            // Lines alone, or of a function, are of the file before them.
            Named::Lines(lines) => match self.named.last_mut() {
                Some(last) if last.lines.is_none() => (last.lines, last.part) = (Some(lines), None),
                Some(last) => {
                    let file = last.file.clone();
                    self.named.push(Place::of_file(file, Some(lines)));
                }
                None => self.lines_before.push(lines),
            },
            Named::Place(place, behind) => {
                self.push(place);
                if let Some(next) = next_place(behind) {
                    self.part(next);
                }
            }
            // `etc.`, `function get`
            Named::Words => match self.named.last_mut() {
                Some(last) => last.add_words(&words_of(part)),
                None => self.words_before = words_of(part),
            },
        }
    }

    fn push(&mut self, mut place: Place) {
        let before = std::mem::take(&mut self.lines_before);
        self.named.extend(before.iter().map(|lines| Place::of_file(place.file.clone(), Some(*lines))));
        if !before.is_empty() && place.lines.is_none() {
            return;
        }
        let own = place.part.take().unwrap_or_default();
        place.add_words(&std::mem::take(&mut self.words_before));
        place.add_words(&own);
        self.named.push(place);
    }
}

/// What stands behind a place with lines, if it begins with a file that has lines as well: `src/a.rs:3 src/b.rs:9`.
fn next_place(behind: &str) -> Option<&str> {
    let next = behind.trim_start_matches(|sign: char| sign.is_whitespace() || "`)]/|+".contains(sign));
    let Named::Place(place, _) = named(next) else { return None };
    let is_apart = behind[..behind.len() - next.len()].contains(char::is_whitespace);
    let begins = next.trim_start_matches('`').trim_start_matches("./").replace('\\', "/");
    (is_apart && place.lines.is_some() && begins.starts_with(&place.file)).then_some(next)
}

/// What stands between two places in one item.
const BETWEEN: [&str; 5] = [" and ", " & ", "→", "->", "=>"];

fn split_further(item: &str) -> Vec<&str> {
    BETWEEN
        .iter()
        .fold(vec![item], |parts, between| parts.into_iter().flat_map(|part| part.split(between)).collect())
}

/// What stands between commas; those in `a.rs(3,9)` are between a line and its column.
fn items(text: &str) -> Vec<&str> {
    let mut items = Vec::new();
    let (mut begins, mut closes) = (0, 0);
    for (at, sign) in text.char_indices() {
        if sign == '('
            && let Some(inner) = in_parentheses(&text[at + 1..])
        {
            closes = at + 1 + inner.len();
        } else if at >= closes && [',', ';', '、', '，', '；'].contains(&sign) {
            items.push(&text[begins..at]);
            begins = at + sign.len_utf8();
        }
    }
    items.push(&text[begins..]);
    items
}

/// What a part of a location names.
enum Named<'a> {
    /// A place, and what stands behind its lines.
    Place(Place, &'a str),
    Lines(LineRange),
    Words,
}

fn named(part: &str) -> Named<'_> {
    if let Some(lines) = bare(part.trim_start_matches([':', '#'])) {
        return Named::Lines(lines);
    }
    let host = host(part);
    // Lines before which no file is named.
    let mut alone = range_after_word(part);
    for (at, sign) in part.char_indices().filter(|(at, _)| *at >= host) {
        let rest = &part[at + sign.len_utf8()..];
        let lines = match sign {
            ':' | '#' | '：' => range(rest.trim_start())
                .or_else(|| of_fragment(rest))
                .or_else(|| in_brackets(rest.trim_start().strip_prefix('[')?)),
            '(' if part[..at].contains(['.', '/', '\\']) => {
                of_compiler(rest).or_else(|| range_after_word(rest))
            }
            '(' => range_after_word(rest),
            '[' => range_after_word(rest).or_else(|| in_brackets(rest)),
            _ if sign.is_whitespace() => range_after_word(rest.trim_start_matches(['(', '[', '@', ' ', '-']))
                .or_else(|| range(rest).filter(|_| rest.starts_with('~'))),
            _ => None,
        };
        let Some((lines, behind)) = lines else { continue };
        if let Some(file) = path_in(&part[..at], Which::Last) {
            return Named::Place(Place::of_file(file, Some(lines)), behind);
        }
        alone = alone.or(Some((lines, behind)));
    }
    let Some(file) = path_in(part, Which::First) else {
        return alone.map_or(Named::Words, |(lines, _)| Named::Lines(lines));
    };
    // `lines 3-9 of src/a.rs`
    if let Some((lines, behind)) = alone.or_else(|| range(part))
        && says_nothing_before(behind, &file)
    {
        return Named::Place(Place::of_file(file, Some(lines)), "");
    }
    let mut place = Place::of_file(file, None);
    place.add_words(&words_of(&beside(part, &place.file)));
    Named::Place(place, "")
}

/// Whether the file is the next that a text names.
fn says_nothing_before(text: &str, file: &str) -> bool {
    let text = text.replace('\\', "/");
    text.starts_with(char::is_whitespace)
        && text.split_once(file).is_some_and(|(before, _)| words_of(before).is_empty())
}

/// Where the path of a URL begins, in bytes; 0 where there is none. What stands before it has no lines, but a port.
fn host(part: &str) -> usize {
    let Some((scheme, behind)) = part.split_once("://") else { return 0 };
    let is_scheme = scheme.trim_start_matches(['<', '`']).chars().all(|sign| sign.is_ascii_alphabetic());
    let host = behind.find('/').unwrap_or(behind.len());
    if is_scheme { part.len() - behind.len() + host } else { 0 }
}

#[cfg(test)]
mod tests;
