//! Which lines are named, in the spellings of models, compilers and hosts of code. (AR-1)

use super::LineRange;

/// Lines, and what stands behind them.
pub(super) type Read<'a> = (LineRange, &'a str);

/// `41`, `L41-L58`, `41:7` (line and column), `41–58`, `41..58`, `41 to 58`.
pub(super) fn range(text: &str) -> Option<Read<'_>> {
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

/// The same behind a word for lines: `lines 41 to 58`, `L41`.
pub(super) fn range_after_word(text: &str) -> Option<Read<'_>> {
    range(without_word(text)?)
}

/// The same with or without that word, and nothing else.
pub(super) fn bare(text: &str) -> Option<LineRange> {
    let (lines, rest) = range_maybe_after_word(text)?;
    rest.trim_matches([')', ']', ' ', '.']).is_empty().then_some(lines)
}

fn range_maybe_after_word(text: &str) -> Option<Read<'_>> {
    range(without_word(text).unwrap_or(text))
}

/// Lines up to the bracket that closes: `[41-58]`, behind the first sign.
pub(super) fn in_brackets(rest: &str) -> Option<Read<'_>> {
    let (lines, behind) = range_maybe_after_word(rest)?;
    closed(behind.strip_prefix(']')?).map(|behind| (lines, behind))
}

/// Lines as compilers write them: `3`, `3-9`, `3,9` (line and column), `3,9,4,1` (from there to there).
pub(super) fn of_compiler(rest: &str) -> Option<Read<'_>> {
    let inner = in_parentheses(rest)?;
    let behind = closed(&rest[inner.len() + 1..])?;
    let numbers: Vec<&str> = inner.split(',').map(str::trim).collect();
    let (first, _) = range(numbers.first()?)?;
    match numbers.as_slice() {
        [_] | [_, _] => Some((first, behind)),
        [_, _, last, _] => Some((first.with(range(last)?.0), behind)),
        _ => None,
    }
}

/// The numbers, and what is between them, that stand before a parenthesis closes.
pub(super) fn in_parentheses(rest: &str) -> Option<&str> {
    let (inner, _) = rest.split_once(')')?;
    let is_of_numbers = |sign: char| sign.is_ascii_digit() || ",-–: ".contains(sign);
    (inner.starts_with(|sign: char| sign.is_ascii_digit()) && inner.chars().all(is_of_numbers))
        .then_some(inner)
}

/// What stands behind a bracket, if the name of a file does not go on there: `my file (1).rs`, `src/[1]/a.rs`.
fn closed(behind: &str) -> Option<&str> {
    let of_name = behind.trim_start_matches('.');
    let goes_on = of_name.len() < behind.len() && of_name.starts_with(char::is_alphanumeric)
        || behind.starts_with(['/', '\\', '_', '-']);
    (!goes_on).then_some(behind)
}

/// `lines-3:9`, as some hosts of code write it behind the `#`.
pub(super) fn of_fragment(rest: &str) -> Option<Read<'_>> {
    let (start, rest) = number(rest.strip_prefix("lines-")?)?;
    let (end, rest) = rest.strip_prefix(':').and_then(number).unwrap_or((start, rest));
    Some((LineRange::new(start, end)?, rest))
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
