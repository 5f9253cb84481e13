//! Recognises announcements before JSON by their form. In any language, text before a valid continuation that
//! is not JSON itself is an announcement.

use super::joint::Joint;
use super::register::{self, SurroundingText, is_rule};
use super::{fence, prompt_echo_and_remarks};

/// Maximum length, in bytes, of the announcements at the beginning of a continuation.
const MAX_ANNOUNCEMENT_BYTES: usize = 1_200;
/// Maximum number of lines of an announcement.
const MAX_ANNOUNCEMENT_LINES: usize = 8;
/// Maximum number of examined positions in a line, and maximum number of examined bytes.
const MAX_LINE_POSITIONS: usize = 8;
const MAX_LINE_BYTES: usize = 240;

/// Evidence, in bits, above which words count as an announcement, whatever their form.
const MIN_ANNOUNCEMENT_BITS: f64 = 3.0;

/// An announcement before the JSON of a continuation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Announcement {
    /// The position after it in the continuation, excluding line breaks.
    pub(super) end: usize,
    /// The evidence, in bits, that it is an announcement.
    pub(super) bits: f64,
    pub(super) ends_line: bool,
    /// Whether a code fence follows it.
    pub(super) fence_follows: bool,
}

/// Returns the possible announcements at the beginning of a continuation. In a string, nearly any words may
/// belong to the string, so only words with the form of an announcement count. Between tokens, all prose
/// counts.
pub(super) fn announcements(joint: &Joint<'_>, around: &SurroundingText) -> Vec<Announcement> {
    let continuation = joint.continuation;
    if completes_literal(joint, continuation) {
        return Vec::new();
    }
    let quoted = QuotedEnd::from_first_part(joint.initial);
    let of_line = |line: &str, end: usize, behind: &str| {
        line_evidence(joint, around, &quoted.unquoted_line(line), end, behind)
    };
    let reach = prompt_echo_and_remarks::beginning(continuation, MAX_ANNOUNCEMENT_BYTES);
    let indent = reach.len() - reach.trim_start().len();
    let mut found = Vec::new();
    add_line_positions(reach, indent, joint.in_text, of_line, &mut found);
    let mut announced: Option<f64> = None;
    let mut line_start = indent;
    let mut lines = 0;
    while lines < MAX_ANNOUNCEMENT_LINES {
        let Some(length) = reach[line_start..].find('\n') else { break };
        let line = &reach[line_start..line_start + length];
        if announced.is_some() && completes_literal(joint, line) {
            break;
        }
        if !line.trim().is_empty() {
            let end = line_start + length;
            let is_rule = announced.is_some() && is_rule(line);
            let bits = of_line(line, end, &reach[end..]).or(announced.filter(|_| is_rule));
            let Some(bits) = bits else { break };
            // In a string, lines after an announcement belong to the string, unless they also read like an
            // announcement.
            if joint.in_text && announced.is_some() && bits < 0.0 && !is_rule {
                break;
            }
            announced = Some(announced.map_or(bits, |before| before.max(bits)));
            lines += 1;
        }
        let end = line_start + length;
        if let Some(bits) = announced.filter(|_| !line.trim().is_empty()) {
            let fence_follows = fence::opening_line_end(&continuation[end..]).is_some();
            found.push(Announcement { end, bits, ends_line: true, fence_follows });
        }
        line_start = end + 1;
    }
    found
}

/// Whether a text begins with the rest of the literal at the cut, after optional whitespace and dots.
fn completes_literal(joint: &Joint<'_>, text: &str) -> bool {
    let open_token = if joint.in_text { "" } else { &joint.initial[joint.settled_bytes..] };
    let rest = |literal: &'static str| literal.strip_prefix(open_token).filter(|rest| !rest.is_empty());
    !open_token.is_empty()
        && ["true", "false", "null"].into_iter().filter_map(rest).any(|rest| {
            let text = text.trim_start_matches(['.', '\u{2026}', ' ', '\n', '\r']);
            let behind = text.strip_prefix(rest);
            behind.is_some_and(|behind| !behind.starts_with(char::is_alphanumeric))
        })
}

/// Adds the positions after the sentences and colons of the first line.
fn add_line_positions(
    reach: &str,
    indent: usize,
    in_text: bool,
    of_line: impl Fn(&str, usize, &str) -> Option<f64>,
    found: &mut Vec<Announcement>,
) {
    let line = reach[indent..].lines().next().unwrap_or_default();
    let line = prompt_echo_and_remarks::beginning(line, MAX_LINE_BYTES);
    let line = &line[..json_start(line, in_text)];
    let first = found.len();
    let is_marked = line.starts_with(['(', '[', '*']);
    let mut likelier = Vec::new();
    for (at, sign) in line.char_indices() {
        let wide = matches!(sign, '\u{ff1a}' | '\u{3002}' | '\u{ff01}');
        let behind = at + sign.len_utf8();
        let closes = wide
            || matches!(sign, ':' | '.' | '!' | '\u{2026}' | '\u{2014}')
            || is_marked && matches!(sign, ')' | ']' | '*');
        if !closes || likelier.len() == MAX_LINE_POSITIONS || !wide && !line[behind..].starts_with(' ') {
            continue;
        }
        let end = indent + behind;
        let Some(bits) = of_line(&line[..behind], end, "") else { continue };
        likelier.push(register::likelier_announcing(&line[..behind]));
        let fence_follows = fence::opening_line_end(&reach[end..]).is_some();
        found.push(Announcement { end, bits, ends_line: false, fence_follows });
    }
    // An announcement must not become likelier by including words of the text.
    let most = likelier.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    for (foreword, likelier) in found[first..].iter_mut().zip(likelier) {
        foreword.bits -= 2.0 * (most - likelier).min(10.0);
    }
}

