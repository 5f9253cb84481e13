//! A continuation whose seam is proven before any is weighed.

use super::{Place, State, StitchStream};
use crate::Format;
use crate::detect::Detector;
use crate::stitch::seam::AskedFrom;
use crate::stitch::tail::Tail;

impl StitchStream {
    /// An answer of which what stands from the byte `start` on is proven to follow `initial`.
    pub(crate) fn proven(initial: &str, format: &Format, start: usize, fenced: bool) -> Self {
        let mut detector = Detector::new(format);
        detector.push(initial.as_bytes());
        let place = Place { keep: initial.len(), glue: "", start, fenced };
        let tail = Box::new(Tail::new(format, detector, fenced));
        Self {
            state: State::Settled { place, tail },
            next_look: usize::MAX,
            ..Self::new(initial, format, AskedFrom::Cut)
        }
    }
}
