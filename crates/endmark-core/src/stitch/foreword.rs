//! Words in front of a part of JSON, told by their form: what is no JSON in front of something that goes on
//! validly is an announcement, in whatever language and words.

use super::fence;
use super::preamble::{self, Certainty};

/// How far into a continuation words in front can reach, in bytes.
const REACH: usize = 1_200;
/// How many lines they can have.
const MOST_LINES: usize = 8;
/// How many places inside a line are looked at, and how far into it, in bytes.
const MOST_IN_LINE: usize = 8;
const REACH_IN_LINE: usize = 240;

/// Words in front of a continuation's part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Foreword {
    /// The place behind them, with the line breaks after them still ahead where they end their line.
    pub(super) end: usize,
    pub(super) certainty: Certainty,
    pub(super) ends_line: bool,
    /// Whether a code fence follows.
    pub(super) fence_follows: bool,
}

/// The words that a continuation may have in front of its part of JSON. Inside a string nearly everything may be
/// its text, so that only what has the form of an announcement can be one; between tokens any prose is.
pub(super) fn forewords(continuation: &str, in_text: bool, before: &str) -> Vec<Foreword> {
    let quoted = Quoted::end_of(before);
    let of_line = |line: &str| of_line(&quoted.left_out_of(line), in_text);
    let reach = preamble::head(continuation, REACH);
    let indent = reach.len() - reach.trim_start().len();
    let mut found = Vec::new();
    in_line(reach, indent, of_line, &mut found);
    let mut certainty: Option<Certainty> = None;
    let mut line_start = indent;
    let mut lines = 0;
    while lines < MOST_LINES {
        let Some(length) = reach[line_start..].find('\n') else { break };
        let line = &reach[line_start..line_start + length];
        if !line.trim().is_empty() {
            let is_rule = certainty.is_some() && is_rule(line);
            let told = of_line(line).or(certainty.filter(|_| is_rule));
            let Some(of_line) = told else { break };
            certainty = Some(certainty.map_or(of_line, |before| before.max(of_line)));
            lines += 1;
        }
        let end = line_start + length;
        if let Some(certainty) = certainty.filter(|_| !line.trim().is_empty()) {
            let fence_follows = fence::opening(&continuation[end..]).is_some();
            found.push(Foreword { end, certainty, ends_line: true, fence_follows });
        }
        line_start = end + 1;
    }
    found
}

/// Adds the places behind the sentences and colons of the first line.
fn in_line(
    reach: &str,
    indent: usize,
    of_line: impl Fn(&str) -> Option<Certainty>,
    found: &mut Vec<Foreword>,
) {
    let line = reach[indent..].lines().next().unwrap_or_default();
    let line = preamble::head(line, REACH_IN_LINE);
    let mut places = 0;
    for (at, sign) in line.char_indices() {
        let wide = matches!(sign, '\u{ff1a}' | '\u{3002}' | '\u{ff01}');
        let behind = at + sign.len_utf8();
        let closes = wide || matches!(sign, ':' | '.' | '!' | '\u{2026}' | '\u{2014}');
        if !closes || places == MOST_IN_LINE || !wide && !line[behind..].starts_with(' ') {
            continue;
        }
        let Some(certainty) = of_line(&line[..behind]) else { continue };
        places += 1;
        let end = indent + behind;
        let fence_follows = fence::opening(&reach[end..]).is_some();
        found.push(Foreword { end, certainty, ends_line: false, fence_follows });
    }
}

/// The end of the first part as words in front may quote it, white space aside.
struct Quoted(String);

impl Quoted {
    /// The longest end that is looked for, and the shortest that is no coincidence, in characters.
    const LONGEST: usize = 60;
    const SHORTEST: usize = 4;

    fn end_of(before: &str) -> Self {
        let near = &before[before.ceil_char_boundary(before.len().saturating_sub(8 * Self::LONGEST))..];
        let words: Vec<&str> = near.split_whitespace().collect();
        Self(words.join(" "))
    }

    /// The line without what it quotes, so that it is judged by its own words.
    fn left_out_of<'l>(&self, line: &'l str) -> std::borrow::Cow<'l, str> {
        let ends = self.0.char_indices().rev().take(Self::LONGEST).map(|(at, _)| &self.0[at..]);
        let quoted = |end: &str| {
            let is_prose = |before: &str| {
                before.contains(char::is_alphabetic) && !before.contains(['"', '{', '[', '\\'])
            };
            let opened =
                |at: usize| line[..at].trim_end_matches(['"', '`', '\'', '\u{201c}', '\u{ab}', '\u{201e}']);
            let mut places = line.match_indices(end).map(|(at, _)| (at, opened(at)));
            let place = places.find(|(at, before)| before.len() < *at && is_prose(before));
            place.map(|(at, before)| (before, &line[at + end.len()..]))
        };
        match ends.skip(Self::SHORTEST - 1).filter_map(quoted).last() {
            Some((before, after)) => {
                let after = after.trim_start_matches(['"', '`', '\'', '\u{201d}', '\u{bb}', '\u{201c}']);
                [before, "\u{2026}", after].concat().into()
            }
            None => line.into(),
        }
    }
}

