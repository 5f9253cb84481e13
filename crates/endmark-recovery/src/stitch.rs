//! Joins a cut reply with its continuation, without ever guessing silently (PC-4).
//!
//! Each way to join the two parts is a candidate (`propose`). A candidate explains how the continuation came
//! about: unchanged, after an announcement, a fence or an ellipsis, after a repeated part of any length, or
//! at the last settled token. For each candidate, the detector continues from its saved state at the cut. The
//! candidates that the grammar accepts are called survivors (`survivor`). They are weighed against each other
//! (`evidence`). Text that is not JSON has its own rules (`plain`). If the evidence does not decide, the
//! result is ambiguous.

mod announcement;
mod batch;
mod candidate;
mod chain;
mod choices;
mod continuation_start;
mod continuation_starts;
mod decision;
mod ellipsis;
mod escape;
mod evidence;
mod fence;
#[cfg(feature = "fit")]
pub mod fit;
mod indent;
mod joint;
mod lines;
mod overlap;
mod plain;
mod prompt_echo_and_remarks;
mod propose;
mod proven_seam;
mod quotation;
mod reasoning;
mod register;
mod repetition;
mod reply_remarks;
mod restart;
mod rows;
mod seam;
mod sequence_likelihood;
mod stream;
mod survivor;
mod tail;
mod units;
mod value_identity;

#[cfg(test)]
mod tests;

pub use batch::{Outcome, StitchError, Stitched, stitch};
pub use choices::candidates;
pub use reasoning::{ReasoningSigns, SignWatch};
pub use seam::{AskedFrom, MergeError, Merged, Seam, SeamStyle};
pub use stream::{CertainText, StitchStream};

pub(crate) use fence::is_fence_line;
pub(crate) use proven_seam::merge_proven;
pub(crate) use reply_remarks::{is_about_reply, is_announcement};

use endmark_text::detect::Detector;
use endmark_text::{Format, Verdict};

use evidence::SupportedValue;
use joint::{ContinuationMode, Joint};
use survivor::Survivor;

/// Joins a cut text with its continuation (PC-4).
///
/// `from` is the position at which the model was asked to continue. In a format with a grammar, `Ok` means
/// that the text is whole. In other text, it means that the join is certain, although the continuation may
/// itself be cut.
///
/// Returns a [`MergeError`] that states the reason and contains all received text.
///
/// ```
/// use endmark_recovery::stitch::{AskedFrom, SeamStyle, merge_chunks};
/// use endmark_text::Format;
/// let merged = merge_chunks(
///     r#"{"city": "San Fran"#,
///     "Sure, here is the rest:\n```json\n\"city\": \"San Francisco\"}\n```",
///     &Format::Json,
///     AskedFrom::Token,
/// )?;
/// assert_eq!(merged.text, r#"{"city": "San Francisco"}"#);
/// assert_eq!(merged.seam.style, SeamStyle::Preamble);
/// # Ok::<(), endmark_recovery::stitch::MergeError>(())
/// ```
pub fn merge_chunks(
    initial: &str,
    continuation: &str,
    format: &Format,
    from: AskedFrom,
) -> Result<Merged, MergeError> {
    merge_with_known_signs(initial, continuation, format, from, ReasoningSigns::default())
}

/// Joins like [`merge_chunks`], with the signs of reasoning of the request.
pub(crate) fn merge_with_known_signs(
    initial: &str,
    continuation: &str,
    format: &Format,
    from: AskedFrom,
    known: ReasoningSigns,
) -> Result<Merged, MergeError> {
    merge_joint(
        &Joint::with_reasoning_signs(initial, continuation, format, from, known),
        initial,
        continuation,
    )
}

