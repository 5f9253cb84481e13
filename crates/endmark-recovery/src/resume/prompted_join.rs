//! Finds where the answer to a prompt continues the text: at a proven seam, or at the cut. Rejects the answer
//! if neither is certain (PC-4).

use endmark_text::Format;
use endmark_text::detect::Detector;

use super::joined_text::{JoinRefusal, JoinedText};
use super::proof::{PromptContext, SeamProof};
use super::weight::{MIN_PROOF_WEIGHT_IN_DOUBT, has_unspaced_script, weight};
use crate::stitch::{is_about_reply, merge_proven, without_reasoning};
use crate::{AskedFrom, Join, MergeError, Merged, Seam, SeamStyle};

/// Minimum length, in bytes, of equal text that is not a coincidence.
const MIN_EQUAL_BYTES: usize = 24;

/// An earlier answer about the same text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EarlierAnswer {
    pub(super) answer: String,
    /// Number of bytes of the text that its prompt showed.
    pub(super) shown_bytes: usize,
}

impl JoinedText {
    /// Returns the merge of the text with the answer to a prompt.
    pub(super) fn join_prompted(
        &self,
        question: &PromptContext<'_>,
        answer: &str,
        is_cut: bool,
        earlier: Option<&EarlierAnswer>,
    ) -> Result<Merged, JoinRefusal> {
        let (reasoning, rest) = without_reasoning(self.text(), answer, self.known_signs());
        if !reasoning.is_empty() && !rest.trim().is_empty() {
            // After its reasoning, the answer may repeat the text and so prove the seam.
            if let SeamProof::Proven { start, rest_at, wrapped } = question.proof(rest, true) {
                let style = if wrapped { SeamStyle::Preamble } else { SeamStyle::Overlap };
                let at = |place: usize| reasoning.len() + place;
                return self.join_proven(answer, (at(start), at(rest_at)), style, is_cut);
            }
        }
        if question.repeats_prompt(answer) {
            return Err(unjoined_refusal("it repeats the words of the prompt"));
        }
        let holds_nothing = question.held_text().trim().is_empty();
        match question.proof(answer, true) {
            SeamProof::Proven { start, rest_at, wrapped } => {
                let style = if wrapped { SeamStyle::Preamble } else { SeamStyle::Overlap };
                return self.join_proven(answer, (start, rest_at), style, is_cut);
            }
            SeamProof::Doubtful { rest_at } => {
                let merged = self.join_proven(answer, (rest_at, rest_at), SeamStyle::Overlap, is_cut)?;
                // The seam is certain if the grammar permits no continuation at the cut.
                return if self.has_tokens() && !self.accepts_after(self.text().len(), answer) {
                    Ok(merged)
                } else {
                    Err(JoinRefusal::Ambiguous { best: Box::new(merged), alternatives: 1 })
                };
            }
            SeamProof::Nothing | SeamProof::Open => {}
        }
        if holds_nothing && self.has_tokens() {
            return self.join(answer, Join::Stitched(question.asked_from()), is_cut);
        }
        if let Some(rewritten) = self.join_rewritten(question, answer, is_cut) {
            return rewritten;
        }
        let is_talk = || is_about_reply(self.text(), answer);
        if !self.has_tokens() && !begins_in_a_sentence(answer) && is_talk() {
            return Err(unjoined_refusal("it talks about the reply instead of continuing it"));
        }
        let joined = self.join_all(answer, is_cut);
        if holds_nothing {
            // In a script without spaces, the answer may repeat the last word or continue after it.
            return match joined {
                Ok(merged) if has_unspaced_script(self.text()) => {
                    Err(JoinRefusal::Ambiguous { best: Box::new(merged), alternatives: 1 })
                }
                other => other,
            };
        }
        let (merged, is_settled) = match joined {
            Ok(merged) => (merged, true),
            Err(JoinRefusal::Ambiguous { best, .. }) => (*best, false),
            Err(unjoined) => return Err(unjoined),
        };
        let Some(rest) = merged.text.strip_prefix(self.text().trim_end()) else {
            return Err(unjoined_refusal("it contradicts the end of the received text"));
        };
        let rest =
            if merged.text.starts_with(self.text()) { &merged.text[self.text().len()..] } else { rest };
        let is_at_cut = merged.seam.at == self.text().len() && is_unchanged_join(merged.seam.style);
        if is_settled && is_at_cut && !self.may_follow_shown(question, rest) {
            return Ok(merged);
        }
        // If two prompts show different parts of the text but get the same answer, the answer continues at
        // the cut, and not at the end of the shown part.
        let is_from_the_cut = earlier.is_some_and(|earlier| {
            earlier.shown_bytes != question.shown_bytes && is_same_answer(&earlier.answer, answer)
        });
        // At temperature 0, a model also gives the same answer twice if it rewrites its sentence or value.
        // Therefore, the seam must have no rivals.
        if is_from_the_cut && is_settled && !is_talk() {
            if answer.starts_with(rest.trim_end()) {
                return self.join_proven(answer, (0, 0), SeamStyle::Exact, is_cut);
            }
            if is_at_cut {
                return Ok(merged);
            }
        }
        Err(JoinRefusal::Ambiguous { best: Box::new(merged), alternatives: usize::from(is_settled) })
    }

