//! Finds the position of an answer to a prompt: where it proves its seam, or where it continues at the cut anyway.
//! Detects if neither is certain (PC-4).

use endmark_text::Format;
use endmark_text::detect::Detector;

use super::body::{Body, Refusal};
use super::proof::{Proof, Question};
use super::weight::{MIN_PROOF_WEIGHT_IN_DOUBT, has_unspaced, weight};
use crate::stitch::{is_about_reply, merge_proven, without_reasoning};
use crate::{AskedFrom, Join, MergeError, Merged, Seam, SeamStyle};

/// Minimum length in bytes from which equal text is not a coincidence.
const MIN_EQUAL_BYTES: usize = 24;

/// An earlier answer about the same text that did not prove a seam.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Earlier {
    pub(super) answer: String,
    /// How much of the text it was shown, in bytes.
    pub(super) shown_bytes: usize,
}

impl Body {
    /// Joins the answer to a prompt about this text. Changes nothing.
    pub(super) fn place(
        &self,
        question: &Question<'_>,
        answer: &str,
        is_cut: bool,
        earlier: Option<&Earlier>,
    ) -> Result<Merged, Refusal> {
        let (reasoning, rest) = without_reasoning(self.text(), answer, self.known_signs());
        if !reasoning.is_empty() && !rest.trim().is_empty() {
            // An answer repeats the text after its reasoning.
            if let Proof::Proven { start, rest_at, wrapped } = question.proof(rest, true) {
                let style = if wrapped { SeamStyle::Preamble } else { SeamStyle::Overlap };
                let at = |place: usize| reasoning.len() + place;
                return self.join_proven(answer, (at(start), at(rest_at)), style, is_cut);
            }
        }
        if question.is_recited(answer) {
            return Err(unjoined_refusal("it repeats the words of the question"));
        }
        let holds_nothing = question.held_text().trim().is_empty();
        match question.proof(answer, true) {
            Proof::Proven { start, rest_at, wrapped } => {
                let style = if wrapped { SeamStyle::Preamble } else { SeamStyle::Overlap };
                return self.join_proven(answer, (start, rest_at), style, is_cut);
            }
            Proof::Doubtful { rest_at } => {
                let merged = self.join_proven(answer, (rest_at, rest_at), SeamStyle::Overlap, is_cut)?;
                // The grammar may permit nothing else.
                return if self.has_tokens() && !self.accepts_after(self.text().len(), answer) {
                    Ok(merged)
                } else {
                    Err(Refusal::Ambiguous { best: Box::new(merged), alternatives: 1 })
                };
            }
            Proof::Nothing | Proof::Open => {}
        }
        if holds_nothing && self.has_tokens() {
            return self.join(answer, Join::Stitched(question.asked_from()), is_cut);
        }
        if let Some(rewritten) = self.rewritten(question, answer, is_cut) {
            return rewritten;
        }
        let is_talk = || is_about_reply(self.text(), answer);
        if !self.has_tokens() && !begins_in_a_sentence(answer) && is_talk() {
            return Err(unjoined_refusal("it speaks about the reply, and begins with nothing of it"));
        }
        let joined = self.join_all(answer, is_cut);
        if holds_nothing {
            // In scripts without spaces, the answer may repeat the last word or continue after it.
            return match joined {
                Ok(merged) if has_unspaced(self.text()) => {
                    Err(Refusal::Ambiguous { best: Box::new(merged), alternatives: 1 })
                }
                other => other,
            };
        }
        let (merged, is_settled) = match joined {
            Ok(merged) => (merged, true),
            Err(Refusal::Ambiguous { best, .. }) => (*best, false),
            Err(unjoined) => return Err(unjoined),
        };
        let Some(rest) = merged.text.strip_prefix(self.text().trim_end()) else {
            return Err(unjoined_refusal("it contradicts the end of what was received"));
        };
        let rest =
            if merged.text.starts_with(self.text()) { &merged.text[self.text().len()..] } else { rest };
        let is_at_cut = merged.seam.at == self.text().len() && is_plain(merged.seam.style);
        if is_settled && is_at_cut && !self.may_follow_shown(question, rest) {
            return Ok(merged);
        }
        // A model that answers different questions in the same way continues at the cut, and not at the end of the
        // shown text.
        let is_from_the_cut = earlier.is_some_and(|earlier| {
            earlier.shown_bytes != question.shown_bytes && is_same(&earlier.answer, answer)
        });
        // At temperature 0, a model also gives the same answer if it repeats its sentence or value. Therefore only a
        // seam without rivals is accepted.
        if is_from_the_cut && is_settled && !is_talk() {
            if answer.starts_with(rest.trim_end()) {
                return self.join_proven(answer, (0, 0), SeamStyle::Exact, is_cut);
            }
            if is_at_cut {
                return Ok(merged);
            }
        }
        Err(Refusal::Ambiguous { best: Box::new(merged), alternatives: usize::from(is_settled) })
    }

    /// Joins an answer that does not prove a seam. A few letters do not show whether the text addresses its reader.
    /// The text's own last words may therefore look like a remark: a recorded reply that was cut after "A" lost its
    /// closing sentence.
    fn join_all(&self, answer: &str, is_cut: bool) -> Result<Merged, Refusal> {
        let merged = self.join(answer, Join::Stitched(AskedFrom::Unknown), is_cut)?;
        let is_short = !self.has_tokens() && weight(self.text()) < MIN_PROOF_WEIGHT_IN_DOUBT;
        if is_short && merged.seam.dropped_bytes > 0 {
            return Err(Refusal::Ambiguous { best: Box::new(merged), alternatives: 1 });
        }
        Ok(merged)
    }

