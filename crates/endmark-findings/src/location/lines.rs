//! Recognises line numbers. (AR-1)

use super::LineRange;
use crate::vocabulary::find_list;

/// The number of candidate positions that are searched for line numbers.
const MAX_SIGNS: usize = 256;

/// Returns the first lines after punctuation or a word: `:41-58`, `#L41-L58`, ` (line 41)`, ` lines 41 to 58`.
pub(super) fn find_lines(text: &str) -> Option<LineRange> {
    let signs = text.char_indices().filter(|(_, sign)| !sign.is_alphanumeric()).take(MAX_SIGNS);
    let behind =
        signs.map(|(at, sign)| (sign, text[at + sign.len_utf8()..].trim_start_matches([' ', '[', '('])));
    let named = behind.chain([(' ', text)]).find_map(|(sign, rest)| {
        let is_sign = [':', '#', '(', '[', '~'].contains(&sign);
        without_word(rest).or(Some(rest).filter(|_| is_sign)).and_then(range)
    });
    named.map(|(lines, _)| lines)
}

/// Parses a text that consists only of lines, with or without a word for them.
pub(super) fn parse_lines(text: &str) -> Option<LineRange> {
    let text = text.trim_matches(|sign: char| sign.is_whitespace() || ":#`()[].".contains(sign));
    let (lines, behind) = range(without_word(text).unwrap_or(text))?;
    behind.is_empty().then_some(lines)
}

/// Parses `41`, `L41-L58`, `41:7` (line and column), `41–58`, `41..58` or `41 to 58`, and returns the rest of the
/// text.
fn range(text: &str) -> Option<(LineRange, &str)> {
    let (start, rest) = number(text)?;
    let more = ["..", "-", "–", "—", "to "].iter().find_map(|dash| rest.trim_start().strip_prefix(dash));
    if let Some((end, rest)) = more.and_then(|more| number(more.trim_start())) {
        return Some((LineRange::new(start, end)?, rest));
    }
    let rest = rest.strip_prefix(':').and_then(number).map_or(rest, |(_, rest)| rest);
    Some((LineRange::new(start, start)?, rest))
}

/// Returns the text after one or two words for lines: `around line 12`.
fn without_word(text: &str) -> Option<&str> {
    let behind = without_one_word(text)?;
    Some(without_one_word(behind).unwrap_or(behind))
}

fn without_one_word(text: &str) -> Option<&str> {
    let letters = text.find(|sign: char| !sign.is_alphabetic())?;
    let (word, rest) = text.split_at(letters);
    find_list("around", &word.to_lowercase()).filter(|list| *list == "lines")?;
    Some(rest.trim_start_matches(['.', ':', ' ', '#', '~', '-']))
}

/// Parses a number, optionally with the `L` of a link to a line and a column: `L12C5`.
fn number(text: &str) -> Option<(u32, &str)> {
    let digits = |text: &str| text.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(text.len());
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
