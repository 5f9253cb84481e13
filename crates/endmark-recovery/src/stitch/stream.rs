//! Stitches a continuation while it arrives. Once its seam is settled, the rest is forwarded (PC-4, PC-9).
//!
//! It uses the same code as [`merge_chunks`](super::merge_chunks). At doubling lengths, all candidates are
//! weighed as if the continuation ended there. The text after a seam is certain if two consecutive passes
//! find the same seam, and no later text could change it. [`merge_chunks`](super::merge_chunks) decides at
//! the end: it may reject a text although part of it was forwarded.

mod proven_seam;

use endmark_text::{Format, Verdict};

use super::joint::{ContinuationMode, Joint, Readings};
use super::reasoning::{ReasoningSigns, SignWatch};
use super::seam::{AskedFrom, SeamStyle};
use super::{best_candidate, continuation_starts, decision, overlap, plain, quotation, tail, units};

/// Number of bytes before the first pass. Each further pass is at twice the length.
const FIRST_PASS_BYTES: usize = 96;

/// Minimum number of bytes after a seam at the first pass that finds it.
const MIN_BYTES_AFTER_SEAM: usize = 32;

/// Minimum length of a repetition, in units. A shorter one may be the beginning of any text.
const MIN_REPEATED_UNITS: usize = 12;

/// A growing continuation, and the part of it that certainly belongs to the joined text (PC-4, PC-9).
///
/// The certain part only grows, and does not depend on how the continuation is split into chunks. At the end,
/// [`merge_chunks`](super::merge_chunks) decides about a text that is not whole.
///
/// ```
/// use endmark_recovery::stitch::{AskedFrom, StitchStream};
/// use endmark_text::Format;
///
/// let mut stream = StitchStream::new(r#"{"a": "It was a quiet mor"#, &Format::Json, AskedFrom::Unknown);
/// stream.push("Sure, here is the rest:\n\n");
/// assert!(stream.certain().is_none(), "an announcement is not part of the text");
/// stream.push("a quiet morning, and the gulls had not yet found the boats. Mira counted the nets twice, ");
/// stream.push("because her father had taught her to count everything twice, and then twice again.");
/// let certain = stream.certain().unwrap();
/// assert_eq!(certain.keep, 25);
/// assert!(certain.rest.starts_with("ning, and the gulls"));
/// ```
#[derive(Debug, Clone)]
pub struct StitchStream {
    initial: String,
    format: Format,
    from: AskedFrom,
    /// Whether the server is known to continue the same message.
    in_message: bool,
    known_signs: ReasoningSigns,
    received: String,
    next_check_bytes: usize,
    /// The seam that the last pass found.
    seam_position: Option<SeamPosition>,
    state: State,
}

/// The certain part so far. The joined text consists of the first `keep` bytes of the first part, `glue`, and
/// a text that begins with `rest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CertainText<'a> {
    /// Number of bytes of the first part that are kept.
    pub keep: usize,
    /// Whitespace that was lost at the seam.
    pub glue: &'static str,
    /// The certain part of the continuation after the seam.
    pub rest: &'a str,
}

#[derive(Debug, Clone)]
enum State {
    /// Several seams are still possible.
    Open,
    /// The seam is settled. The rest is forwarded as far as `tail` permits.
    Settled { place: SeamPosition, tail: Box<tail::Tail>, watch: SignWatch },
    /// A later pass found a different seam, so nothing more is forwarded.
    Doubted { place: SeamPosition, end: usize },
}

/// The position at which the two parts are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SeamPosition {
    keep: usize,
    glue: &'static str,
    start: usize,
    fenced: bool,
}

impl StitchStream {
    /// Starts with an empty continuation of `initial`.
    pub fn new(initial: &str, format: &Format, from: AskedFrom) -> Self {
        Self {
            initial: initial.to_owned(),
            format: format.clone(),
            from,
            in_message: false,
            known_signs: ReasoningSigns::default(),
            received: String::new(),
            next_check_bytes: FIRST_PASS_BYTES,
            seam_position: None,
            state: State::Open,
        }
    }

    /// Starts like [`new`](Self::new), for a server that is known to continue the same message, as in
    /// [`continue_message`](super::continue_message).
    pub fn for_same_message(initial: &str, format: &Format) -> Self {
        Self { in_message: true, ..Self::new(initial, format, AskedFrom::Cut) }
    }

    /// Sets the signs of reasoning in the request.
    #[must_use]
    pub fn with_reasoning_signs(self, known: ReasoningSigns) -> Self {
        Self { known_signs: known, ..self }
    }

    /// Adds the next chunk.
    pub fn push(&mut self, text: &str) {
        self.received.push_str(text);
        while self.received.len() >= self.next_check_bytes {
            let seen = self.received.floor_char_boundary(self.next_check_bytes);
            self.check(seen);
            self.next_check_bytes = self.next_check_bytes.saturating_mul(2);
        }
        if let State::Settled { place, tail, watch } = &mut self.state {
            tail.read(&self.received[place.start..]);
            watch.read(&self.received[place.start..]);
        }
    }

