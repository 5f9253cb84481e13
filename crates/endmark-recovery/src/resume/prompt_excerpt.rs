//! Decides which part of a cut reply a prompt shows. The shown part ends at a boundary that lets the answer
//! prove its seam (PC-3).
//!
//! The received text after that boundary is *held*: an answer that continues the shown part must begin with
//! it.

mod json;

use super::weight::{MIN_PROOF_WEIGHT, MIN_PROOF_WEIGHT_IN_DOUBT, weight};
use endmark_text::Format;
use endmark_text::detect::detect;

/// Punctuation after which a clause begins without whitespace, in scripts without spaces.
const CLAUSE_ENDS: [char; 7] = ['。', '，', '、', '！', '？', '；', '：'];

/// Maximum number of characters that are held at the end of a text. If they contain no boundary, as in
/// base64, the whole text is shown.
const HELD_LIMIT_CHARS: usize = 240;

/// Maximum number of quoted characters at the end of the shown part.
const QUOTED_LIMIT_CHARS: usize = 200;

/// Minimum weight of the quoted part. If the last line has less, the lines before it are quoted, too.
const MIN_QUOTED_WEIGHT: u32 = 24;

/// Minimum weight of the held part after an answer that proved nothing. It exceeds every weight that a proof
/// can require.
const MIN_HELD_WEIGHT_AFTER_DOUBT: u32 = 2 * MIN_PROOF_WEIGHT_IN_DOUBT;

/// How much text a prompt holds back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HoldBack {
    /// The text after the last boundary.
    Little,
    /// Enough text to exclude any coincidence. It is used after an answer that proved nothing.
    Further,
}

impl HoldBack {
    /// Returns the minimum weight of the held part of this text. If the text ends after a word, more is
    /// needed, because the next word may be the same.
    fn min_held_weight(self, text: &str) -> u32 {
        match self {
            Self::Little if text.ends_with(char::is_alphanumeric) => MIN_PROOF_WEIGHT,
            Self::Little => MIN_PROOF_WEIGHT_IN_DOUBT,
            Self::Further => MIN_HELD_WEIGHT_AFTER_DOUBT,
        }
    }
}

/// The part of a cut text that a prompt shows, and the part that it quotes (PC-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromptExcerpt {
    /// Number of shown bytes. The received text after them is held, and the answer must begin with it.
    pub length: usize,
    /// Offset of the quoted part in bytes. This part extends to the end of the shown part.
    pub quoted_from: usize,
}

impl PromptExcerpt {
    /// Returns the quoted part of a text. Whitespace at its end is removed, except in JSON.
    pub(super) fn quoted_part<'t>(&self, text: &'t str, format: &Format) -> &'t str {
        let quoted = text.get(self.quoted_from..self.length).unwrap_or(text);
        if matches!(format, Format::Json | Format::Jsonl) { quoted } else { quoted.trim_end() }
    }
}

/// Decides which part of a cut text to show and to quote. The first `least` bytes, which the client wrote,
/// are always shown.
///
/// JSON is shown up to its last settled token. In a string, it is shown up to the last whitespace or the
/// opening quote. Rows are shown up to the last settled row, and text up to its last whitespace (PC-3).
pub(super) fn choose_excerpt(text: &str, format: &Format, how: HoldBack, least: usize) -> PromptExcerpt {
    let earliest = earliest_held_position(text).max(least);
    let wanted = match format {
        Format::Json => json::boundary(text, 0, how, earliest),
        Format::Jsonl => json_lines_boundary(text, how, earliest),
        Format::Tags => tag_boundary(text, earliest)
            .or_else(|| word_boundary(text, how.min_held_weight(text), earliest, true)),
        Format::Markdown | Format::Text | Format::Marker(_) | Format::Auto => {
            row_boundary(text, how.min_held_weight(text), earliest)
                .or_else(|| word_boundary(text, how.min_held_weight(text), earliest, false))
        }
    };
    // The shown part must not be blank.
    let length = wanted
        .filter(|length| {
            *length >= least && text.get(..*length).is_some_and(|shown| !shown.trim().is_empty())
        })
        .unwrap_or(text.len());
    let shown = text.get(..length).unwrap_or(text);
    let quoted_from = match format {
        Format::Json | Format::Jsonl => json::quotation_start(shown),
        Format::Tags | Format::Markdown | Format::Text | Format::Marker(_) | Format::Auto => {
            quotation_start(shown)
        }
    };
    PromptExcerpt { length, quoted_from }
}

/// Returns the first position at which the held part may begin, by its maximum length in characters.
fn earliest_held_position(text: &str) -> usize {
    text.char_indices().nth_back(HELD_LIMIT_CHARS - 1).map_or(0, |(at, _)| at)
}

/// Returns the last beginning of a word, clause or tag at which the held part has weight `least`. The held
/// part includes whitespace at the end of the text: an answer can only prove that whitespace if it repeats
/// the word before it.
fn word_boundary(text: &str, least: u32, from: usize, at_tags: bool) -> Option<usize> {
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

/// Returns the beginning of the last line if it is a table row, or of an earlier row if the last one has too
/// little content.
fn row_boundary(text: &str, least: u32, earliest: usize) -> Option<usize> {
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

/// Returns the start of the tag that the cut is in, if any.
fn tag_boundary(text: &str, earliest: usize) -> Option<usize> {
    let open = text.rfind('<')?;
    let is_tag = text
        .get(open + 1..)?
        .starts_with(|character: char| character.is_alphabetic() || matches!(character, '/' | '!' | '?'));
    (is_tag && !text.get(open..)?.contains('>') && open >= earliest).then_some(open)
}

/// Returns the beginning of the last row of JSON Lines if it is unfinished and not too long. Otherwise,
/// returns a boundary within that row.
fn json_lines_boundary(text: &str, how: HoldBack, earliest: usize) -> Option<usize> {
    let end = text.trim_end().len();
    let is_settled = text.ends_with('\n')
        || text.ends_with(['}', ']']) && detect(text.as_bytes(), &Format::Jsonl).verdict.is_whole();
    if is_settled && how == HoldBack::Little {
        return None;
    }
    let start = text.get(..end)?.rfind('\n').map_or(0, |at| at + 1);
    if start > 0 && start >= earliest {
        return Some(start);
    }
    json::boundary(text, start, how, earliest)
}

/// Returns the start of the quoted part, which is normally the last line of the shown part. If that line has
/// too little content, the quoted part includes the lines before it. In a long line, it begins at a word. It
/// is at most half of the shown part, because a prompt never contains a whole reply.
fn quotation_start(shown: &str) -> usize {
    let wanted = shown.chars().count().div_ceil(2).min(QUOTED_LIMIT_CHARS);
    let earliest = shown.char_indices().nth_back(wanted.saturating_sub(1)).map_or(0, |(at, _)| at);
    let mut end = shown.trim_end().len();
    while let Some(at) = shown.get(..end).and_then(|before| before.rfind('\n')) {
        if at < earliest {
            break;
        }
        if weight(shown.get(at + 1..).unwrap_or_default()) >= MIN_QUOTED_WEIGHT {
            return at + 1;
        }
        end = at;
    }
    next_word_start(shown, earliest)
}

/// Returns the first beginning of a word from `earliest` on, or `earliest` itself.
fn next_word_start(text: &str, earliest: usize) -> usize {
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
