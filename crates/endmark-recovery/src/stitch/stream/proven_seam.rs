//! Streams an answer with a proven seam, without weighing candidates.

use endmark_text::Format;
use endmark_text::detect::Detector;

use super::{SeamPosition, State, StitchStream};
use crate::stitch::plain::json_state_after;
use crate::stitch::reasoning::{ReasoningSigns, SignWatch};
use crate::stitch::rows;
use crate::stitch::seam::AskedFrom;
use crate::stitch::tail::Tail;

impl StitchStream {
    /// Starts the stream of an answer that provably follows `initial` from byte `start` on. `rest` is the
    /// received part after `start`. Returns `None` while it is unknown whether rows need a line break there.
    pub(crate) fn start_proven(
        initial: &str,
        format: &Format,
        start: usize,
        rest: &str,
        fenced: bool,
        known: ReasoningSigns,
    ) -> Option<Self> {
        let mut detector = Detector::new(format);
        detector.push(initial.as_bytes());
        detector.refuse_new_control_characters();
        let mut place = SeamPosition { keep: initial.len(), glue: "", start, fenced };
        if *format == Format::Jsonl && may_break_lines(&detector) {
            if rest.trim().is_empty() {
                return None;
            }
            let fit = rows::row_break_fix(&detector, initial, rest, "");
            (place.glue, place.start) = (fit.glue, start + fit.removed_bytes);
            detector.push(fit.glue.as_bytes());
        }
        let tail = Box::new(Tail::for_text(format, detector, json_state_after(format, initial), fenced));
        Some(Self {
            state: State::Settled {
                place,
                tail,
                watch: SignWatch::new(known.union(ReasoningSigns::from_text(initial))),
            },
            next_check_bytes: usize::MAX,
            ..Self::new(initial, format, AskedFrom::Cut)
        })
    }
}

/// Whether a raw line break may follow a text. It may between tokens, but not in a string.
fn may_break_lines(detector: &Detector) -> bool {
    let mut detector = detector.clone();
    detector.refuse_control_characters();
    detector.push(b"\n");
    !detector.is_malformed()
}
