//! The joined text of a cut reply, and the pieces that could not be joined (PC-5).

use endmark_text::detect::detect;
use endmark_text::{Format, Verdict};

use super::prompted_join::is_same_answer;
use crate::stitch::{
    ReasoningSigns, continue_message_with_known_signs, continue_shown_with_known_signs,
    has_new_reasoning_signs, is_about_reply, merge_unfinished, merge_with_known_signs,
    without_closing_remark, without_reasoning,
};
use crate::{AskedFrom, Join, MergeError, Merged, Seam, SeamStyle};

/// The replacement character, which some servers write for an incomplete character.
const REPLACEMENT_CHARACTER: char = char::REPLACEMENT_CHARACTER;

/// Minimum length, in bytes, of a piece that does not occur in a text by chance.
const MIN_DISTINCTIVE_BYTES: usize = 8;

/// Maximum number of replacement characters for one incomplete character, which has at most three bytes.
const MAX_REPLACEMENT_CHARACTERS: usize = 3;

/// The joined text, and all received pieces that could not be joined.
#[derive(Debug, Clone)]
pub(super) struct JoinedText {
    /// The required format. `None` if no format is required, or if the text violates it.
    grammar: Option<Format>,
    text: String,
    /// The verdict on `text` in the required format, or `None` if it proves nothing. Markdown without open
    /// constructs may end or continue.
    verdict: Option<Verdict>,
    /// Number of bytes that the client has received.
    sent_bytes: usize,
    /// The signs of reasoning in the request.
    known_signs: ReasoningSigns,
    /// Replacement characters of an incomplete character after `text`.
    cut_character: String,
    seams: Vec<Seam>,
    /// Pieces that could not be joined, in order of arrival.
    unplaced: Vec<String>,
    /// The index of the first such piece that arrived after `text` last grew, and how many of its bytes
    /// certainly follow `text`.
    first_following: Option<(usize, usize)>,
}

/// Why a piece was not joined.
pub(super) enum JoinRefusal {
    /// Several seams are plausible, or the best one is uncertain.
    Ambiguous { best: Box<Merged>, alternatives: usize },
    /// No seam fits. The first `proven` bytes of the piece certainly follow the text.
    Unjoined { reason: String, proven: usize },
}

