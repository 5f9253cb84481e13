//! The joined text of a cut reply, and the pieces that could not be joined (PC-5).

use endmark_text::detect::detect;
use endmark_text::{Format, Verdict};

use super::placing::is_same;
use crate::stitch::{
    ReasoningSigns, continue_message_knowing, continue_shown_knowing, has_new_reasoning_signs,
    is_about_reply, merge_knowing, merge_unfinished, without_closing_remark, without_reasoning,
};
use crate::{AskedFrom, Join, MergeError, Merged, Seam, SeamStyle};

/// The character that a server writes for an incomplete character.
const CUT_CHARACTER: char = char::REPLACEMENT_CHARACTER;

/// Minimum length in bytes from which a piece does not occur in a text by chance.
const MIN_DISTINCTIVE_BYTES: usize = 8;

/// Maximum number of replacement characters for one character: one for each of its bytes.
const MAX_CUT_BYTES: usize = 3;

/// The joined text, and everything else received.
#[derive(Debug, Clone)]
pub(super) struct Body {
    /// The required grammar, if any, unless the text has violated it.
    grammar: Option<Format>,
    text: String,
    /// The verdict of the grammar on `text`, if it proves anything. Markdown without open elements may end or continue.
    verdict: Option<Verdict>,
    /// Bytes that the client has.
    sent_bytes: usize,
    /// The signs of reasoning in the request.
    known_signs: ReasoningSigns,
    /// Replacement characters of a cut character after `text`.
    cut_character: String,
    seams: Vec<Seam>,
    /// Pieces that could not be joined, in order.
    unplaced: Vec<String>,
    /// The first of them that arrived after the current `text`, and how many of its bytes certainly follow it.
    following: Option<(usize, usize)>,
}

/// The reason why a piece was not joined.
pub(super) enum Refusal {
    /// Several seams are plausible.
    Ambiguous { best: Box<Merged>, alternatives: usize },
    /// No seam fits. The first `proven` bytes of the piece certainly follow the text.
    Unjoined { reason: String, proven: usize },
}

impl Body {
    pub(super) fn new(grammar: Option<Format>, text: String, sent: usize, known: ReasoningSigns) -> Self {
        let sent = sent.min(text.len());
        let verdict = grammar.as_ref().and_then(|format| testimony(format, &text));
        Self {
            grammar,
            text,
            verdict,
            sent_bytes: sent,
            known_signs: known,
            cut_character: String::new(),
            seams: Vec::new(),
            unplaced: Vec::new(),
            following: None,
        }
    }