/// Returns where JSON begins in a line. Between tokens, this is a closing bracket without an opening one in
/// the line. In a string, it is an escape.
fn json_start(line: &str, in_text: bool) -> usize {
    if in_text {
        return line.find('\\').unwrap_or(line.len());
    }
    let mut open = Vec::new();
    for (at, sign) in line.char_indices() {
        match sign {
            '[' | '{' => open.push(sign),
            ']' if open.pop() != Some('[') => return at,
            '}' if open.pop() != Some('{') => return at,
            _ => {}
        }
    }
    line.len()
}

/// The end of the first part, with single spaces, for finding quotations of it in an announcement.
struct QuotedEnd(String);

impl QuotedEnd {
    /// Maximum and minimum length of such a quotation, in characters. A shorter one may be a coincidence.
    const MAX_CHARS: usize = 60;
    const MIN_CHARS: usize = 4;

    fn from_first_part(before: &str) -> Self {
        let near = &before[before.ceil_char_boundary(before.len().saturating_sub(8 * Self::MAX_CHARS))..];
        let words: Vec<&str> = near.split_whitespace().collect();
        Self(words.join(" "))
    }

    /// Returns a line without its quotation of the text, so that only its own words are judged.
    fn unquoted_line<'l>(&self, line: &'l str) -> std::borrow::Cow<'l, str> {
        let ends = self.0.char_indices().rev().take(Self::MAX_CHARS).map(|(at, _)| &self.0[at..]);
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
        match ends.skip(Self::MIN_CHARS - 1).filter_map(quoted).last() {
            Some((before, after)) => {
                let after = after.trim_start_matches(['"', '`', '\'', '\u{201d}', '\u{bb}', '\u{201c}']);
                [before, "\u{2026}", after].concat().into()
            }
            None => line.into(),
        }
    }
}

/// Returns the evidence, in bits, that a line is a remark about the continuation and not part of it. Returns
/// `None` if the line cannot be a remark.
fn line_evidence(
    joint: &Joint<'_>,
    around: &SurroundingText,
    line: &str,
    end: usize,
    behind: &str,
) -> Option<f64> {
    let bits = register::announcement_bits(joint, around, line, end, behind);
    let closes_more = !joint.in_text && json_start(line, false) < line.len();
    let has_words = has_words(line) && !ends_as_json(line) && !closes_more;
    let formed = if joint.in_text { has_announcement_form(line) } else { has_words };
    (formed || bits > MIN_ANNOUNCEMENT_BITS && has_words).then_some(bits)
}

/// Whether a line ends like a line of JSON. Then only its beginning can be an announcement.
fn ends_as_json(line: &str) -> bool {
    let line = line.trim_end();
    line.ends_with([',', '{', '[', '"']) || line.ends_with(['}', ']']) && line.contains(['"', '{'])
}

/// Whether a line contains words that are not JSON. They must be outside quotes and, if there are quotes,
/// also within them.
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

/// Whether a line has the form of an announcement: it begins and ends like a sentence, or is emphasised.
fn has_announcement_form(line: &str) -> bool {
    let line = line.trim_end();
    let mark = |character: char| {
        matches!(
            character,
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
    let bare = line.trim_start_matches(|character: char| mark(character) || character == ' ');
    let marked = bare.len() < line.len();
    let Some(first) = bare.chars().next() else { return false };
    let begins = first.is_alphabetic() && !first.is_lowercase() || marked && first.is_alphabetic();
    let plain_end = line.trim_end_matches(['*', '_', '`', ')', ']', '>', '-', '~', ' ']);
    let is_close = |character: char| {
        matches!(
            character,
            ':' | '.' | '!' | '?' | '\u{2026}' | '\u{ff1a}' | '\u{3002}' | '\u{ff01}' | '\u{964}' | '\u{61f}'
        )
    };
    let emphasised = marked && line.ends_with(['*', '_', ')', ']', '>', '-', '=', '~', '\u{2014}']);
    let heading = line.starts_with('#');
    let closes = plain_end.ends_with(is_close) || emphasised || heading;
    begins && closes && has_words(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stitch::AskedFrom;
    use endmark_text::Format;

    fn ends(continuation: &str, in_text: bool) -> Vec<&str> {
        let initial = if in_text { "{\"a\": \"San Fran" } else { "{\"a\": [1, 2" };
        let joint = Joint::new(initial, continuation, &Format::Json, AskedFrom::Unknown);
        announcements(&joint, &SurroundingText::new(&joint))
            .iter()
            .map(|found| continuation[found.end..].trim_start())
            .collect()
    }

    #[test]
    fn any_words_between_tokens_count_as_an_announcement() {
        assert_eq!(ends("Hier ist der Rest:\n\n\"b\": 2}", false), ["\"b\": 2}"]);
        assert_eq!(ends("<!-- continued -->\n], 3]", false), ["], 3]"]);
        assert_eq!(ends("以下是剩余部分：, 3]", false), [", 3]"]);
        assert_eq!(ends("Voici la suite : \"b\"}", false), ["\"b\"}"]);
        assert_eq!(ends("\"b\": 2,\n\"c\": true,\n\"d\": null}", false), [""; 0]);
    }

    #[test]
    fn in_a_string_only_words_with_the_form_of_an_announcement_count() {
        assert_eq!(ends("**Fortsetzung**\n\nld\"}", true), ["ld\"}"]);
        assert_eq!(ends("Вот продолжение:\nld\"}", true), ["ld\"}"]);
        assert_eq!(ends("cisco\",\n\"zip\": 94103}", true), [""; 0]);
        assert_eq!(ends("x = 1;\n    return x;\n}\"}", true), [""; 0]);
    }
}
