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
pub(super) fn forewords(continuation: &str, in_text: bool) -> Vec<Foreword> {
    let reach = preamble::head(continuation, REACH);
    let indent = reach.len() - reach.trim_start().len();
    let mut found = Vec::new();
    in_line(reach, indent, in_text, &mut found);
    let mut certainty: Option<Certainty> = None;
    let mut line_start = indent;
    let mut lines = 0;
    while lines < MOST_LINES {
        let Some(length) = reach[line_start..].find('\n') else { break };
        let line = &reach[line_start..line_start + length];
        if !line.trim().is_empty() {
            let Some(of_line) = of_line(line, in_text) else { break };
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
fn in_line(reach: &str, indent: usize, in_text: bool, found: &mut Vec<Foreword>) {
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
        let Some(certainty) = of_line(&line[..behind], in_text) else { continue };
        places += 1;
        let end = indent + behind;
        let fence_follows = fence::opening(&reach[end..]).is_some();
        found.push(Foreword { end, certainty, ends_line: false, fence_follows });
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

/// Whether a line ends as one of JSON does: what stands before may be in front, the line as a whole is not.
fn ends_as_json(line: &str) -> bool {
    let line = line.trim_end();
    line.ends_with([',', '{', '[', '"']) || line.ends_with(['}', ']']) && line.contains(['"', '{'])
}

/// Whether a line has words outside of quotation marks: JSON has none but `true`, `false` and `null`.
fn has_words(line: &str) -> bool {
    let mut quoted = false;
    let mut word = String::new();
    let mut letters = 0;
    for sign in line.chars().chain([' ']) {
        if sign == '"' {
            quoted = !quoted;
        }
        if !quoted && sign.is_alphabetic() {
            word.push(sign);
            continue;
        }
        if !matches!(word.as_str(), "true" | "false" | "null" | "e" | "E") {
            letters += word.chars().count();
        }
        word.clear();
    }
    let wide = line.chars().any(|sign| u32::from(sign) >= 0x2e80 && sign.is_alphabetic());
    letters >= if wide { 1 } else { 2 }
}

/// Whether a line has the form of an announcement: it begins as a sentence does and closes, or is emphasised.
fn has_form(line: &str) -> bool {
    let line = line.trim_end();
    let mark = |sign: char| matches!(sign, '*' | '_' | '#' | '>' | '(' | '[' | '`' | '<' | '!' | '-' | '~');
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
    let emphasised = marked && line.ends_with(['*', '_', ')', ']', '>']);
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
            None if matches!(sign, '{' | '}' | ';' | '=' | '\\') => signs += 1,
            Some(_) | None => {}
        }
    }
    signs > 0 || quoted == Some('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(continuation: &str, in_text: bool) -> Vec<&str> {
        forewords(continuation, in_text).iter().map(|found| continuation[found.end..].trim_start()).collect()
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