    /// Joins the proven part of an answer. It begins to repeat the text at the first of these positions, and
    /// continues it at the second.
    fn join_proven(
        &self,
        answer: &str,
        (start, rest_at): (usize, usize),
        style: SeamStyle,
        is_cut: bool,
    ) -> Result<Merged, Refusal> {
        let rest = answer.get(rest_at..).unwrap_or_default();
        let before = answer.get(..start).unwrap_or_default();
        let merged =
            match merge_proven(self.text(), (before, rest), self.format(), is_cut, self.known_signs()) {
                Ok(merged) => merged,
                Err(MergeError::StillTruncated { merged }) => *merged,
                Err(MergeError::Ambiguous { best, alternatives }) => {
                    return Err(Refusal::Ambiguous { best, alternatives });
                }
                Err(
                    MergeError::Malformed { reason, .. }
                    | MergeError::NothingToJoin { reason, .. }
                    | MergeError::NoSeam { reason, .. },
                ) => {
                    return Err(unjoined_refusal(&reason));
                }
            };
        let seam =
            Seam { style, ..merged.seam }.prepend_dropped(&[answer.get(..rest_at).unwrap_or_default()]);
        self.check_merge(Merged { seam, ..merged })
    }

    /// Accepts an answer that repeats the required beginning but changes the last word, if no part of that word was
    /// sent. Returns `None` otherwise.
    fn rewritten(
        &self,
        question: &Question<'_>,
        answer: &str,
        is_cut: bool,
    ) -> Option<Result<Merged, Refusal>> {
        if self.has_tokens() {
            return None;
        }
        let rest = answer.get(question.position_after_shown(answer)?..)?;
        let word = rest.split_whitespace().next().unwrap_or_default();
        if self.sent_bytes() > question.shown_bytes || !may_replace(question.held_text(), word) {
            return Some(Err(unjoined_refusal("it writes the end of what was received otherwise")));
        }
        let shown = self.text().get(..question.shown_bytes)?;
        let merged = match merge_proven(shown, ("", rest), self.format(), is_cut, self.known_signs()) {
            Ok(merged) => merged,
            Err(MergeError::StillTruncated { merged }) => *merged,
            Err(MergeError::Ambiguous { best, alternatives }) => {
                return Some(Err(Refusal::Ambiguous { best, alternatives }));
            }
            Err(
                MergeError::Malformed { reason, .. }
                | MergeError::NothingToJoin { reason, .. }
                | MergeError::NoSeam { reason, .. },
            ) => {
                return Some(Err(unjoined_refusal(&reason)));
            }
        };
        let before = answer.get(..answer.len() - rest.len()).unwrap_or_default();
        let seam = Seam { style: SeamStyle::Rewritten, ..merged.seam }
            .prepend_dropped(&[question.held_text(), before]);
        Some(self.check_merge(Merged { seam, ..merged }))
    }

    /// Whether a rest could follow the shown text as well as the cut. In that case it could contradict the held text.
    fn may_follow_shown(&self, question: &Question<'_>, rest: &str) -> bool {
        if self.has_tokens() && !self.accepts_after(question.shown_bytes, rest) {
            return false;
        }
        let shown = question.so_far.get(..question.shown_bytes).unwrap_or_default();
        // After white space, no text begins like this. A word can be continued by anything.
        let continues_word =
            rest.starts_with(|sign: char| sign.is_whitespace() || CLOSING_SIGNS.contains(&sign));
        !(continues_word
            && shown.ends_with(char::is_whitespace)
            && !question.so_far.ends_with(char::is_whitespace))
    }

    /// Whether the grammar accepts this after the first `keep` bytes.
    fn accepts_after(&self, keep: usize, rest: &str) -> bool {
        let mut detector = Detector::new(self.format());
        detector.push(self.text().get(..keep).unwrap_or_default().as_bytes());
        detector.refuse_new_control_characters();
        detector.push(rest.trim_end().as_bytes());
        !detector.is_malformed()
    }

    /// Whether the text has a grammar with tokens.
    fn has_tokens(&self) -> bool {
        matches!(self.grammar(), Some(Format::Json | Format::Jsonl))
    }
}

/// Signs that directly follow a word.
const CLOSING_SIGNS: [char; 10] = ['.', ',', ';', ':', '!', '?', ')', '…', '。', '，'];

/// Whether a seam removes and adds nothing.
fn is_plain(style: SeamStyle) -> bool {
    matches!(
        style,
        SeamStyle::Exact
            | SeamStyle::Reasoning
            | SeamStyle::Remark
            | SeamStyle::Preamble
            | SeamStyle::Fence
            | SeamStyle::Quotation
    )
}

/// Whether a word may replace the held word. This is possible only in scripts with spaces between words, and never
/// for a number.
fn may_replace(held: &str, word: &str) -> bool {
    let digits = |text: &str| text.chars().filter(|sign| sign.is_numeric()).collect::<String>();
    let is_one = held.split_whitespace().nth(1).is_none();
    is_one && !word.is_empty() && !has_unspaced(held) && !has_unspaced(word) && digits(held) == digits(word)
}

/// Whether an answer begins in the middle of a sentence.
fn begins_in_a_sentence(answer: &str) -> bool {
    answer.starts_with(|sign: char| {
        sign.is_whitespace() || sign.is_lowercase() || CLOSING_SIGNS.contains(&sign)
    })
}

/// Whether two answers are equal in the part that both have.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.trim_end(), other.trim_end());
    let is_beginning = one.starts_with(other) || other.starts_with(one);
    is_beginning && (one.len().min(other.len()) >= MIN_EQUAL_BYTES || one == other)
}

fn unjoined_refusal(reason: &str) -> Refusal {
    Refusal::Unjoined { reason: reason.to_owned(), proven: 0 }
}
