//! Parses line numbers. (AR-1)

use super::LineRange;
use crate::vocabulary::find_list;

/// The maximum number of positions in a text at which a line number is looked for.
const MAX_SEARCHED_POSITIONS: usize = 256;

/// Returns the first line range after punctuation or a word: `:41-58`, `#L41-L58`, ` (line 41)`, ` lines 41 to 58`.
pub(super) fn find_lines(text: &str) -> Option<LineRange> {
    let separators = text.char_indices().filter(|(_, ch)| !ch.is_alphanumeric()).take(MAX_SEARCHED_POSITIONS);
    let tail =
        separators.map(|(at, ch)| (ch, text[at + ch.len_utf8()..].trim_start_matches([' ', '[', '('])));
    let named = tail.chain([(' ', text)]).find_map(|(ch, rest)| {
        let follows_punctuation = [':', '#', '(', '[', '~'].contains(&ch);
        strip_line_words(rest).or(Some(rest).filter(|_| follows_punctuation)).and_then(parse_range)
    });
    named.map(|(lines, _)| lines)
}

/// Parses a text that is only a line range, with or without a word such as `lines`.
pub(super) fn parse_lines(text: &str) -> Option<LineRange> {
    let text = text.trim_matches(|ch: char| ch.is_whitespace() || ":#`()[].".contains(ch));
    let (lines, tail) = parse_range(strip_line_words(text).unwrap_or(text))?;
    tail.is_empty().then_some(lines)
}

/// Parses `41`, `L41-L58`, `41:7` (line and column), `41–58`, `41..58` or `41 to 58`, and returns the rest of the
/// text.
fn parse_range(text: &str) -> Option<(LineRange, &str)> {
    let (start, rest) = parse_number(text)?;
    let more = ["..", "-", "–", "—", "to "].iter().find_map(|dash| rest.trim_start().strip_prefix(dash));
    if let Some((end, rest)) = more.and_then(|more| parse_number(more.trim_start())) {
        return Some((LineRange::new(start, end)?, rest));
    }
    let rest = rest.strip_prefix(':').and_then(parse_number).map_or(rest, |(_, rest)| rest);
    Some((LineRange::new(start, start)?, rest))
}

/// Strips one or two words before a line number: `around line 12`. Returns `None` without such a word.
fn strip_line_words(text: &str) -> Option<&str> {
    let tail = strip_line_word(text)?;
    Some(strip_line_word(tail).unwrap_or(tail))
}

fn strip_line_word(text: &str) -> Option<&str> {
    let letters = text.find(|ch: char| !ch.is_alphabetic())?;
    let (word, rest) = text.split_at(letters);
    find_list("around", &word.to_lowercase()).filter(|list| *list == "lines")?;
    Some(rest.trim_start_matches(['.', ':', ' ', '#', '~', '-']))
}

/// Parses a line number, which may have an `L` and a column as in a link: `L12C5`. Returns the rest of the text too.
fn parse_number(text: &str) -> Option<(u32, &str)> {
    let digits = |text: &str| text.find(|ch: char| !ch.is_ascii_digit()).unwrap_or(text.len());
    let text = text.trim_start_matches('~');
    let text = text.strip_prefix(['L', 'l']).unwrap_or(text);
    let (number, rest) = text.split_at(digits(text));
    let rest = rest.strip_prefix('C').map_or(rest, |column| &column[digits(column)..]);
    // `12abc` is not a line number.
    if rest.starts_with(char::is_alphanumeric) {
        return None;
    }
    Some((number.parse().ok()?, rest))
}