/// How certain it is that a line speaks about the continuation and is no part of it.
fn of_line(line: &str, in_text: bool) -> Option<Certainty> {
    let told = preamble::announcement(line);
    if told.is_some_and(|told| told > Certainty::Form) {
        return told;
    }
    let formed = if in_text { has_form(line) } else { has_words(line) && !ends_as_json(line) };
    formed.then_some(Certainty::Form)
}

/// Whether a line is drawn below or above what belongs together.
fn is_rule(line: &str) -> bool {
    let line = line.trim();
    line.len() >= 3 && ['-', '*', '_', '=', '~'].iter().any(|sign| line.chars().all(|other| other == *sign))
}

/// Whether a line ends as one of JSON does: what stands before may be in front, the line as a whole is not.
fn ends_as_json(line: &str) -> bool {
    let line = line.trim_end();
    line.ends_with([',', '{', '[', '"']) || line.ends_with(['}', ']']) && line.contains(['"', '{'])
}

/// Whether a line has words that are no part of JSON, which has none but `true`, `false` and `null` outside of strings:
/// neither if the line begins between tokens nor if it begins in a string.
fn has_words(line: &str) -> bool {
    let mut quoted = false;
    let mut escaped = false;
    let mut word = String::new();
    let mut letters = [0, 0];
    for sign in line.chars().chain([' ']) {
        if sign.is_alphabetic() && !escaped {
            word.push(sign);
            continue;
        }
        if !matches!(word.as_str(), "true" | "false" | "null" | "e" | "E") {
            letters[usize::from(quoted)] += word.chars().count();
        }
        word.clear();
        quoted ^= sign == '"' && !escaped;
        escaped = sign == '\\' && !escaped;
    }
    let wide = line.chars().any(|sign| u32::from(sign) >= 0x2e80 && sign.is_alphabetic());
    let least = if wide { 1 } else { 2 };
    letters[0] >= least && (letters[1] >= least || !line.contains('"'))
}

/// Whether a line has the form of an announcement: it begins as a sentence does and closes, or is emphasised.
fn has_form(line: &str) -> bool {
    let line = line.trim_end();
    let mark = |sign: char| {
        matches!(
            sign,
            '*' | '_'
                | '#'
                | '>'
                | '('
                | '['
                | '`'
                | '<'
                | '!'
                | '-'
                | '~'
                | '='
                | '.'
                | '\u{2026}'
                | '\u{2014}'
        )
    };
    let bare = line.trim_start_matches(|sign: char| mark(sign) || sign == ' ');
    let marked = bare.len() < line.len();
    let Some(first) = bare.chars().next() else { return false };
    let begins = first.is_alphabetic() && !first.is_lowercase() || marked && first.is_alphabetic();
    let plain_end = line.trim_end_matches(['*', '_', '`', ')', ']', '>', '-', '~', ' ']);
    let is_close = |sign: char| {
        matches!(
            sign,
            ':' | '.' | '!' | '?' | '\u{2026}' | '\u{ff1a}' | '\u{3002}' | '\u{ff01}' | '\u{964}' | '\u{61f}'
        )
    };
    let emphasised = marked && line.ends_with(['*', '_', ')', ']', '>', '-', '=', '~', '\u{2014}']);
    let heading = line.starts_with('#');
    let closes = plain_end.ends_with(is_close) || emphasised || heading;
    begins && closes && has_words(line) && !looks_like_code(line)
}

/// Whether a line has signs that prose does not have outside of quotation marks and code spans.
fn looks_like_code(line: &str) -> bool {
    let mut quoted = None;
    let mut signs = 0;
    for sign in line.chars() {
        match quoted {
            Some(mark) if sign == mark => quoted = None,
            None if matches!(sign, '`' | '"') => quoted = Some(sign),
            _ if sign == '\\' => signs += 1,
            None if matches!(sign, '{' | '}' | ';' | '=') => signs += 1,
            Some(_) | None => {}
        }
    }
    signs > 0 || quoted == Some('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(continuation: &str, in_text: bool) -> Vec<&str> {
        forewords(continuation, in_text, "")
            .iter()
            .map(|found| continuation[found.end..].trim_start())
            .collect()
    }

    #[test]
    fn between_tokens_any_words_are_in_front() {
        assert_eq!(ends("Hier ist der Rest:\n\n\"b\": 2}", false), ["\"b\": 2}"]);
        assert_eq!(ends("<!-- continued -->\n], 3]", false), ["], 3]"]);
        assert_eq!(ends("以下是剩余部分：, 3]", false), [", 3]"]);
        assert_eq!(ends("Voici la suite : \"b\"}", false), ["\"b\"}"]);
        assert_eq!(ends("\"b\": 2,\n\"c\": true,\n\"d\": null}", false), [""; 0]);
    }

    #[test]
    fn inside_a_string_only_what_has_the_form() {
        assert_eq!(ends("**Fortsetzung**\n\nld\"}", true), ["ld\"}"]);
        assert_eq!(ends("Вот продолжение:\nld\"}", true), ["ld\"}"]);
        assert_eq!(ends("cisco\",\n\"zip\": 94103}", true), [""; 0]);
        assert_eq!(ends("x = 1;\n    return x;\n}\"}", true), [""; 0]);
    }
}
