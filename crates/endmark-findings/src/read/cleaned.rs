//! What a terminal or a log has put around the lines of a transcript: colours, line ends of other systems, and something
//! before every line. (AR-1, AR-3)

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memchr_iter, memchr2};

use super::checkpoint::checkpoint;
use super::interleaved::prefixes;
use super::words::{Marker, marker};
use crate::{Position, Transcript};

/// The escape sign that colours begin with.
const ESCAPE: u8 = 0x1b;

/// A longer beginning of a line, in bytes, is none that a log sets before each.
pub(super) const LONGEST_PREFIX: usize = 120;

/// A text without all that, and where each piece of it was.
pub(super) struct Cleaned<'a> {
    pub(super) text: Vec<u8>,
    original: &'a [u8],
    /// Where a piece begins, and where it was.
    pieces: Vec<(usize, usize)>,
    /// Where each line was, in bytes, and which it was.
    lines: Vec<(usize, usize)>,
}

/// A line: what is kept of it, and whether it has its end.
struct Kept {
    begins: usize,
    /// From 1.
    number: usize,
    pieces: Vec<Range<usize>>,
    is_settled: bool,
}

impl Kept {
    fn of(line: Range<usize>, number: usize, is_settled: bool) -> Self {
        Self { begins: line.start, number, pieces: std::iter::once(line).collect(), is_settled }
    }
}

/// The text without it, and several where those of several agents stand among each other; empty if there is nothing of that
/// kind. What a cut leaves of a text is cleaned as the text is.
pub(super) fn cleaned(original: &[u8]) -> Vec<Cleaned<'_>> {
    let has_signs = memchr2(ESCAPE, b'\r', original).is_some();
    let lines = has_signs.then(|| without_signs(original)).flatten();
    if let Some(mut lines) = lines {
        let several = prefixes(&lines.iter().map(|line| Cow::Owned(words(original, line))));
        if !several.is_empty() {
            return taken_apart(original, lines, &several);
        }
        if let Some(prefix) = prefix(lines.iter().map(|line| Cow::Owned(words(original, line)))) {
            prefix.strip(original, &mut lines);
        }
        return vec![Cleaned::of(original, &lines)];
    }
    let texts = || original.split(|byte| *byte == b'\n').map(String::from_utf8_lossy);
    let several = prefixes(&texts());
    if !several.is_empty() {
        return taken_apart(original, split(original, false), &several);
    }
    let Some(prefix) = prefix(texts()) else { return Vec::new() };
    let mut lines = split(original, false);
    prefix.strip(original, &mut lines);
    vec![Cleaned::of(original, &lines)]
}

/// The lines behind each of these, and those behind none, each alone.
fn taken_apart<'a>(original: &'a [u8], lines: Vec<Kept>, prefixes: &[Prefix]) -> Vec<Cleaned<'a>> {
    let mut of_each: Vec<Vec<Kept>> = Vec::new();
    of_each.resize_with(prefixes.len() + 1, Vec::new);
    for line in lines {
        let text = words(original, &line);
        let whose = prefixes.iter().position(|prefix| prefix.is_before(&text)).unwrap_or(prefixes.len());
        if let Some(of_one) = of_each.get_mut(whose) {
            of_one.push(line);
        }
    }
    for (prefix, lines) in prefixes.iter().zip(&mut of_each) {
        prefix.strip(original, lines);
    }
    of_each.iter().map(|lines| Cleaned::of(original, lines)).collect()
}

/// What is kept of a line.
fn words(text: &[u8], line: &Kept) -> String {
    line.pieces.iter().map(|piece| String::from_utf8_lossy(&text[piece.clone()])).collect()
}

impl<'a> Cleaned<'a> {
    fn of(original: &'a [u8], lines: &[Kept]) -> Self {
        let mut cleaned = Self { text: Vec::new(), original, pieces: Vec::new(), lines: Vec::new() };
        for line in lines {
            cleaned.lines.push((line.begins, line.number));
            for piece in &line.pieces {
                cleaned.pieces.push((cleaned.text.len(), piece.start));
                cleaned.text.extend(&original[piece.clone()]);
            }
            if line.is_settled {
                cleaned.text.push(b'\n');
            }
        }
        cleaned
    }

    /// What was read of it, with the places where that stands in the original.
    pub(super) fn placed(&self, mut read: Transcript) -> Transcript {
        for result in &mut read.results {
            result.begins = result.begins.map(|begins| self.place(begins));
            result.ends = self.place(result.ends);
            for finding in &mut result.findings {
                finding.position = self.place(finding.position);
            }
            if let Some(checkpoint) = &mut result.checkpoint {
                checkpoint.position = self.place(checkpoint.position);
            }
        }
        for checkpoint in &mut read.checkpoints {
            checkpoint.position = self.place(checkpoint.position);
        }
        for remark in &mut read.remarks {
            remark.position = self.place(remark.position);
        }
        read
    }