impl JoinedText {
    pub(super) fn new(grammar: Option<Format>, text: String, sent: usize, known: ReasoningSigns) -> Self {
        let sent = sent.min(text.len());
        let verdict = grammar.as_ref().and_then(|format| conclusive_verdict(format, &text));
        Self {
            grammar,
            text,
            verdict,
            sent_bytes: sent,
            known_signs: known,
            cut_character: String::new(),
            seams: Vec::new(),
            unplaced: Vec::new(),
            first_following: None,
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

    /// Whether no text was received that could be continued.
    pub(super) fn has_no_text(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Raises the number of bytes that the client has received. It can exceed the text while a continuation
    /// is forwarded before it is joined.
    pub(super) fn mark_sent(&mut self, bytes: usize) {
        self.sent_bytes = self.sent_bytes.max(bytes);
    }

    pub(super) fn sent_bytes(&self) -> usize {
        self.sent_bytes
    }

    /// Whether the client has received part of a piece that could not be joined. In this case, no other piece
    /// can be joined either.
    pub(super) fn has_sent_unjoined(&self) -> bool {
        self.sent_bytes > self.text.len()
    }

    /// Drops the required format after the text has violated it, because the format can no longer determine
    /// the end.
    pub(super) fn drop_grammar(&mut self) {
        self.grammar = None;
        self.verdict = None;
    }

    /// Returns the verdict on a merged text in the required format, or `None` if it proves nothing.
    pub(super) fn conclusive_verdict<'v>(&self, merged: &'v Merged) -> Option<&'v Verdict> {
        let verdict = &merged.verdict;
        self.grammar.as_ref().filter(|format| format.is_evidence(verdict, &merged.text)).map(|_| verdict)
    }

    fn detect_verdict(&self, text: &str) -> Option<Verdict> {
        self.grammar.as_ref().and_then(|format| conclusive_verdict(format, text))
    }

    /// Removes the replacement characters of an incomplete character, because the model continues with the
    /// whole character. Replacement characters that the client has received are kept.
    pub(super) fn remove_cut_character(&mut self) {
        let kept = without_cut_character(&self.text).len().max(self.sent_bytes);
        let cut_character = self.text.get(kept..).unwrap_or_default();
        if !cut_character.is_empty() {
            cut_character.clone_into(&mut self.cut_character);
            self.text.truncate(kept);
            self.verdict = self.detect_verdict(&self.text);
        }
    }

    /// Records the replacement characters after the text. If the client has received them, they belong to the
    /// text.
    pub(super) fn set_cut_character(&mut self, cut_character: &str) {
        if self.has_sent_unjoined() {
            self.text.push_str(cut_character);
            self.verdict = self.detect_verdict(&self.text);
        } else {
            cut_character.clone_into(&mut self.cut_character);
        }
    }

    /// Returns the format in which pieces are joined.
    pub(super) fn format(&self) -> &Format {
        self.grammar.as_ref().unwrap_or(&Format::Text)
    }

    /// Returns the merge of the text with a piece, which may itself be cut.
    pub(super) fn join(&self, piece: &str, join: Join, is_cut: bool) -> Result<Merged, JoinRefusal> {
        let (text, format, known) = (self.text.as_str(), self.format(), self.known_signs);
        let unfinished = |from| accept_unfinished(merge_unfinished(text, piece, format, from, known));
        let merged = match join {
            Join::Exact => self.join_exactly(piece, is_cut)?,
            Join::Stitched(from) if is_cut => unfinished(from)?,
            Join::Shown | Join::Prompted if is_cut => unfinished(AskedFrom::Unknown)?,
            Join::Stitched(from) => {
                accept_unfinished(merge_with_known_signs(text, piece, format, from, known))?
            }
            Join::Prompted => {
                accept_unfinished(merge_with_known_signs(text, piece, format, AskedFrom::Unknown, known))?
            }
            Join::Shown => accept_unfinished(continue_shown_with_known_signs(text, piece, format, known))?,
            Join::InMessage => {
                accept_unfinished(continue_message_with_known_signs(text, piece, format, known))?
            }
        };
        self.check_merge(merged)
    }

    /// Rejects a merge that changes text that the client has received, or that violates the required format.
    pub(super) fn check_merge(&self, merged: Merged) -> Result<Merged, JoinRefusal> {
        if !self.keeps_sent_text(&merged.text) {
            let reason = format!("it would change one of the {} bytes that the client has", self.sent_bytes);
            return Err(JoinRefusal::Unjoined { reason, proven: 0 });
        }
        match (&self.grammar, &merged.verdict) {
            (Some(format), Verdict::Malformed { index, reason }) => {
                let reason = format!("the text would not be valid {format} at byte {index}: {reason}");
                Err(JoinRefusal::Unjoined { reason, proven: 0 })
            }
            (Some(_), Verdict::Whole | Verdict::Truncated(_)) | (None, _) => Ok(merged),
        }
    }

    fn join_exactly(&self, piece: &str, is_cut: bool) -> Result<Merged, JoinRefusal> {
        let (reasoning, all) = without_reasoning(&self.text, piece, self.known_signs);
        let rest =
            if is_cut || self.grammar.is_some() { all } else { without_closing_remark(&self.text, all) };
        let text = format!("{}{rest}", self.text);
        let verdict = self.detect_verdict(&text).unwrap_or(Verdict::Whole);
        if let Verdict::Malformed { index, reason } = &verdict {
            let reason = format!("the text is not valid {} at byte {index}: {reason}", self.format());
            let valid = text.floor_char_boundary(*index);
            return Err(JoinRefusal::Unjoined { reason, proven: valid.saturating_sub(self.text.len()) });
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
            return Err(JoinRefusal::Ambiguous { best: Box::new(merged), alternatives: 0 });
        }
        Ok(merged)
    }

    /// Whether a text begins with the text that the client has received.
    pub(super) fn keeps_sent_text(&self, text: &str) -> bool {
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

    /// Whether an answer without a proven seam may conflict with earlier unjoined answers about the same
    /// text. It is then unknown which of them follows the text, or whether both do.
    pub(super) fn contradicts_earlier(&self, answer: &str, merged: &Merged) -> bool {
        let says_all = self.text.len() >= MIN_DISTINCTIVE_BYTES && answer.contains(self.text.trim());
        !says_all
            && self.unplaced_since_growth().iter().any(|earlier| {
                let earlier_text = earlier.trim();
                let near = self.text.ceil_char_boundary(self.text.len().saturating_sub(earlier_text.len()));
                let is_in =
                    |text: &str| earlier_text.len() >= MIN_DISTINCTIVE_BYTES && text.contains(earlier_text);
                !(answer.trim_start().starts_with(earlier_text)
                    || is_same_answer(earlier_text, answer.trim())
                    || is_in(merged.text.get(near..).unwrap_or_default())
                    || is_in(&self.text)
                    || is_about_reply(&self.text, earlier_text))
            })
    }

    /// Returns the pieces that arrived since the text last grew, and could not be joined.
    fn unplaced_since_growth(&self) -> &[String] {
        self.first_following.and_then(|(first, _)| self.unplaced.get(first..)).unwrap_or_default()
    }

    /// Adds the pieces that could not be joined before this seam to its dropped text.
    fn with_unjoined(&self, seam: Seam) -> Seam {
        let pieces: Vec<&str> = self.unplaced_since_growth().iter().map(String::as_str).collect();
        seam.prepend_dropped(&pieces)
    }

    /// Replaces the text with a merge.
    pub(super) fn accept(&mut self, merged: Merged) {
        // If the new seam is before an earlier one, it replaces that one.
        for seam in &mut self.seams {
            seam.at = seam.at.min(merged.seam.at);
        }
        self.verdict = self.conclusive_verdict(&merged).cloned();
        self.seams.push(self.with_unjoined(merged.seam));
        self.text = merged.text;
        self.cut_character.clear();
        self.first_following = None;
    }

    /// Records that the model had nothing to add. The text was complete, and its replacement characters are
    /// kept.
    pub(super) fn accept_end(&mut self, whitespace: &str) {
        let cut_character = std::mem::take(&mut self.cut_character);
        self.text.push_str(&cut_character);
        self.seams.push(self.with_unjoined(exact_seam(self.text.len())));
        self.text.push_str(whitespace);
    }

    /// Stores a piece that could not be joined. Its first `proven` bytes certainly follow the text.
    pub(super) fn keep_unjoined(&mut self, piece: String, proven: usize) {
        if piece.is_empty() {
            return;
        }
        self.first_following.get_or_insert((self.unplaced.len(), proven));
        self.unplaced.push(piece);
    }

    /// Stores the received text that this text replaces. With `kept_in_front`, this text already begins with
    /// the old blank text, which is not stored again.
    pub(super) fn keep_replaced(&mut self, replaced: Self, kept_in_front: bool) {
        let blank = if kept_in_front { None } else { Some(replaced.text) };
        self.unplaced.extend(blank.into_iter().chain(replaced.unplaced).filter(|piece| !piece.is_empty()));
    }

    /// Returns all received text, and the length of its verified beginning in bytes.
    pub(super) fn into_merged_raw(mut self) -> (String, usize) {
        let mut raw = self.text;
        let mut verified_len = raw.len();
        if let Some((index, proven @ 1..)) = self.first_following {
            verified_len += proven;
            raw.push_str(&self.unplaced.remove(index));
        }
        raw.push_str(&self.cut_character);
        raw.extend(self.unplaced);
        (raw, verified_len)
    }

    /// Returns the verified beginning, for delivery if the text remains cut. It contains everything that the
    /// client has received.
    pub(super) fn verified_beginning(&self) -> String {
        let sent_beyond = self.sent_bytes.saturating_sub(self.text.len());
        let following = self.first_following.and_then(|(index, proven)| {
            let piece = self.unplaced.get(index)?;
            piece.get(..piece.ceil_char_boundary(proven.max(sent_beyond)))
        });
        match following {
            Some(end) if !end.is_empty() => format!("{}{end}", self.text),
            Some(_) | None => format!("{}{}", self.text, self.cut_character),
        }
    }
}

/// Returns the verdict on a text in this format, or `None` if it proves nothing (PC-8).
fn conclusive_verdict(format: &Format, text: &str) -> Option<Verdict> {
    Some(detect(text.as_bytes(), format).verdict).filter(|verdict| format.is_evidence(verdict, text))
}

/// Returns a text without the replacement characters of an incomplete character at its end.
pub(super) fn without_cut_character(text: &str) -> &str {
    let cut = text
        .chars()
        .rev()
        .take(MAX_REPLACEMENT_CHARACTERS)
        .take_while(|c| *c == REPLACEMENT_CHARACTER)
        .count();
    text.get(..text.len() - cut * REPLACEMENT_CHARACTER.len_utf8()).unwrap_or(text)
}

/// Accepts a join whose text is unfinished.
fn accept_unfinished(joined: Result<Merged, MergeError>) -> Result<Merged, JoinRefusal> {
    match joined {
        Ok(merged) => Ok(merged),
        Err(MergeError::StillTruncated { merged }) => Ok(*merged),
        Err(MergeError::Ambiguous { best, alternatives }) => {
            Err(JoinRefusal::Ambiguous { best, alternatives })
        }
        Err(
            MergeError::Malformed { reason, .. }
            | MergeError::NothingToJoin { reason, .. }
            | MergeError::NoSeam { reason, .. },
        ) => Err(JoinRefusal::Unjoined { reason, proven: 0 }),
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
