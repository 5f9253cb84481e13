//! Joins a cut reply with its continuation, and is never silently wrong (PC-4). Each way to join the two parts is a
//! candidate with a story (`propose`): unchanged, after an announcement, a fence or dots, after a repetition of any
//! length, or at the last settled token. For each candidate the detector continues from its saved state at the cut
//! (`survivor`). Candidates that the grammar accepts are weighed against each other (`evidence`). Text without the
//! grammar of JSON has rules of its own (`plain`). If the evidence does not decide, the result is ambiguous.

mod batch;
mod candidate;
mod chain;
mod choices;
mod decision;
mod ellipsis;
mod escape;
mod evidence;
mod fence;
#[cfg(feature = "fit")]
pub mod fit;
mod foreword;
mod identity;
mod indent;
mod joint;
mod likeness;
mod lines;
mod opening;
mod openings;
mod overlap;
mod plain;
mod preamble;
mod propose;
mod proven;
mod quotation;
mod reasoning;
mod register;
mod repetition;
mod restart;
mod rows;
mod seam;
mod stream;
mod survivor;
mod tail;
mod talk;
mod units;

#[cfg(test)]
mod tests;

pub use batch::{Outcome, StitchError, Stitched, stitch};
pub use choices::candidates;
pub use reasoning::{ReasoningSigns, SignWatch};
pub use seam::{AskedFrom, MergeError, Merged, Seam, SeamStyle};
pub use stream::{CertainText, StitchStream};

pub(crate) use fence::is_fence_line;
pub(crate) use proven::merge_proven;
pub(crate) use talk::{announces, is_about_reply};

use endmark_text::detect::Detector;
use endmark_text::{Format, Verdict};

use evidence::SupportedValue;
use joint::{ContinuationMode, Joint};
use survivor::Survivor;

/// Joins a cut text with its continuation (PC-4).
///
/// `from` is the position at which the model was asked to continue. For a format with a grammar, `Ok` means that the
/// text is whole. For text without one, it means that the join is certain, although the continuation may be cut.
///
/// # Errors
/// [`MergeError`] states the reason and carries everything received.
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
    merge_knowing(initial, continuation, format, from, ReasoningSigns::default())
}

/// Does the same as [`merge_chunks`], for a request with these signs of reasoning.
pub(crate) fn merge_knowing(
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
/// Joins like [`merge_chunks`] from the [`cut`](AskedFrom::Cut), for a server that continues an unfinished message.
/// The request had no instruction. Therefore text without grammar contains no announcements, wrappers or remarks: a
/// sentence that reads like one is the model's own and is kept.
///
/// # Errors
/// As [`merge_chunks`].
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
    continue_message_knowing(initial, continuation, format, ReasoningSigns::default())
}

/// Does the same as [`continue_message`], for a request with these signs of reasoning.
pub(crate) fn continue_message_knowing(
    initial: &str,
    continuation: &str,
    format: &Format,
    known: ReasoningSigns,
) -> Result<Merged, MergeError> {
    let joint = Joint::with_reasoning_signs(initial, continuation, format, AskedFrom::Cut, known)
        .with_mode(ContinuationMode::ByMessage);
    merge_joint(&joint, initial, continuation)
}

/// Joins a cut text with the answer of a server that received it as an unfinished message. The answer shows whether
/// the server continued that message (PC-3, PC-4).
///
/// Joins like [`merge_chunks`] from an unknown position. An answer that continues at the cut continues the message.
/// Therefore, in text without grammar, a sentence that reads like a closing remark is the model's own and is kept.
///
/// # Errors
/// As [`merge_chunks`].
pub fn continue_shown(initial: &str, continuation: &str, format: &Format) -> Result<Merged, MergeError> {
    continue_shown_knowing(initial, continuation, format, ReasoningSigns::default())
}

/// Does the same as [`continue_shown`], for a request with these signs of reasoning.
pub(crate) fn continue_shown_knowing(
    initial: &str,
    continuation: &str,
    format: &Format,
    known: ReasoningSigns,
) -> Result<Merged, MergeError> {
    let joined = merge_knowing(initial, continuation, format, AskedFrom::Unknown, known);
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

/// Splits a continuation into the reasoning at its beginning and the rest.
pub(crate) fn without_reasoning<'c>(
    initial: &str,
    continuation: &'c str,
    known: ReasoningSigns,
) -> (&'c str, &'c str) {
    let known = known.union(ReasoningSigns::from_text(initial));
    let lead = reasoning::lead(initial, continuation, known, reasoning::MIN_PARTIAL_BYTES);
    continuation.split_at(lead.length().unwrap_or(continuation.len()))
}