    /// Returns the text that certainly belongs to the joined text, or `None` while the seam is open.
    pub fn certain(&self) -> Option<CertainText<'_>> {
        let (place, end) = match &self.state {
            State::Open => return None,
            State::Settled { place, tail, watch } => (place, place.start + tail.certain().min(watch.clear())),
            State::Doubted { place, end } => (place, *end),
        };
        let rest = self.received.get(place.start..end)?;
        Some(CertainText { keep: place.keep, glue: place.glue, rest })
    }

    /// Weighs all candidates as if the continuation ended after its first `seen` bytes.
    fn check(&mut self, seen: usize) {
        let (found, tail) = self.settled_seam(seen).unzip();
        match (&self.state, found) {
            (State::Open, _) => {
                if let (Some(place), Some(tail)) =
                    (found.filter(|place| self.seam_position == Some(*place)), tail)
                {
                    let known = self.known_signs.union(ReasoningSigns::from_text(&self.initial));
                    self.state = State::Settled { place, tail, watch: SignWatch::new(known) };
                }
            }
            (State::Settled { place, tail, watch }, found) if found != Some(*place) => {
                let end = place.start + tail.certain().min(watch.clear());
                self.state = State::Doubted { place: *place, end };
            }
            (State::Settled { .. } | State::Doubted { .. }, _) => {}
        }
        self.seam_position = found;
    }

    /// Returns the seam that is settled after the first `seen` bytes, and a reader for the text after it.
    /// Returns `None` if later text could still change the seam.
    fn settled_seam(&self, seen: usize) -> Option<(SeamPosition, Box<tail::Tail>)> {
        let received = &self.received[..seen];
        let joint =
            Joint::with_reasoning_signs(&self.initial, received, &self.format, self.from, self.known_signs);
        let joint = if self.in_message { joint.with_mode(ContinuationMode::ByMessage) } else { joint };
        if matches!(joint.verdict, Verdict::Malformed { .. })
            || joint.has_nothing_to_join()
            || joint.continuation.trim().is_empty()
        {
            return None;
        }
        let (best, weighed) = best_candidate(&joint)?;
        let candidate = best.candidate;
        let is_settled = weighed.is_settled()
            && decision::is_sufficient(weighed.confidence, decision::COST_OF_WRONG_ONCE_SENT)
            && !weighed.is_likelier_unrelated
            // Whitespace alone proves nothing: wait for more text.
            && candidate.style != SeamStyle::Whitespace;
        let is_seen = candidate.start + MIN_BYTES_AFTER_SEAM <= seen;
        let is_clear = !may_be_a_repetition(&joint)
            && (candidate.repeated_bytes > 0 || !begins_like_first_part(&joint, candidate.start))
            && (candidate.is_as_requested(&joint) || !may_be_whole_unchanged(&joint))
            && (candidate.is_fenced || !may_be_wrapped(&joint, candidate.start));
        if !(is_settled && is_seen && is_clear) {
            return None;
        }
        let place = SeamPosition {
            keep: candidate.keep,
            glue: candidate.glue,
            start: joint.reasoning.len() + candidate.start,
            fenced: candidate.is_fenced,
        };
        let mut state = joint.state_at(place.keep);
        state.push(place.glue.as_bytes());
        let opened =
            plain::json_state_after(&joint.format, &[&joint.initial[..place.keep], place.glue].concat());
        Some((place, Box::new(tail::Tail::for_text(&joint.format, state, opened, place.fenced))))
    }
}

/// Whether the continuation begins between tokens in the same way as the whole first part. It may be another
/// version of the first part, which would show only where the two differ.
fn begins_like_first_part(joint: &Joint<'_>, start: usize) -> bool {
    const COMPARED_UNITS: usize = 4;
    let head = super::prompt_echo_and_remarks::beginning(&joint.continuation[start..], 400);
    let again = units::Units::read(head, units::Reading::Structure);
    let whole = joint.settled_units.codes.get(..COMPARED_UNITS);
    joint.format == Format::Json
        && !joint.in_text
        && whole.is_some()
        && again.codes.get(..COMPARED_UNITS) == whole
}

/// Whether the text begins with a fence or a quotation. Only its end can show whether this is a wrapper.
fn may_be_wrapped(joint: &Joint<'_>, start: usize) -> bool {
    let text = joint.continuation[start..].trim_start();
    let is_fence = text.starts_with("```") || text.starts_with("~~~");
    !joint.has_grammar() && (is_fence || quotation::may_become_single_quotation(text))
}

/// Whether the continuation was requested at the cut, and may be whole unchanged. Then nothing is removed
/// from it.
fn may_be_whole_unchanged(joint: &Joint<'_>) -> bool {
    let mut state = joint.state_at(joint.initial.len());
    state.push(joint.continuation.as_bytes());
    joint.from == AskedFrom::Cut && joint.has_grammar() && !state.is_malformed()
}

/// Whether the text after one of the possible starts occurs in the first part. Then it may continue to repeat
/// the first part up to the cut.
fn may_be_a_repetition(joint: &Joint<'_>) -> bool {
    let mut readings = joint.readings().iter();
    let begins: Vec<usize> = if joint.has_grammar() {
        continuation_starts::continuation_starts(joint).iter().map(|opening| opening.start).collect()
    } else {
        plain::start_positions(joint)
    };
    let units = Readings::new(joint);
    readings.any(|reading| {
        let received_units = units.at(joint.settled_bytes, *reading);
        begins.iter().any(|begin| {
            let again = units::Units::read(&joint.continuation[*begin..], *reading);
            // The last units may belong to an incomplete token.
            let known = &again.codes[..again.len().saturating_sub(2)];
            known.len() < MIN_REPEATED_UNITS || overlap::occurs(known, &received_units.codes)
        })
    })
}

#[cfg(test)]
mod tests;