/// Joins a cut text with what its server added to the same message (PC-3, PC-4).
///
/// Joins like [`merge_chunks`] from the [`cut`](AskedFrom::Cut), for a server that continues an unfinished
/// message. The request contained no instruction, so the continuation of a text without a grammar contains no
/// announcement, wrapper or remark. A sentence that reads like one belongs to the text and is kept.
///
/// Returns the errors of [`merge_chunks`].
///
/// ```
/// use endmark_recovery::stitch::continue_message;
/// use endmark_text::Format;
/// let letter = "Dear Ms Byrne,\n\nthe harbour was quiet and the boats lay st";
/// let rest = "ill that morning.\n\nLet me know if you have any questions.";
/// assert_eq!(continue_message(letter, rest, &Format::Text)?.text, [letter, rest].concat());
/// # Ok::<(), endmark_recovery::stitch::MergeError>(())
/// ```
pub fn continue_message(initial: &str, continuation: &str, format: &Format) -> Result<Merged, MergeError> {
    continue_message_with_known_signs(initial, continuation, format, ReasoningSigns::default())
}

/// Joins like [`continue_message`], with the signs of reasoning of the request.
pub(crate) fn continue_message_with_known_signs(
    initial: &str,
    continuation: &str,
    format: &Format,
    known: ReasoningSigns,
) -> Result<Merged, MergeError> {
    let joint = Joint::with_reasoning_signs(initial, continuation, format, AskedFrom::Cut, known)
        .with_mode(ContinuationMode::ByMessage);
    merge_joint(&joint, initial, continuation)
}

/// Joins a cut text with the answer of a server that received it as an unfinished message. Only the answer
/// shows whether the server continued that message (PC-3, PC-4).
///
/// Joins like [`merge_chunks`] from an unknown position. An answer that continues at the cut continues the
/// message. So in text without a grammar, a sentence that reads like a closing remark belongs to the text and
/// is kept.
///
/// Returns the errors of [`merge_chunks`].
pub fn continue_shown(initial: &str, continuation: &str, format: &Format) -> Result<Merged, MergeError> {
    continue_shown_with_known_signs(initial, continuation, format, ReasoningSigns::default())
}

/// Joins like [`continue_shown`], with the signs of reasoning of the request.
pub(crate) fn continue_shown_with_known_signs(
    initial: &str,
    continuation: &str,
    format: &Format,
    known: ReasoningSigns,
) -> Result<Merged, MergeError> {
    let joined = merge_with_known_signs(initial, continuation, format, AskedFrom::Unknown, known);
    let best = match &joined {
        Ok(merged) => merged,
        Err(MergeError::Ambiguous { best, .. }) => best,
        Err(_) => return joined,
    };
    let continues_exactly = matches!(best.seam.style, SeamStyle::Exact | SeamStyle::Remark);
    if !continues_exactly || best.seam.at != initial.len() {
        return joined;
    }
    let joint = Joint::with_reasoning_signs(initial, continuation, format, AskedFrom::Unknown, known)
        .with_mode(ContinuationMode::Shown);
    merge_joint(&joint, initial, continuation).or(joined)
}

/// Splits a continuation into the reasoning at its beginning, and the rest.
pub(crate) fn without_reasoning<'c>(
    initial: &str,
    continuation: &'c str,
    known: ReasoningSigns,
) -> (&'c str, &'c str) {
    let known = known.union(ReasoningSigns::from_text(initial));
    let lead = reasoning::continuation_beginning(initial, continuation, known, reasoning::MIN_PARTIAL_BYTES);
    continuation.split_at(lead.length().unwrap_or(continuation.len()))
}

/// Splits a growing continuation like `without_reasoning`. Returns `None` until enough of it has arrived.
pub(crate) fn partial_without_reasoning<'c>(
    initial: &str,
    continuation: &'c str,
    known: ReasoningSigns,
) -> Option<&'c str> {
    let known = known.union(ReasoningSigns::from_text(initial));
    let lead = reasoning::continuation_beginning(initial, continuation, known, 1);
    let rest = continuation.get(lead.length()?..)?;
    // More reasoning may follow, or more line breaks after it.
    (lead == reasoning::ContinuationBeginning::Nothing || !rest.trim().is_empty()).then_some(rest)
}