    fn place(&self, position: Position) -> Position {
        let at = self.pieces.partition_point(|(begins, _)| *begins <= position.byte);
        let byte = match at.checked_sub(1).and_then(|at| self.pieces.get(at)) {
            _ if position.byte >= self.text.len() => self.original.len(),
            Some((begins, was)) => was + (position.byte - begins),
            None => 0,
        };
        let behind = self.lines.last().map_or(1, |(_, number)| number + 1);
        let (line, number) =
            self.lines.get(position.line - 1).copied().unwrap_or((self.original.len(), behind));
        let before = self.original.get(line..byte).unwrap_or_default();
        Position { line: number, column: String::from_utf8_lossy(before).chars().count() + 1, byte }
    }
}

/// The lines of a text; where carriage returns end lines of their own, at these too.
fn split(text: &[u8], has_returns: bool) -> Vec<Kept> {
    let mut lines = Vec::new();
    let mut begins = 0;
    while begins < text.len() {
        let ends = memchr(b'\n', &text[begins..]).map_or(text.len(), |at| begins + at);
        let is_settled = ends < text.len();
        let mut inner = begins..ends;
        while inner.end > inner.start && text[inner.end - 1] == b'\r' && (is_settled || !has_returns) {
            inner.end -= 1;
        }
        let is_split = has_returns || has_marker_between_returns(&text[inner.clone()]);
        while is_split && let Some(at) = memchr(b'\r', &text[inner.clone()]) {
            let end = inner.start + at;
            lines.push(Kept::of(inner.start..end, lines.len() + 1, true));
            inner.start = end + 1;
        }
        if is_settled || inner.start < inner.end {
            lines.push(Kept::of(inner, lines.len() + 1, is_settled));
        }
        begins = ends + 1;
    }
    lines
}

/// Whether the carriage returns in a line stand between lines: one of these is a marker.
fn has_marker_between_returns(line: &[u8]) -> bool {
    memchr(b'\r', line).is_some()
        && line
            .split(|byte| *byte == b'\r')
            .any(|line| std::str::from_utf8(line).is_ok_and(|line| marker(line).is_some()))
}

/// The lines without escape signs and their sequences, and with carriage returns that end lines; none if there is
/// nothing of that kind.
fn without_signs(text: &[u8]) -> Option<Vec<Kept>> {
    let first = memchr2(b'\n', b'\r', text).filter(|at| text[*at] == b'\r');
    let behind = first.and_then(|at| text[at..].iter().find(|byte| **byte != b'\r'));
    let has_returns = behind.is_some_and(|byte| *byte != b'\n');
    let mut lines = split(text, has_returns);
    let line_feeds = memchr_iter(b'\n', text).count();
    let is_split = lines.len() > line_feeds + usize::from(!text.ends_with(b"\n"));
    let mut is_coloured = false;
    for line in &mut lines {
        let Some(whole) = line.pieces.first().cloned() else { continue };
        if memchr(ESCAPE, &text[whole.clone()]).is_some() {
            line.pieces = without_colours(text, whole);
            is_coloured = true;
        }
    }
    (is_split || is_coloured).then_some(lines)
}

/// What of a line is no escape sequence.
fn without_colours(text: &[u8], line: Range<usize>) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let mut at = line.start;
    while let Some(escape) = memchr(ESCAPE, &text[at..line.end]).map(|found| at + found) {
        pieces.push(at..escape);
        at = escape + sequence(&text[escape..line.end]);
    }
    pieces.push(at..line.end);
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// How many bytes of a text the escape sequence has that it begins with. One that is cut is all there is.
fn sequence(text: &[u8]) -> usize {
    let until = |from: usize, is_last: &dyn Fn(u8) -> bool| {
        text[from..].iter().position(|byte| is_last(*byte)).map_or(text.len(), |at| from + at + 1)
    };
    match text.get(1) {
        // Parameters, then one sign that says what is to be done.
        Some(b'[') => until(2, &|byte| !(0x20..=0x3f).contains(&byte)),
        // A title or a link, up to a bell or another escape.
        Some(b']' | b'P' | b'_' | b'^') => {
            let end = until(2, &|byte| byte == 7 || byte == ESCAPE);
            if text[end - 1] == ESCAPE { text.len().min(end + 1) } else { end }
        }
        Some(0x20..=0x2f) => text.len().min(3),
        Some(0x30..=0x7e) => 2,
        None | Some(_) => 1,
    }
}

fn drop_bytes(pieces: &mut Vec<Range<usize>>, bytes: usize) {
    let mut left = bytes;
    for piece in pieces.iter_mut() {
        let taken = left.min(piece.len());
        piece.start += taken;
        left -= taken;
    }
    pieces.retain(|piece| !piece.is_empty());
}

