//! Stitches a continuation while it arrives. Once its seam is settled, the rest is forwarded (PC-4, PC-9).
//!
//! It uses the code of the other modules. At doubling lengths, all candidates are weighed as if the continuation
//! ended there. The text after a seam is certain when two passes in a row find the same seam and no later text could
//! give it another story. [`merge_chunks`](super::merge_chunks) decides at the end: a text that it rejects is
//! rejected, even if part of it was forwarded.

mod proven;

use endmark_text::{Format, Verdict};

use super::joint::{ContinuationMode, Joint, Readings};
use super::reasoning::{ReasoningSigns, SignWatch};
use super::seam::{AskedFrom, SeamStyle};
use super::{best_candidate, decision, openings, overlap, plain, quotation, tail, units};

/// Number of bytes before the first pass. Each further pass is at twice the length.
const FIRST_PASS_BYTES: usize = 96;

/// Number of bytes after a seam that must have arrived at the first pass that found it.
const MIN_BYTES_AFTER_SEAM: usize = 32;

/// Minimum number of units of a repetition. A shorter one may be the beginning of any text.
const MIN_REPEATED_UNITS: usize = 12;

/// A continuation that is still arriving, and the part of it that certainly belongs to the joined text (PC-4, PC-9).
///
/// The certain part only grows, and does not depend on chunking. [`merge_chunks`](super::merge_chunks) decides about
/// a text that is not whole at the end.
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
    next_look: usize,
    /// The seam that the last pass found.
    seam_position: Option<SeamPosition>,
    state: State,
}

/// The certain part so far. The joined text is the first `keep` bytes of the first part, `glue`, and a continuation
/// that begins with `rest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CertainText<'a> {
    /// Number of bytes of the first part that are kept.
    pub keep: usize,
    /// White space that was lost at the seam.
    pub glue: &'static str,
    /// The certain part of the continuation after the seam.
    pub rest: &'a str,
}

#[derive(Debug, Clone)]
enum State {
    /// Several seams are still possible.
    Open,
    /// The seam is settled, and the rest is forwarded as far as `tail` permits.
    Settled { place: SeamPosition, tail: Box<tail::Tail>, watch: SignWatch },
    /// A later pass found a different seam than the settled one, so nothing more is forwarded.
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
    /// Starts an empty continuation of `initial`.
    pub fn new(initial: &str, format: &Format, from: AskedFrom) -> Self {
        Self {
            initial: initial.to_owned(),
            format: format.clone(),
            from,
            in_message: false,
            known_signs: ReasoningSigns::default(),
            received: String::new(),
            next_look: FIRST_PASS_BYTES,
            seam_position: None,
            state: State::Open,
        }
    }

    /// Creates the same as [`new`](Self::new) for a server that is known to continue the same message, as in
    /// [`continue_message`](super::continue_message).
    pub fn for_same_message(initial: &str, format: &Format) -> Self {
        Self { in_message: true, ..Self::new(initial, format, AskedFrom::Cut) }
    }

    /// Sets the signs of reasoning in the request.
    #[must_use]
    pub fn with_reasoning_signs(self, known: ReasoningSigns) -> Self {
        Self { known_signs: known, ..self }
    }

    /// Adds the next text.
    pub fn push(&mut self, text: &str) {
        self.received.push_str(text);
        while self.received.len() >= self.next_look {
            let seen = self.received.floor_char_boundary(self.next_look);
            self.look(seen);
            self.next_look = self.next_look.saturating_mul(2);
        }
        if let State::Settled { place, tail, watch } = &mut self.state {
            tail.read(&self.received[place.start..]);
            watch.read(&self.received[place.start..]);
        }
    }

    /// Returns the text that certainly belongs to the joined text. Returns `None` while the seam is open.
    pub fn certain(&self) -> Option<CertainText<'_>> {
        let (place, end) = match &self.state {
            State::Open => return None,
            State::Settled { place, tail, watch } => (place, place.start + tail.certain().min(watch.clear())),
            State::Doubted { place, end } => (place, *end),
        };
        let rest = self.received.get(place.start..end)?;
        Some(CertainText { keep: place.keep, glue: place.glue, rest })
    }

    /// Weighs all seams as if the continuation ended after its first `seen` bytes.
    fn look(&mut self, seen: usize) {
        let (found, tail) = self.place(seen).unzip();
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

    /// Returns the seam that is settled after the first `seen` bytes, with a reader of the text after it, if no later
    /// text could give it another story.
    fn place(&self, seen: usize) -> Option<(SeamPosition, Box<tail::Tail>)> {
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
            && decision::settles(weighed.confidence, decision::COST_OF_WRONG_ONCE_SENT)
            && !weighed.something_else
            // White space alone proves nothing: wait for more text.
            && candidate.style != SeamStyle::Whitespace;
        let is_seen = candidate.start + MIN_BYTES_AFTER_SEAM <= seen;
        let is_clear = !may_be_a_repetition(&joint)
            && (candidate.repeated > 0 || !begins_like_the_whole(&joint, candidate.start))
            && (candidate.is_asked(&joint) || !may_end_as_asked(&joint))
            && (candidate.fenced || !may_be_wrapped(&joint, candidate.start));
        if !(is_settled && is_seen && is_clear) {
            return None;
        }
        let place = SeamPosition {
            keep: candidate.keep,
            glue: candidate.glue,
            start: joint.reasoning.len() + candidate.start,
            fenced: candidate.fenced,
        };
        let mut state = joint.state_at(place.keep);
        state.push(place.glue.as_bytes());
        let opened =
            plain::json_state_after(&joint.format, &[&joint.initial[..place.keep], place.glue].concat());
        Some((place, Box::new(tail::Tail::for_text(&joint.format, state, opened, place.fenced))))
    }
}

/// Whether a JSON continuation begins between tokens in the same way as the first part. It may be another version of
/// it, which shows only where the two differ.
fn begins_like_the_whole(joint: &Joint<'_>, start: usize) -> bool {
    const LIKE: usize = 4;
    let head = super::preamble::head(&joint.continuation[start..], 400);
    let again = units::Units::read(head, units::Reading::Structure);
    let whole = joint.settled_units.codes.get(..LIKE);
    joint.format == Format::Json && !joint.in_text && whole.is_some() && again.codes.get(..LIKE) == whole
}

/// Whether text begins with a fence or a quotation, of which only the end shows whether it is a wrapper.
fn may_be_wrapped(joint: &Joint<'_>, start: usize) -> bool {
    let text = joint.continuation[start..].trim_start();
    let is_fence = text.starts_with("```") || text.starts_with("~~~");
    !joint.has_grammar() && (is_fence || quotation::may_be_one(text))
}

/// Whether the continuation was requested at the cut and may be whole unchanged. In that case nothing is removed from
/// it.
fn may_end_as_asked(joint: &Joint<'_>) -> bool {
    let mut state = joint.state_at(joint.initial.len());
    state.push(joint.continuation.as_bytes());
    joint.from == AskedFrom::Cut && joint.has_grammar() && !state.is_malformed()
}

/// Whether all received text after one of the openings occurs in the first part. In that case it may continue to
/// repeat the first part up to the cut.
fn may_be_a_repetition(joint: &Joint<'_>) -> bool {
    let mut readings = joint.readings().iter();
    let begins: Vec<usize> = if joint.has_grammar() {
        openings::openings(joint).iter().map(|opening| opening.start).collect()
    } else {
        plain::opening_places(joint)
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