    /// Joins an answer that proves no seam. In a very short text, no text may be removed: a few letters do
    /// not show whether the text addresses its reader. A recorded reply that was cut after "A" lost its
    /// closing sentence in this way.
    fn join_all(&self, answer: &str, is_cut: bool) -> Result<Merged, JoinRefusal> {
        let merged = self.join(answer, Join::Stitched(AskedFrom::Unknown), is_cut)?;
        let is_short = !self.has_tokens() && weight(self.text()) < MIN_PROOF_WEIGHT_IN_DOUBT;
        if is_short && merged.seam.dropped_bytes > 0 {
            return Err(JoinRefusal::Ambiguous { best: Box::new(merged), alternatives: 1 });
        }
        Ok(merged)
    }

    /// Joins an answer with a proven seam. `start` is where the answer begins to repeat the text, and
    /// `rest_at` is where it continues the text.
    fn join_proven(
        &self,
        answer: &str,
        (start, rest_at): (usize, usize),
        style: SeamStyle,
        is_cut: bool,
    ) -> Result<Merged, JoinRefusal> {
        let rest = answer.get(rest_at..).unwrap_or_default();
        let before = answer.get(..start).unwrap_or_default();
        let merged =
            match merge_proven(self.text(), (before, rest), self.format(), is_cut, self.known_signs()) {
                Ok(merged) => merged,
                Err(MergeError::StillTruncated { merged }) => *merged,
                Err(MergeError::Ambiguous { best, alternatives }) => {
                    return Err(JoinRefusal::Ambiguous { best, alternatives });
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

    /// Joins an answer that repeats the text but spells the last word differently. The client must not have
    /// received any of that word. Returns `None` if the answer does not repeat the text in this way.
    fn join_rewritten(
        &self,
        question: &PromptContext<'_>,
        answer: &str,
        is_cut: bool,
    ) -> Option<Result<Merged, JoinRefusal>> {
        if self.has_tokens() {
            return None;
        }
        let rest = answer.get(question.position_after_shown(answer)?..)?;
        let word = rest.split_whitespace().next().unwrap_or_default();
        if self.sent_bytes() > question.shown_bytes || !may_respell(question.held_text(), word) {
            return Some(Err(unjoined_refusal("it changes the end of the received text")));
        }
        let shown = self.text().get(..question.shown_bytes)?;
        let merged = match merge_proven(shown, ("", rest), self.format(), is_cut, self.known_signs()) {
            Ok(merged) => merged,
            Err(MergeError::StillTruncated { merged }) => *merged,
            Err(MergeError::Ambiguous { best, alternatives }) => {
                return Some(Err(JoinRefusal::Ambiguous { best, alternatives }));
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

    /// Whether the rest could also follow the shown part of the text. If so, it could be an alternative to
    /// the held part.
    fn may_follow_shown(&self, question: &PromptContext<'_>, rest: &str) -> bool {
        if self.has_tokens() && !self.accepts_after(question.shown_bytes, rest) {
            return false;
        }
        let shown = question.so_far.get(..question.shown_bytes).unwrap_or_default();
        // The shown part ends with whitespace, and this rest cannot begin a word after whitespace. So it
        // continues the word at the cut.
        let continues_word = rest.starts_with(|character: char| {
            character.is_whitespace() || CLOSING_PUNCTUATION.contains(&character)
        });
        !(continues_word
            && shown.ends_with(char::is_whitespace)
            && !question.so_far.ends_with(char::is_whitespace))
    }

    /// Whether the grammar accepts `rest` after the first `keep` bytes of the text.
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

/// Punctuation that directly follows a word.
const CLOSING_PUNCTUATION: [char; 10] = ['.', ',', ';', ':', '!', '?', ')', '…', '。', '，'];

/// Whether a seam of this style neither removes a repeated part nor adds or removes whitespace.
fn is_unchanged_join(style: SeamStyle) -> bool {
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

/// Whether the answer may replace the held word with `word`. This requires a script with spaces between
/// words, and the same digits.
fn may_respell(held: &str, word: &str) -> bool {
    let digits = |text: &str| text.chars().filter(|sign| sign.is_numeric()).collect::<String>();
    let is_one = held.split_whitespace().nth(1).is_none();
    is_one
        && !word.is_empty()
        && !has_unspaced_script(held)
        && !has_unspaced_script(word)
        && digits(held) == digits(word)
}

/// Whether an answer begins in the middle of a sentence.
fn begins_in_a_sentence(answer: &str) -> bool {
    answer.starts_with(|character: char| {
        character.is_whitespace() || character.is_lowercase() || CLOSING_PUNCTUATION.contains(&character)
    })
}

/// Whether two answers are equal, or one of them is a sufficiently long beginning of the other.
pub(super) fn is_same_answer(one: &str, other: &str) -> bool {
    let (one, other) = (one.trim_end(), other.trim_end());
    let is_beginning = one.starts_with(other) || other.starts_with(one);
    is_beginning && (one.len().min(other.len()) >= MIN_EQUAL_BYTES || one == other)
}

fn unjoined_refusal(reason: &str) -> JoinRefusal {
    JoinRefusal::Unjoined { reason: reason.to_owned(), proven: 0 }
}