    pub(super) fn known_signs(&self) -> ReasoningSigns {
        self.known_signs
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn grammar(&self) -> Option<&Format> {
        self.grammar.as_ref()
    }

    pub(super) fn verdict(&self) -> Option<&Verdict> {
        self.verdict.as_ref()
    }

    pub(super) fn seams(&self) -> &[Seam] {
        &self.seams
    }

    /// Whether no text arrived that could be continued.
    pub(super) fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Raises the number of bytes that the client has. It may exceed the text if a continuation is forwarded before
    /// it is joined.
    pub(super) fn mark_sent(&mut self, bytes: usize) {
        self.sent_bytes = self.sent_bytes.max(bytes);
    }

    pub(super) fn sent_bytes(&self) -> usize {
        self.sent_bytes
    }

    /// Whether the client has bytes of a piece that could not be joined. In that case no other piece can be joined
    /// either.
    pub(super) fn has_sent_unjoined(&self) -> bool {
        self.sent_bytes > self.text.len()
    }

    /// Drops the required grammar, because the text violates it. It therefore no longer determines where the text ends.
    pub(super) fn give_up_grammar(&mut self) {
        self.grammar = None;
        self.verdict = None;
    }

    /// Returns the verdict of the grammar on a joined text, if it proves anything.
    pub(super) fn testimony<'v>(&self, merged: &'v Merged) -> Option<&'v Verdict> {
        let verdict = &merged.verdict;
        self.grammar.as_ref().filter(|format| format.testifies(verdict, &merged.text)).map(|_| verdict)
    }

    fn detect_verdict(&self, text: &str) -> Option<Verdict> {
        self.grammar.as_ref().and_then(|format| testimony(format, text))
    }

    /// Removes the replacement characters of a cut character, because the model continues with the character itself.
    /// Replacement characters that were sent stay.
    pub(super) fn leave_out_cut_character(&mut self) {
        let kept = without_cut_character(&self.text).len().max(self.sent_bytes);
        let cut_character = self.text.get(kept..).unwrap_or_default();
        if !cut_character.is_empty() {
            cut_character.clone_into(&mut self.cut_character);
            self.text.truncate(kept);
            self.verdict = self.detect_verdict(&self.text);
        }
    }

    /// Records the replacement characters after the text. If they were already sent, they belong to the text.
    pub(super) fn set_cut_character(&mut self, cut_character: &str) {
        if self.has_sent_unjoined() {
            self.text.push_str(cut_character);
            self.verdict = self.detect_verdict(&self.text);
        } else {
            cut_character.clone_into(&mut self.cut_character);
        }
    }

    /// Returns the format for joining a piece.
    pub(super) fn format(&self) -> &Format {
        self.grammar.as_ref().unwrap_or(&Format::Text)
    }

    /// Tries to join a piece, which may itself be cut. Changes nothing.
    pub(super) fn join(&self, piece: &str, join: Join, is_cut: bool) -> Result<Merged, Refusal> {
        let (text, format, known) = (self.text.as_str(), self.format(), self.known_signs);
        let unfinished = |from| accept_unfinished(merge_unfinished(text, piece, format, from, known));
        let merged = match join {
            Join::Exact => self.join_exactly(piece, is_cut)?,
            Join::Stitched(from) if is_cut => unfinished(from)?,
            Join::Shown | Join::Prompted if is_cut => unfinished(AskedFrom::Unknown)?,
            Join::Stitched(from) => accept_unfinished(merge_knowing(text, piece, format, from, known))?,
            Join::Prompted => {
                accept_unfinished(merge_knowing(text, piece, format, AskedFrom::Unknown, known))?
            }
            Join::Shown => accept_unfinished(continue_shown_knowing(text, piece, format, known))?,
            Join::InMessage => accept_unfinished(continue_message_knowing(text, piece, format, known))?,
        };
        self.check_merge(merged)
    }

    /// Accepts a merge only if it keeps the sent text and conforms to the grammar.
    pub(super) fn check_merge(&self, merged: Merged) -> Result<Merged, Refusal> {
        if !self.keeps_sent(&merged.text) {
            let reason = format!("it would change one of the {} bytes that the client has", self.sent_bytes);
            return Err(Refusal::Unjoined { reason, proven: 0 });
        }
        match (&self.grammar, &merged.verdict) {
            (Some(format), Verdict::Malformed { index, reason }) => {
                let reason = format!("the text would not be valid {format} at byte {index}: {reason}");
                Err(Refusal::Unjoined { reason, proven: 0 })
            }
            (Some(_), Verdict::Whole | Verdict::Truncated(_)) | (None, _) => Ok(merged),
        }
    }

    fn join_exactly(&self, piece: &str, is_cut: bool) -> Result<Merged, Refusal> {
        let (reasoning, all) = without_reasoning(&self.text, piece, self.known_signs);
        let rest =
            if is_cut || self.grammar.is_some() { all } else { without_closing_remark(&self.text, all) };
        let text = format!("{}{rest}", self.text);
        let verdict = self.detect_verdict(&text).unwrap_or(Verdict::Whole);
        if let Verdict::Malformed { index, reason } = &verdict {
            let reason = format!("the text is not valid {} at byte {index}: {reason}", self.format());
            let valid = text.floor_char_boundary(*index);
            return Err(Refusal::Unjoined { reason, proven: valid.saturating_sub(self.text.len()) });
        }
        let style = match () {
            () if !reasoning.is_empty() => SeamStyle::Reasoning,
            () if rest.len() < all.len() => SeamStyle::Remark,
            () => SeamStyle::Exact,
        };
        let left_out = [reasoning, all.get(rest.len()..).unwrap_or_default()];
        let seam = Seam { style, ..exact_seam(self.text.len()) }.prepend_dropped(&left_out);
        let merged = Merged { text, seam, verdict };
        if has_new_reasoning_signs(&self.text, rest, self.known_signs) {
            return Err(Refusal::Ambiguous { best: Box::new(merged), alternatives: 0 });
        }
        Ok(merged)
    }

    /// Whether a text begins with the part of this text that the client has.
    pub(super) fn keeps_sent(&self, text: &str) -> bool {
        let sent = self.text.as_bytes().get(..self.sent_bytes).unwrap_or(self.text.as_bytes());
        text.as_bytes().starts_with(sent)
    }

    /// Whether a merge adds text, or settles more of the existing text.
    pub(super) fn is_progress(&self, merged: &Merged) -> bool {
        let settled = |verdict: &Verdict| verdict.truncation().map(|cut| cut.truncation_index);
        let settled_more = match (self.verdict.as_ref().and_then(settled), settled(&merged.verdict)) {
            (Some(before), Some(after)) => after > before,
            (None, _) | (_, None) => false,
        };
        merged.text.len() > self.text.len() || settled_more
    }

    /// Whether an answer without proof may conflict with an earlier answer that was not joined since the text grew.
    /// It is unknown which of them follows the text, or whether both do.
    pub(super) fn contradicts_earlier(&self, answer: &str, merged: &Merged) -> bool {
        let says_all = self.text.len() >= MIN_DISTINCTIVE_BYTES && answer.contains(self.text.trim());
        !says_all
            && self.unplaced_since_growth().iter().any(|earlier| {
                let earlier_text = earlier.trim();
                let near = self.text.ceil_char_boundary(self.text.len().saturating_sub(earlier_text.len()));
                let is_in =
                    |text: &str| earlier_text.len() >= MIN_DISTINCTIVE_BYTES && text.contains(earlier_text);
                !(answer.trim_start().starts_with(earlier_text)
                    || is_same(earlier_text, answer.trim())
                    || is_in(merged.text.get(near..).unwrap_or_default())
                    || is_in(&self.text)
                    || is_about_reply(&self.text, earlier_text))
            })
    }

    /// Returns the pieces that could not be joined since the text last grew.
    fn unplaced_since_growth(&self) -> &[String] {
        self.following.and_then(|(first, _)| self.unplaced.get(first..)).unwrap_or_default()
    }

    /// Adds to a seam the pieces that could not be joined before it.
    fn with_unjoined(&self, seam: Seam) -> Seam {
        let pieces: Vec<&str> = self.unplaced_since_growth().iter().map(String::as_str).collect();
        seam.prepend_dropped(&pieces)
    }

    /// Replaces the text by a merge.
    pub(super) fn accept(&mut self, merged: Merged) {
        // A new seam may lie before an earlier one, and then replaces it.
        for seam in &mut self.seams {
            seam.at = seam.at.min(merged.seam.at);
        }
        self.verdict = self.testimony(&merged).cloned();
        self.seams.push(self.with_unjoined(merged.seam));
        self.text = merged.text;
        self.cut_character.clear();
        self.following = None;
    }

    /// Records that the model had nothing to add. The text was whole, and the replacement characters belong to it.
    pub(super) fn accept_end(&mut self, whitespace: &str) {
        let cut_character = std::mem::take(&mut self.cut_character);
        self.text.push_str(&cut_character);
        self.seams.push(self.with_unjoined(exact_seam(self.text.len())));
        self.text.push_str(whitespace);
    }

    /// Keeps a piece that could not be joined. Its first `proven` bytes certainly follow.
    pub(super) fn keep_unplaced(&mut self, piece: String, proven: usize) {
        if piece.is_empty() {
            return;
        }
        self.following.get_or_insert((self.unplaced.len(), proven));
        self.unplaced.push(piece);
    }

    /// Keeps the received text that this one replaces. A blank text is not kept if this one begins with it.
    pub(super) fn keep_replaced(&mut self, replaced: Self, kept_in_front: bool) {
        let blank = if kept_in_front { None } else { Some(replaced.text) };
        self.unplaced.extend(blank.into_iter().chain(replaced.unplaced).filter(|piece| !piece.is_empty()));
    }

    /// Returns all received text, and the length of its verified beginning.
    pub(super) fn into_merged_raw(mut self) -> (String, usize) {
        let mut raw = self.text;
        let mut verified_len = raw.len();
        if let Some((index, proven @ 1..)) = self.following {
            verified_len += proven;
            raw.push_str(&self.unplaced.remove(index));
        }
        raw.push_str(&self.cut_character);
        raw.extend(self.unplaced);
        (raw, verified_len)
    }

    /// Returns the verified beginning for delivery if the text stays cut. It contains all sent text.
    pub(super) fn verified_beginning(&self) -> String {
        let sent_beyond = self.sent_bytes.saturating_sub(self.text.len());
        let following = self.following.and_then(|(index, proven)| {
            let piece = self.unplaced.get(index)?;
            piece.get(..piece.ceil_char_boundary(proven.max(sent_beyond)))
        });
        match following {
            Some(end) if !end.is_empty() => format!("{}{end}", self.text),
            Some(_) | None => format!("{}{}", self.text, self.cut_character),
        }
    }
}