/// What stands before the first marker or checkpoint, and before the first line, and before the line behind it.
fn prefix<'t>(lines: impl Iterator<Item = Cow<'t, str>>) -> Option<Prefix> {
    let mut lines = lines.filter(|text| !text.trim().is_empty());
    let mut first = None;
    while let Some(text) = lines.next() {
        let is_of_result = text.contains("AGENT_RESULT");
        let word = text.find(if is_of_result { "==" } else { "CHECKPOINT" });
        let Some(word) = word else {
            first = first.or(Some(text));
            continue;
        };
        let begins = word - usize::from(text[..word].ends_with('['));
        let position = Position { line: 1, column: 1, byte: 0 };
        let found = |text: &str| {
            if is_of_result {
                marker(text) == Some(Marker::Start)
            } else {
                checkpoint(text, true, position).is_some()
            }
        };
        // What stands plainly, behind the signs of a quotation or of a list, is read as it is.
        if found(text.trim_start_matches(['>', ' '])) {
            return None;
        }
        // A word among others.
        if begins > LONGEST_PREFIX || !found(&text[begins..]) {
            first = first.or(Some(text));
            continue;
        }
        let prefix = Prefix { text: text[..begins].to_owned() };
        let is_everywhere = first.is_none_or(|first| prefix.length_in(&first).is_some());
        let mut goes_on = || lines.next().is_some_and(|text| prefix.length_in(&text).is_some());
        let is_certain = is_everywhere && prefix.is_set_apart() && (prefix.is_of_log() || goes_on());
        return is_certain.then_some(prefix);
    }
    None
}

/// What a log sets before every line: the time, the number of the line, a name, a bar.
pub(super) struct Prefix {
    text: String,
}

/// Why a line has no such prefix.
struct Unlike {
    /// It ends in the middle of one.
    is_begun: bool,
}

impl Prefix {
    /// What stands before a marker.
    pub(super) fn new(before: &str) -> Self {
        Self { text: before.to_owned() }
    }

    /// Whether a name is in it.
    pub(super) fn is_named(&self) -> bool {
        !self.is_of_log()
    }

    /// Whether a text begins with the same names, each in its place.
    pub(super) fn has_names_of(&self, line: &str) -> bool {
        let mut words = line.split_whitespace();
        let mut own = self.text.split_whitespace().peekable();
        while let Some(word) = own.next() {
            let other = words.next().unwrap_or_default();
            let is_last = own.peek().is_none() && !self.text.ends_with(char::is_whitespace);
            let is_same = other == word || is_last && other.starts_with(word);
            if !is_same && !Self::new(word).is_of_log() {
                return false;
            }
        }
        true
    }

    /// Whether it stands before a line.
    pub(super) fn is_before(&self, line: &str) -> bool {
        self.has_names_of(line) && self.length_in(line).is_some()
    }

    /// Takes it away from every line that has it.
    fn strip(&self, text: &[u8], lines: &mut [Kept]) {
        for line in lines {
            match self.matched(&words(text, line)) {
                Ok(before) => drop_bytes(&mut line.pieces, before),
                // What is cut in the middle of it has nothing behind it.
                Err(Unlike { is_begun: true }) if !line.is_settled => line.pieces.clear(),
                Err(_) => {}
            }
        }
    }

    /// Whether it cannot be the first words of a sentence, nor the place that a search has found a line at: a space or a
    /// bar is behind it, or it is a number.
    pub(super) fn is_set_apart(&self) -> bool {
        self.text.ends_with(|sign: char| sign.is_whitespace() || "|│→".contains(sign))
            || self.text.trim().trim_end_matches(':').chars().all(|sign| sign.is_ascii_digit())
    }

