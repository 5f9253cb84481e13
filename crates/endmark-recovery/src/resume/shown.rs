//! Decides what a prompt shows of a cut reply. It ends at a boundary that lets the answer prove its seam (PC-3).
//!
//! The received text after that boundary is *held*: a model that continues the shown text must begin with it.

mod json;

use super::weight::{MIN_PROOF_WEIGHT, MIN_PROOF_WEIGHT_IN_DOUBT, weight};
use endmark_text::Format;
use endmark_text::detect::detect;

/// Signs after which a clause begins without white space, in scripts without spaces.
const CLAUSE_ENDS: [char; 7] = ['。', '，', '、', '！', '？', '；', '：'];

/// Maximum number of held characters at the end of a text. If none of them is at a boundary, as in base64, the whole
/// text is shown.
const HELD_LIMIT_CHARS: usize = 240;

/// Maximum number of quoted characters from the end of a shown line.
const QUOTED_LIMIT_CHARS: usize = 200;

/// Minimum weight of a quoted line. A shorter one is quoted together with the lines before it.
const QUOTED_WEIGHT: u32 = 24;

/// Minimum weight of the held text after an answer that proved nothing. It is larger than at first, and sufficient
/// for any doubt.
const DOUBTED_HOLD_WEIGHT: u32 = 2 * MIN_PROOF_WEIGHT_IN_DOUBT;

/// How far a question backs up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BackUp {
    /// To the last boundary.
    Little,
    /// Hold enough that the held text cannot be mistaken, because the answer to a first question proved nothing.
    Further,
}

impl BackUp {
    /// Returns the minimum weight of the held part of this text. After the end of a word, the text may repeat that
    /// word.
    fn weight(self, text: &str) -> u32 {
        match self {
            Self::Little if text.ends_with(char::is_alphanumeric) => MIN_PROOF_WEIGHT,
            Self::Little => MIN_PROOF_WEIGHT_IN_DOUBT,
            Self::Further => DOUBTED_HOLD_WEIGHT,
        }
    }
}

/// The part of a cut text that a prompt shows, and the part that it quotes (PC-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromptExcerpt {
    /// Number of shown bytes. The received text after them is held, and the answer must begin with it.
    pub length: usize,
    /// Start of the quoted part in bytes. It ends at the end of the shown text.
    pub quoted_from: usize,
}

impl PromptExcerpt {
    /// Returns the quoted part of a text. JSON is unchanged, and other text has no white space at the end.
    pub(super) fn quoted_part<'t>(&self, text: &'t str, format: &Format) -> &'t str {
        let quoted = text.get(self.quoted_from..self.length).unwrap_or(text);
        if matches!(format, Format::Json | Format::Jsonl) { quoted } else { quoted.trim_end() }
    }
}

/// Returns where to end the shown part of this cut text. It is never within the first `least` bytes, which the client
/// wrote.
///
/// JSON is shown up to its settled text, in a string up to its last white space or its opening quote. Rows are shown
/// up to the last settled row, and text up to its last white space (PC-3).
pub(super) fn back_up(text: &str, format: &Format, how: BackUp, least: usize) -> PromptExcerpt {
    let earliest = earliest(text).max(least);
    let wanted = match format {
        Format::Json => json::boundary(text, 0, how, earliest),
        Format::Jsonl => rows(text, how, earliest),
        Format::Tags => tag(text, earliest).or_else(|| word(text, how.weight(text), earliest, true)),
        Format::Markdown | Format::Text | Format::Marker(_) | Format::Auto => {
            row(text, how.weight(text), earliest).or_else(|| word(text, how.weight(text), earliest, false))
        }
    };
    // A question needs some shown text.
    let length = wanted
        .filter(|length| {
            *length >= least && text.get(..*length).is_some_and(|shown| !shown.trim().is_empty())
        })
        .unwrap_or(text.len());
    let shown = text.get(..length).unwrap_or(text);
    let quoted_from = match format {
        Format::Json | Format::Jsonl => json::quotation_start(shown),
        Format::Tags | Format::Markdown | Format::Text | Format::Marker(_) | Format::Auto => anchor(shown),
    };
    PromptExcerpt { length, quoted_from }
}

/// Returns the earliest position that may be held, by the limit in characters.
fn earliest(text: &str) -> usize {
    text.char_indices().nth_back(HELD_LIMIT_CHARS - 1).map_or(0, |(at, _)| at)
}

/// Returns the last beginning of a word, a clause or a tag from which the text has this weight. White space at the
/// end is also held, because only the text before it can prove how much white space there is.
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

/// Returns the beginning of the last line if it is a row of a table. If it has too little content, returns that of an
/// earlier row.
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

/// Returns the position before a tag that contains the cut.
fn tag(text: &str, earliest: usize) -> Option<usize> {
    let open = text.rfind('<')?;
    let is_tag = text
        .get(open + 1..)?
        .starts_with(|sign: char| sign.is_alphabetic() || matches!(sign, '/' | '!' | '?'));
    (is_tag && !text.get(open..)?.contains('>') && open >= earliest).then_some(open)
}

/// Returns the beginning of the last row of JSON Lines if it is unfinished and not too long. Otherwise returns the
/// boundary within that row.
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

/// Returns where the quoted part of a shown text begins. It is the last line, with preceding lines if it has too
/// little content. In a long line it begins at a word near the end. It is at most half of the text, because a prompt
/// never contains a whole reply.
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

/// Returns the first beginning of a word from this position on, or the position itself.
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