/// Returns the verdict of the grammar on a text, if it proves anything (PC-8).
fn testimony(format: &Format, text: &str) -> Option<Verdict> {
    Some(detect(text.as_bytes(), format).verdict).filter(|verdict| format.testifies(verdict, text))
}

/// Returns a text without trailing replacement characters of a cut character.
pub(super) fn without_cut_character(text: &str) -> &str {
    let cut = text.chars().rev().take(MAX_CUT_BYTES).take_while(|c| *c == CUT_CHARACTER).count();
    text.get(..text.len() - cut * CUT_CHARACTER.len_utf8()).unwrap_or(text)
}

/// Returns the joined text, even if its end is missing.
fn accept_unfinished(joined: Result<Merged, MergeError>) -> Result<Merged, Refusal> {
    match joined {
        Ok(merged) => Ok(merged),
        Err(MergeError::StillTruncated { merged }) => Ok(*merged),
        Err(MergeError::Ambiguous { best, alternatives }) => Err(Refusal::Ambiguous { best, alternatives }),
        Err(
            MergeError::Malformed { reason, .. }
            | MergeError::NothingToJoin { reason, .. }
            | MergeError::NoSeam { reason, .. },
        ) => Err(Refusal::Unjoined { reason, proven: 0 }),
    }
}

fn exact_seam(at: usize) -> Seam {
    Seam {
        at,
        style: SeamStyle::Exact,
        dropped_bytes: 0,
        dropped: String::new(),
        confidence: 1.0,
        alternatives: 0,
    }
}
