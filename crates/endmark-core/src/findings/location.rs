//! Where a finding is: files and lines, in the spellings that models use. (AR-1, AR-5)

use std::borrow::Cow;
use std::fmt;

use super::narrow::narrow;
use super::transcript::letters;
use part::{beside, says_more, words_of};
pub(super) use path::names_file;
use path::{Which, path_in};

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
    /// use endmark_core::findings::Location;
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
    let mut places: Vec<Place> = Vec::new();
    // Words before the first file are of that one: `login, in src/a.rs`.
    let mut words_before = String::new();
    for part in items(text).into_iter().flat_map(split_further).take(MOST_PLACES) {
        let part =
            part.trim_matches(|character: char| character.is_whitespace() || "`*\"'".contains(character));
        match named(part) {
            // Lines alone, or of a function, are of the file before them.
            Named::Lines(lines) => match places.last_mut() {
                Some(last) if last.lines.is_none() => (last.lines, last.part) = (Some(lines), None),
                Some(last) => {
                    let file = last.file.clone();
                    places.push(Place::of_file(file, Some(lines)));
                }
                None => {}
            },
            Named::Place(mut place) => {
                let own = place.part.take().unwrap_or_default();
                place.add_words(&std::mem::take(&mut words_before));
                place.add_words(&own);
                places.push(place);
            }
            // `etc.`, `function get`
            Named::Words => match places.last_mut() {
                Some(last) => last.add_words(&words_of(part)),
                None => words_before = words_of(part),
            },
        }
    }
    places
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

/// The numbers, and what is between them, that stand before a parenthesis closes.
fn in_parentheses(rest: &str) -> Option<&str> {
    let (inner, _) = rest.split_once(')')?;
    let is_of_numbers = |sign: char| sign.is_ascii_digit() || ",-–: ".contains(sign);
    (inner.starts_with(|sign: char| sign.is_ascii_digit()) && inner.chars().all(is_of_numbers))
        .then_some(inner)
}

/// Lines as compilers write them: `3`, `3-9`, `3,9` (line and column), `3,9,4,1` (from there to there).
fn compiler_lines(rest: &str) -> Option<LineRange> {
    let numbers: Vec<&str> = in_parentheses(rest)?.split(',').map(str::trim).collect();
    let first = range(numbers.first()?)?;
    match numbers.as_slice() {
        [_] | [_, _] => Some(first),
        [_, _, last, _] => Some(first.with(range(last)?)),
        _ => None,
    }
}

/// What a part of a location names.
enum Named {
    Place(Place),
    Lines(LineRange),
    Words,
}

fn named(part: &str) -> Named {
    if let Some(lines) = bare_lines(part.trim_start_matches([':', '#'])) {
        return Named::Lines(lines);
    }
    let part = unlinked(part);
    let host = host(part);
    let mut of_words = None;
    for (at, sign) in part.char_indices().filter(|(at, _)| *at >= host) {
        let rest = &part[at + sign.len_utf8()..];
        let lines = match sign {
            ':' | '#' | '：' => range(rest.trim_start()).or_else(|| lines_of_fragment(rest)),
            '(' if part[..at].contains(['.', '/', '\\']) => {
                compiler_lines(rest).or_else(|| range_after_word(rest))
            }
            '(' | '[' => range_after_word(rest),
            _ if sign.is_whitespace() => range_after_word(rest.trim_start_matches(['(', '[', '@', ' ', '-']))
                .or_else(|| range(rest).filter(|_| rest.starts_with('~'))),
            _ => None,
        };
        let Some(lines) = lines else { continue };
        if let Some(file) = path_in(&part[..at], Which::Last) {
            return Named::Place(Place::of_file(file, Some(lines)));
        }
        of_words = of_words.or(Some(lines));
    }
    match path_in(part, Which::First) {
        Some(file) => {
            let mut place = Place::of_file(file, None);
            place.add_words(&words_of(&beside(part, &place.file)));
            Named::Place(place)
        }
        None => of_words.map_or(Named::Words, Named::Lines),
    }
}

/// Where the path of a URL begins, in bytes; 0 where there is none. What stands before it has no lines, but a port.
fn host(part: &str) -> usize {
    let Some((scheme, behind)) = part.split_once("://") else { return 0 };
    let is_scheme = scheme.trim_start_matches(['<', '`']).chars().all(|sign| sign.is_ascii_alphabetic());
    let host = behind.find('/').unwrap_or(behind.len());
    if is_scheme { part.len() - behind.len() + host } else { 0 }
}