/// Removes a closing remark after a complete JSON document from a continuation at the cut of a text without a
/// grammar.
pub(crate) fn without_closing_remark<'c>(initial: &str, continuation: &'c str) -> &'c str {
    let joint = Joint::new(initial, continuation, &Format::Text, AskedFrom::Cut)
        .with_mode(ContinuationMode::ByMessage);
    let end = plain::end_before_closing_remark(&joint)
        .and_then(|end| continuation.get(..joint.reasoning.len() + end));
    end.unwrap_or(continuation)
}

/// Returns the detector state after a text that begins a JSON document, or `None` for other text.
pub fn json_state_after(text: &str) -> Option<Detector> {
    plain::json_state_after(&Format::Text, text)
}

/// Whether the added text contains signs of reasoning that neither the text nor the request contains.
pub(crate) fn has_new_reasoning_signs(initial: &str, added: &str, known: ReasoningSigns) -> bool {
    reasoning::has_sign(added, known.union(ReasoningSigns::from_text(initial)))
}

/// Joins a cut text with a continuation that is itself cut (PC-4, PC-5). Such a continuation has no closing
/// remark: in text without a grammar, its last lines belong to the text.
pub(crate) fn merge_unfinished(
    initial: &str,
    continuation: &str,
    format: &Format,
    from: AskedFrom,
    known: ReasoningSigns,
) -> Result<Merged, MergeError> {
    let joint = Joint::with_reasoning_signs(initial, continuation, format, from, known)
        .with_mode(ContinuationMode::Unfinished);
    merge_joint(&joint, initial, continuation)
}

fn merge_joint(joint: &Joint<'_>, initial: &str, continuation: &str) -> Result<Merged, MergeError> {
    if let Verdict::Malformed { index, reason } = &joint.verdict {
        let reason = format!("the first part is malformed at byte {index}: {reason}");
        return Err(MergeError::Malformed {
            attempt: [initial, continuation].concat(),
            verified_len: *index,
            reason,
        });
    }
    if joint.has_nothing_to_join() {
        return Err(MergeError::NothingToJoin {
            attempt: [initial, continuation].concat(),
            verified_len: joint.initial.len(),
            reason: format!("the first part is whole already, as {}", joint.format),
        });
    }
    let is_empty = if joint.has_grammar() {
        joint.continuation.trim().is_empty() && !joint.verdict.is_whole()
    } else {
        plain::has_no_content(joint)
    };
    if is_empty {
        return Err(no_seam(joint, initial, continuation, "it is empty"));
    }
    let Some((best, weighed)) = best_candidate(joint) else {
        return Err(rejection_reason(joint, initial, continuation));
    };
    if weighed.is_likelier_unrelated {
        return Err(no_seam(joint, initial, continuation, "it begins something of its own"));
    }
    if !joint.has_grammar() && plain::adds_nothing(joint, &best) {
        return Err(no_seam(joint, initial, continuation, "it says nothing new"));
    }
    let merged = Box::new(survivor::into_merged(joint, &best, weighed.confidence, weighed.alternatives));
    if !weighed.is_settled()
        && let Some(same) = merge_if_readings_agree(joint, initial, continuation)
    {
        return Ok(same);
    }
    if !weighed.is_settled() {
        return Err(MergeError::Ambiguous { best: merged, alternatives: weighed.alternatives });
    }
    match merged.verdict {
        Verdict::Whole => Ok(*merged),
        // Only a grammar defines the end of a text. Other text is accepted even if it is unfinished.
        _ if joint.format == Format::Text => Ok(*merged),
        _ => Err(MergeError::StillTruncated { merged }),
    }
}

