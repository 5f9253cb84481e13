//! What a prompt shows of a cut reply: up to a boundary that hides nothing, so that the answer proves its seam (PC-3).
//!
//! What was received behind that boundary is *held*: whoever goes on from what is shown has to begin with it.

mod json;

use super::weight::{TELLING, TELLING_IN_DOUBT, weight};
use endmark_text::Format;
use endmark_text::detect::detect;

/// Signs behind which a clause begins without any white space, in scripts that have none between words.
const CLAUSE_ENDS: [char; 7] = ['。', '，', '、', '！', '？', '；', '：'];

/// At most so many characters at the end of a text are held back. Where none of them is a boundary, as in base64, all
/// of the text is shown.
const HELD_LIMIT_CHARS: usize = 240;

/// The longest end of a shown line that a prompt quotes, in characters.
const QUOTED_LIMIT_CHARS: usize = 200;

/// What a quoted line has to weigh at least: a shorter one is quoted together with those before it.
const QUOTED_WEIGHT: u32 = 24;

/// After an answer that proved nothing so much is held: further back than at first, and enough for any doubt.
const FAR_WEIGHT: u32 = 2 * TELLING_IN_DOUBT;

/// How far a question backs up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BackUp {
    /// To the last boundary.
    Little,
    /// So far that what is held can be mistaken for nothing else: an answer to a first question proved nothing.
    Far,
}

impl BackUp {
    /// What is held of this text has to weigh so much. Behind a word's end the text may go on with the same word.
    fn weight(self, text: &str) -> u32 {
        match self {
            Self::Little if text.ends_with(char::is_alphanumeric) => TELLING,
            Self::Little => TELLING_IN_DOUBT,
            Self::Far => FAR_WEIGHT,
        }
    }
}

/// What a prompt shows of a cut text, and what it quotes of that (PC-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// So many bytes are shown. What was received behind them is held: the answer has to begin with it.
    pub length: usize,
    /// The byte where the part of it begins that the prompt quotes; it reaches to the end of what is shown.
    pub quoted_from: usize,
}

impl Shown {
    /// What is quoted of a text: of JSON exactly as it stands, a line without the white space behind it.
    pub(super) fn quoted<'t>(&self, text: &'t str, format: &Format) -> &'t str {
        let quoted = text.get(self.quoted_from..self.length).unwrap_or(text);
        if matches!(format, Format::Json | Format::Jsonl) { quoted } else { quoted.trim_end() }
    }
}

/// Where a question about this cut text ends what it shows; never before its first `least` bytes, which are the client's own.
///
/// JSON is shown up to its settled text, in a string up to its last white space or its opening quote; rows up to the
/// last settled row; text up to its last white space (PC-3).
pub(super) fn back_up(text: &str, format: &Format, how: BackUp, least: usize) -> Shown {
    let earliest = earliest(text).max(least);
    let wanted = match format {
        Format::Json => json::boundary(text, 0, how, earliest),
        Format::Jsonl => rows(text, how, earliest),
        Format::Tags => tag(text, earliest).or_else(|| word(text, how.weight(text), earliest, true)),
        Format::Markdown | Format::Text | Format::Marker(_) | Format::Auto => {
            row(text, how.weight(text), earliest).or_else(|| word(text, how.weight(text), earliest, false))
        }
    };
    // Nothing can be asked about nothing.
    let length = wanted
        .filter(|length| {
            *length >= least && text.get(..*length).is_some_and(|shown| !shown.trim().is_empty())
        })
        .unwrap_or(text.len());
    let shown = text.get(..length).unwrap_or(text);
    let quoted_from = match format {
        Format::Json | Format::Jsonl => json::quoted_from(shown),
        Format::Tags | Format::Markdown | Format::Text | Format::Marker(_) | Format::Auto => anchor(shown),
    };
    Shown { length, quoted_from }
}

/// The place from which on the last characters of a text may be held back.
fn earliest(text: &str) -> usize {
    text.char_indices().nth_back(HELD_LIMIT_CHARS - 1).map_or(0, |(at, _)| at)
}