/// `lines-3:9`, as some hosts of code write it behind the `#`.
fn lines_of_fragment(rest: &str) -> Option<LineRange> {
    let lines = rest.strip_prefix("lines-")?;
    let (start, end) = lines.split_once(':').unwrap_or((lines, lines));
    Some(range(start)?.with(range(end)?))
}

/// The text of a Markdown link, in place of the link.
fn unlinked(part: &str) -> &str {
    let inner = part.strip_prefix('[').and_then(|rest| rest.split_once("](")).map(|(text, _)| text);
    inner.unwrap_or(part)
}

/// `lines 41-58`, `L41` or `41-58`, and nothing else.
fn bare_lines(part: &str) -> Option<LineRange> {
    let (lines, rest) = split_range(without_word(part).unwrap_or(part))?;
    rest.trim_matches([')', ']', ' ', '.']).is_empty().then_some(lines)
}

fn range_after_word(rest: &str) -> Option<LineRange> {
    range(without_word(rest)?)
}

/// What stands behind the word for lines.
fn without_word(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let letters = text.find(|character: char| !character.is_alphabetic()).unwrap_or(text.len());
    let (word, rest) = text.split_at(letters);
    let is_lines = ["line", "lines", "l", "ln", "ll"].iter().any(|known| word.eq_ignore_ascii_case(known));
    is_lines.then(|| without_about(rest.trim_start_matches(['.', ':', ' ', '#', '：'])))
}

/// What stands behind a word that says that the lines are about right.
fn without_about(text: &str) -> &str {
    let behind =
        |word: &&str| text.get(word.len()..).filter(|_| text[..word.len()].eq_ignore_ascii_case(word));
    let words = ["approximately ", "approx. ", "approx ", "about ", "around ", "circa ", "ca. ", "near "];
    words
        .iter()
        .find_map(|word| text.is_char_boundary(word.len()).then(|| behind(word))?)
        .unwrap_or(text)
        .trim_start()
}

fn range(text: &str) -> Option<LineRange> {
    split_range(text).map(|(lines, _)| lines)
}

/// `41`, `L41-L58`, `41:7` (line and column), `41–58`, `41..58`, `41 to 58`; and what stands behind it.
fn split_range(text: &str) -> Option<(LineRange, &str)> {
    let (start, rest) = number(text)?;
    let behind = rest.trim_start();
    let dashes = ["..=", "..", "-", "–", "—", "~", "to ", "bis "];
    if let Some(more) = dashes.iter().find_map(|dash| behind.strip_prefix(dash))
        && let Some((end, rest)) = number(more.trim_start())
    {
        return Some((LineRange::new(start, end)?, rest));
    }
    let rest = match rest.strip_prefix(':').and_then(number) {
        Some((_, rest)) => rest,
        None => rest,
    };
    Some((LineRange::new(start, start)?, rest))
}