/// Whether two JSON texts have the same value, ignoring whitespace between tokens, the form of escapes, and
/// trailing zeros of fractions.
pub(crate) fn is_same_value(left: &str, right: &str) -> bool {
    let identity = |text| value_identity::text_identity(text, units::Reading::Structure);
    left == right || identity(left) == identity(right)
}

/// If the requested position is unknown, returns the text that results from both possible positions, if it is
/// the same and no part may be repeated. A model that knows its position does not repeat text.
fn merge_if_readings_agree(joint: &Joint<'_>, initial: &str, continuation: &str) -> Option<Merged> {
    if joint.from != AskedFrom::Unknown || !joint.has_grammar() {
        return None;
    }
    let mut survivors = survivor::verify(joint, propose::propose(joint)).into_iter();
    if survivors.any(|survivor| survivor.candidate.repeated_bytes >= decision::MAX_TRIVIAL_OVERLAP_BYTES) {
        return None;
    }
    let reading =
        |from| merge_with_known_signs(initial, continuation, &joint.format, from, joint.known_signs).ok();
    let (at_cut, behind_token) = (reading(AskedFrom::Cut)?, reading(AskedFrom::Token)?);
    let confidence = at_cut.seam.confidence.min(behind_token.seam.confidence);
    // Require the higher threshold, because each merge was accepted as if its position had been requested.
    let is_sure = decision::is_sufficient(confidence, decision::COST_OF_WRONG_ONCE_SENT);
    (is_sure && at_cut.text == behind_token.text).then_some(behind_token)
}

/// Returns the likeliest survivor and the result of the weighing, or `None` without survivors.
fn best_candidate(joint: &Joint<'_>) -> Option<(Survivor, SupportedValue)> {
    let (mut survivors, weighed) = weigh_candidates(joint)?;
    Some((survivors.swap_remove(weighed.best), weighed))
}

/// Weighs all candidates that the grammar accepts.
fn weigh_candidates(joint: &Joint<'_>) -> Option<(Vec<Survivor>, SupportedValue)> {
    let (survivors, mut weighed) = if joint.has_grammar() {
        let mut survivors = survivor::verify(joint, propose::propose(joint));
        let weighed = evidence::weigh(joint, &survivors)?;
        rows::fix_row_breaks(joint, &mut survivors);
        (survivors, weighed)
    } else {
        plain::weigh_joins(joint)?
    };
    weighed.is_tie |= survivors.get(weighed.best).is_some_and(|best| may_be_reasoning(joint, best));
    Some((survivors, weighed))
}

/// Whether a survivor contains reasoning that is neither in the first part nor in the request, or has lost
/// line breaks after removed reasoning.
fn may_be_reasoning(joint: &Joint<'_>, survivor: &Survivor) -> bool {
    let added = survivor.candidate.added_text(joint);
    let has_lost_breaks = !joint.has_grammar() && joint.reasoning.ends_with('\n');
    has_lost_breaks && !reasoning::is_in_sentence(joint.initial, added)
        || joint.has_reasoning_sign(survivor.candidate.start, survivor.candidate.end)
}

/// Returns the error for parts of which the grammar rejects every candidate.
fn rejection_reason(joint: &Joint<'_>, initial: &str, continuation: &str) -> MergeError {
    let mut detector = joint.state_at(joint.initial.len());
    detector.push(joint.continuation.as_bytes());
    let reason = match detector.verdict() {
        Verdict::Malformed { index, reason } => format!("joined unchanged, byte {index}: {reason}"),
        _ => "every candidate leaves the grammar".to_owned(),
    };
    MergeError::Malformed {
        attempt: [initial, continuation].concat(),
        verified_len: joint.settled_bytes,
        reason,
    }
}

fn no_seam(joint: &Joint<'_>, initial: &str, continuation: &str, reason: &str) -> MergeError {
    MergeError::NoSeam {
        attempt: [initial, continuation].concat(),
        verified_len: joint.settled_bytes,
        reason: reason.to_owned(),
    }
}