/// The last beginning of a word, a clause or a tag, from which on the text weighs this much; an earlier one where there is no other.
/// White space at the end is held, too: only what stands before it can prove how much of it there is.
fn word(text: &str, least: u32, from: usize, at_tags: bool) -> Option<usize> {
    let blank = text.len() - text.trim_start().len();
    let mut found = None;
    for (at, sign) in text.char_indices().rev() {
        let boundary = if at_tags && sign == '<' { at } else { at + sign.len_utf8() };
        if boundary < from {
            break;
        }
        let held = text.get(boundary..).unwrap_or_default();
        let begins = (sign.is_whitespace() || CLAUSE_ENDS.contains(&sign) || boundary == at)
            && !held.trim().is_empty()
            && !held.starts_with(char::is_whitespace);
        if begins && boundary > blank {
            found = Some(boundary);
            if weight(held) >= least {
                break;
            }
        }
    }
    found
}

/// The beginning of the last line, where that is a row of a table; of a line before it where that says too little.
fn row(text: &str, least: u32, earliest: usize) -> Option<usize> {
    let is_row = |line: &str| line.trim_start().starts_with('|') && line.matches('|').count() > 1;
    let end = text.trim_end().len();
    let starts = text.rmatch_indices('\n').map(|(at, _)| at + 1).filter(|at| *at < end);
    let mut found = None;
    for start in starts.take_while(|start| *start >= earliest) {
        if found.is_none() && !is_row(text.get(start..)?) {
            return None;
        }
        found = Some(start);
        if weight(text.get(start..)?) >= least {
            break;
        }
    }
    found
}

/// The place in front of a tag that the cut goes through.
fn tag(text: &str, earliest: usize) -> Option<usize> {
    let open = text.rfind('<')?;
    let is_tag = text
        .get(open + 1..)?
        .starts_with(|sign: char| sign.is_alphabetic() || matches!(sign, '/' | '!' | '?'));
    (is_tag && !text.get(open..)?.contains('>') && open >= earliest).then_some(open)
}

/// The beginning of the last row of JSON Lines, where it is not at its end, and not too long; else what JSON says of that row.
fn rows(text: &str, how: BackUp, earliest: usize) -> Option<usize> {
    let end = text.trim_end().len();
    let is_settled = text.ends_with('\n')
        || text.ends_with(['}', ']']) && detect(text.as_bytes(), &Format::Jsonl).verdict.is_whole();
    if is_settled && how == BackUp::Little {
        return None;
    }
    let start = text.get(..end)?.rfind('\n').map_or(0, |at| at + 1);
    if start > 0 && start >= earliest {
        return Some(start);
    }
    json::boundary(text, start, how, earliest)
}

/// Where the part of a shown text begins that an answer is asked to repeat: its last line, with those before it where
/// it says too little; of a long one its end, from a word's beginning. Never more than half of all, since a prompt
/// carries no whole reply.
fn anchor(shown: &str) -> usize {
    let wanted = shown.chars().count().div_ceil(2).min(QUOTED_LIMIT_CHARS);
    let earliest = shown.char_indices().nth_back(wanted.saturating_sub(1)).map_or(0, |(at, _)| at);
    let mut end = shown.trim_end().len();
    while let Some(at) = shown.get(..end).and_then(|before| before.rfind('\n')) {
        if at < earliest {
            break;
        }
        if weight(shown.get(at + 1..).unwrap_or_default()) >= QUOTED_WEIGHT {
            return at + 1;
        }
        end = at;
    }
    from_word(shown, earliest)
}

/// The first beginning of a word from this place on; the place itself where there is none.
fn from_word(text: &str, earliest: usize) -> usize {
    let (before, end) = text.split_at_checked(earliest).unwrap_or(("", text));
    if before.is_empty() || before.ends_with(char::is_whitespace) {
        return earliest;
    }
    let at = end
        .char_indices()
        .skip_while(|(_, sign)| !sign.is_whitespace())
        .find(|(_, sign)| !sign.is_whitespace());
    at.map_or(earliest, |(at, _)| earliest + at)
}

#[cfg(test)]
mod tests;