/// Does the same as `without_reasoning` for a continuation that is still arriving. Returns `None` until enough has
/// arrived.
pub(crate) fn partial_without_reasoning<'c>(
    initial: &str,
    continuation: &'c str,
    known: ReasoningSigns,
) -> Option<&'c str> {
    let known = known.union(ReasoningSigns::from_text(initial));
    let lead = reasoning::lead(initial, continuation, known, 1);
    let rest = continuation.get(lead.length()?..)?;
    // More reasoning may follow, or the end of the line.
    (lead == reasoning::Lead::Nothing || !rest.trim().is_empty()).then_some(rest)
}

/// Returns the part of a continuation at the cut that belongs to a text without grammar. A closing remark after a
/// finished JSON document does not belong to it.
pub(crate) fn without_closing_remark<'c>(initial: &str, continuation: &'c str) -> &'c str {
    let joint = Joint::new(initial, continuation, &Format::Text, AskedFrom::Cut)
        .with_mode(ContinuationMode::ByMessage);
    let end = plain::end_before_leave(&joint).and_then(|end| continuation.get(..joint.reasoning.len() + end));
    end.unwrap_or(continuation)
}

/// Returns the state of a detector after a text without grammar that begins a JSON document.
pub fn json_state_after(text: &str) -> Option<Detector> {
    plain::json_state_after(&Format::Text, text)
}

/// Whether added text contains signs of reasoning that neither the text nor the request contains.
pub(crate) fn has_new_reasoning_signs(initial: &str, added: &str, known: ReasoningSigns) -> bool {
    reasoning::has_sign(added, known.union(ReasoningSigns::from_text(initial)))
}

/// Joins a cut text with a continuation that is itself cut. Such a continuation has no closing remark, so the last
/// lines of a text without grammar belong to it (PC-4, PC-5).
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
        plain::is_empty(joint)
    };
    if is_empty {
        return Err(no_seam(joint, initial, continuation, "it is empty"));
    }
    let Some((best, weighed)) = best_candidate(joint) else {
        return Err(rejection_reason(joint, initial, continuation));
    };
    if weighed.something_else {
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
        // Only a grammar defines an end. Other text is joined as far as it goes.
        _ if joint.format == Format::Text => Ok(*merged),
        _ => Err(MergeError::StillTruncated { merged }),
    }
}

/// Whether two JSON texts have the same value. White space between tokens, the form of escapes and trailing zeros of
/// a fraction are ignored.
pub(crate) fn is_same_value(left: &str, right: &str) -> bool {
    let identity = |text| identity::text_identity(text, units::Reading::Structure);
    left == right || identity(left) == identity(right)
}

/// Returns the text that both readings of a text with a grammar give if the requested position is unknown. In that
/// case the position does not matter, unless a part may be repeated: a model that knows its position does not repeat.
fn merge_if_readings_agree(joint: &Joint<'_>, initial: &str, continuation: &str) -> Option<Merged> {
    if joint.from != AskedFrom::Unknown || !joint.has_grammar() {
        return None;
    }
    let mut survivors = survivor::verify(joint, propose::propose(joint)).into_iter();
    if survivors.any(|survivor| survivor.candidate.repeated >= decision::MAX_TRIVIAL_OVERLAP_BYTES) {
        return None;
    }
    let reading = |from| merge_knowing(initial, continuation, &joint.format, from, joint.known_signs).ok();
    let (at_cut, behind_token) = (reading(AskedFrom::Cut)?, reading(AskedFrom::Token)?);
    let confidence = at_cut.seam.confidence.min(behind_token.seam.confidence);
    // Each reading was accepted at a lower threshold, as if its position had been requested.
    let is_sure = decision::settles(confidence, decision::COST_OF_WRONG_ONCE_SENT);
    (is_sure && at_cut.text == behind_token.text).then_some(behind_token)
}

/// Returns the likeliest candidate that the grammar accepts, and its probability.
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

/// Whether a survivor contains reasoning that the first part and the request do not contain, or has lost line breaks
/// to reasoning.
fn may_be_reasoning(joint: &Joint<'_>, survivor: &Survivor) -> bool {
    let added = survivor.candidate.added_text(joint);
    let has_lost_breaks = !joint.has_grammar() && joint.reasoning.ends_with('\n');
    has_lost_breaks && !reasoning::is_in_sentence(joint.initial, added)
        || joint.has_reasoning_sign(survivor.candidate.start, survivor.candidate.end)
}

/// Returns why the grammar rejects all candidates.
fn rejection_reason(joint: &Joint<'_>, initial: &str, continuation: &str) -> MergeError {
    let mut detector = joint.state_at(joint.initial.len());
    detector.push(joint.continuation.as_bytes());
    let reason = match detector.verdict() {
        Verdict::Malformed { index, reason } => format!("joined as it stands, byte {index}: {reason}"),
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