/// A number that may have the `L` of a link to a line, or a sign that it is about right.
fn number(text: &str) -> Option<(u32, &str)> {
    let text = text.trim_start_matches(['~', '≈', '∼']);
    let text = text.strip_prefix(['L', 'l']).unwrap_or(text);
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let rest = &text[end..];
    // `L12C5` is a column of it.
    let column =
        rest.strip_prefix(['C', 'c']).filter(|behind| behind.starts_with(|sign: char| sign.is_ascii_digit()));
    let rest = column.map_or(rest, |column| column.trim_start_matches(|sign: char| sign.is_ascii_digit()));
    // `12abc` is no line.
    if rest.starts_with(|character: char| character.is_alphanumeric()) {
        return None;
    }
    Some((text[..end].parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_recognised_in_the_spellings_of_models() {
        for (text, expected) in [
            ("src/db/user.rs:41-58", "src/db/user.rs:41-58"),
            ("`src/db/user.rs:41`", "src/db/user.rs:41"),
            ("./src/a.rs:41:7", "src/a.rs:41"),
            ("src/a.rs#L41-L58", "src/a.rs:41-58"),
            ("src/a.rs#L41C3-L58C1", "src/a.rs:41-58"),
            ("src/a.rs(3,9)", "src/a.rs:3"),
            ("src/a.rs(3,9): error, src/b.rs(7)", "src/a.rs:3 src/b.rs:7"),
            ("src/a.rs(3,9,4,1) and b.c (5-6)", "src/a.rs:3-4 b.c:5-6"),
            ("find(3,9)", ""),
            ("ｓｒｃ／a.rs：４１－５８", "src/a.rs:41-58"),
            ("src/a.rs (lines 41-58)", "src/a.rs:41-58"),
            ("src/a.rs (line 41)", "src/a.rs:41"),
            ("src/a.rs, lines 41–58", "src/a.rs:41-58"),
            ("src/a.rs line 41 to 58", "src/a.rs:41-58"),
            ("src/a.rs:L41..58", "src/a.rs:41-58"),
            ("src/a.rs：41", "src/a.rs:41"),
            ("src\\web\\a.cs:9", "src/web/a.cs:9"),
            ("C:\\src\\a.c:9-3", "C:/src/a.c:3-9"),
            ("src/a.rs:1, src/b.rs:2; src/c.rs", "src/a.rs:1 src/b.rs:2 src/c.rs"),
            ("src/a.rs:1, 5-6 and 9", "src/a.rs:1 src/a.rs:5-6 src/a.rs:9"),
            ("[src/a.rs:3](https://example.org/a#L3)", "src/a.rs:3"),
            (
                "https://github.com/o/r/blob/main/src/a.rs#L3-L9",
                "https://github.com/o/r/blob/main/src/a.rs:3-9",
            ),
            ("https://git.example:8443/o/r/src/a.rs", "https://git.example:8443/o/r/src/a.rs"),
            ("https://git.example:8443/o/a.rs?plain=1#L3", "https://git.example:8443/o/a.rs?plain=1:3"),
            ("https://bitbucket.org/o/r/src/1/a.rs#lines-3:9", "https://bitbucket.org/o/r/src/1/a.rs:3-9"),
            ("src/a.rs in `find_user`", "src/a.rs (find_user)"),
            ("src/a.rs (login)", "src/a.rs (login)"),
            ("src/a.rs, login()", "src/a.rs (login)"),
            ("src/a.rs::login", "src/a.rs (login)"),
            ("fn login in src\\a.rs", "src/a.rs (login)"),
            ("`login`, in `./src/a.rs`", "src/a.rs (login)"),
            ("src/a.rs (login, delete_user)", "src/a.rs (login, delete_user)"),
            ("src/a.rs — class `Users`, method `get`; src/b.rs", "src/a.rs (Users, get) src/b.rs"),
            ("src/a.rs:~12", "src/a.rs:12"),
            ("src/a.rs, line ~12", "src/a.rs:12"),
            ("src/a.rs, around line 12", "src/a.rs:12"),
            ("src/a.rs (lines approx. 12-20)", "src/a.rs:12-20"),
            ("src/a.rs ~L400", "src/a.rs:400"),
            ("my files/a.rs:3", "my files/a.rs:3"),
            ("src/a.rs:0", "src/a.rs:0"),
            ("the login form", ""),
            ("src/a.py, function get, lines 41-58", "src/a.py:41-58"),
            ("get.go, ServeHTTP:30-44", "get.go:30-44"),
            ("a.html:12, etc.", "a.html:12"),
            ("x.ts:9 and :22", "x.ts:9 x.ts:22"),
            ("x.ts:9, and others", "x.ts:9"),
            ("x.rs, `handler`", "x.rs (handler)"),
            ("File \"src/a.py\", line 12, in run", "src/a.py:12"),
            ("`find_user` in `src/a.rs:41`", "src/a.rs:41"),
            ("find_user (src/a.rs:41-58)", "src/a.rs:41-58"),
            ("com.shop.X.login(X.java:120)", "X.java:120"),
            ("a.ts:9 → b.ts:3", "a.ts:9 b.ts:3"),
            ("src/My Project/Login.cs", "src/My Project/Login.cs"),
            ("src/My Project/Login.cs:40", "src/My Project/Login.cs:40"),
            ("app/(auth)/page.tsx:12", "app/(auth)/page.tsx:12"),
            ("Dockerfile:3", "Dockerfile:3"),
            ("Entire application", ""),
            ("src/v2/a.rs", "src/v2/a.rs"),
        ] {
            let location = Location::read(text).unwrap();
            let found: Vec<String> = location.places().iter().map(ToString::to_string).collect();
            assert_eq!(found.join(" "), expected, "{text}");
        }
        assert_eq!(Location::read(" `` "), None);
    }

    #[test]
    fn words_beside_lines_are_told_from_lines() {
        for (text, expected) in [
            ("src/a.rs:10 (login)", true),
            ("POST /login (src/a.rs:10)", true),
            ("the login form", true),
            ("src/a.rs:10:login", true),
            ("src/a.py, function get, lines 41-58", true),
            ("src/a.rs:10 (login), src/b.rs", true),
            ("src/a.rs:10", false),
            ("./src\\a.rs (lines 10 to 12) and `b.rs#L3-L9`", false),
            ("around line ~12 of src/a.rs, 40", false),
            ("src/a.rs(3,9)", false),
            // Its place has them.
            ("src/a.rs, fn login()", false),
        ] {
            assert_eq!(Location::read(text).unwrap().says_more_than_places(), expected, "{text}");
        }
    }
}