    /// Whether there is no word in it but how grave an entry is.
    fn is_of_log(&self) -> bool {
        let words = self.text.split(|sign: char| !sign.is_alphabetic()).filter(|word| !word.is_empty());
        let known = ["T", "Z", "UTC", "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "LOG"];
        words.into_iter().all(|word| known.contains(&word.to_uppercase().as_str()))
    }

    /// How many bytes of a line are such a prefix: other digits, where they are of no name, and the same signs.
    fn length_in(&self, line: &str) -> Option<usize> {
        self.matched(line).ok()
    }

    fn matched(&self, line: &str) -> Result<usize, Unlike> {
        let mut rest = line;
        let mut words = self.text.as_str();
        while let Some(sign) = words.chars().next() {
            let of_space = words.len() - words.trim_start().len();
            if of_space > 0 {
                words = &words[of_space..];
                let space = rest.len() - rest.trim_start().len();
                if words.is_empty() {
                    // What is behind the prefix may itself be indented; and a line with nothing behind it lacks its space.
                    let most = rest.char_indices().nth(of_space).map_or(rest.len(), |(at, _)| at);
                    rest = &rest[space.min(most)..];
                    break;
                }
                rest = &rest[space..];
                continue;
            }
            let word = words.split(char::is_whitespace).next().unwrap_or(words);
            let is_name = word.contains(char::is_lowercase);
            if is_name {
                rest = rest.strip_prefix(word).ok_or(Unlike { is_begun: word.starts_with(rest) })?;
                words = &words[word.len()..];
            } else if sign.is_ascii_digit() {
                // A number that takes more room has less space before it.
                let digits = |text: &str| {
                    text.len() - text.trim_start_matches(|sign: char| sign.is_ascii_digit()).len()
                };
                let trimmed = if words.len() == self.text.len() { rest.trim_start() } else { rest };
                let found = digits(trimmed);
                if found == 0 {
                    return Err(Unlike { is_begun: trimmed.is_empty() });
                }
                rest = &trimmed[found..];
                words = &words[digits(words)..];
            } else {
                rest = rest.strip_prefix(sign).ok_or(Unlike { is_begun: rest.is_empty() })?;
                words = &words[sign.len_utf8()..];
            }
        }
        Ok(line.len() - rest.len())
    }
}

#[cfg(test)]
mod tests {
    use super::{Prefix, cleaned};

    fn text(original: &str) -> String {
        cleaned(original.as_bytes())
            .first()
            .map_or_else(|| original.to_owned(), |cleaned| String::from_utf8(cleaned.text.clone()).unwrap())
    }

    #[test]
    fn colours_and_titles_of_terminals_are_taken_away() {
        for (original, expected) in [
            ("\u{1b}[1;31mred\u{1b}[0m\n", "red\n"),
            ("\u{1b}]0;title\u{7}a\u{1b}]8;;http://x\u{1b}\\b\n", "ab\n"),
            ("\u{1b}(Ba\u{1b}=b\u{1b}[?25lc", "abc"),
            ("a\u{1b}[3", "a"),
            ("a\u{1b}", "a"),
            ("\u{1b}é\n", "é\n"),
        ] {
            assert_eq!(text(original), expected, "{original:?}");
        }
    }

    #[test]
    fn carriage_returns_end_lines_where_they_stand_between_lines() {
        assert_eq!(text("a\rb\r\rc"), "a\nb\n\nc");
        assert_eq!(text("a\rb\r\nc\n"), "a\nb\nc\n");
        for same in ["a\r\nb\r\n", "a\nb\rc\n", "a\r", "a\r\r\nb\r"] {
            assert_eq!(text(same), same);
        }
        assert_eq!(
            text("a\n===AGENT_RESULT===\ragent_id: x\rb\nc\rd\n"),
            "a\n===AGENT_RESULT===\nagent_id: x\nb\nc\rd\n"
        );
    }

    #[test]
    fn only_what_stands_before_every_line_is_taken_away() {
        let lines = ["===AGENT_RESULT===", "agent_id: x", ""];
        assert_eq!(
            text(&lines.join("\n7: ").replacen("===", "6: ===", 1)),
            "===AGENT_RESULT===\nagent_id: x\n"
        );
        // Cut in the middle of what stands before a line.
        for cut in ["1", " 1", "10", "10:", "10: "] {
            let cut = format!(" 1: ===AGENT_RESULT===\n 2: agent_id: x\n{cut}");
            assert_eq!(text(&cut), "===AGENT_RESULT===\nagent_id: x\n", "{cut}");
        }
        for same in [
            lines.join("\n2: ").replacen("===", "Look:\n1: ===", 1),
            lines.join("\nx:").replacen("===", "x:===", 1),
            lines.join("\n").replacen("===", "I end with ===", 1),
            lines.join("\n> ").replacen("===", "> ===", 1),
        ] {
            assert_eq!(text(&same), same);
        }
    }

    #[test]
    fn what_a_log_sets_before_each_line_is_recognised_in_the_others() {
        for (prefix, line, found) in [
            ("  9: ", " 10:   x", Some(" 10: ")),
            ("  9: ", "100:", Some("100:")),
            ("| ", "|   x", Some("| ")),
            (
                "2026-11-22T10:00:00.123Z INFO ",
                "2026-11-22T10:01:09.4Z INFO x",
                Some("2026-11-22T10:01:09.4Z INFO "),
            ),
            ("[09:59:59] ", "[10:00:00]   x", Some("[10:00:00] ")),
            ("auth-2  | ", "auth-2  | x", Some("auth-2  | ")),
            ("auth-2  | ", "auth-1  | x", None),
            ("12:00 ", "source: x", None),
            ("1\t", "2\t\tx", Some("2\t")),
        ] {
            let length = Prefix { text: prefix.to_owned() }.length_in(line);
            assert_eq!(length.map(|length| &line[..length]), found, "{prefix:?} in {line:?}");
        }
    }
}
