//! Sends the body of a request to an upstream, and records whether all of it was sent.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::body::Gauge;
use crate::body::BodyError;
use crate::upstream::HTTP1_BUFFER;

/// Size of the last part of a body, which is passed separately. The connection requests it only after it has written
/// the rest, except for its buffer.
const LAST_BYTES: usize = 1024;

/// The body of a request that is being sent.
pub(super) struct SentBody {
    remaining: Bytes,
    gauge: Arc<Gauge>,
}

impl SentBody {
    pub(super) fn new(body: Bytes, gauge: &Arc<Gauge>) -> Self {
        Self { remaining: body, gauge: Arc::clone(gauge) }
    }
}

impl Body for SentBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.remaining.is_empty() {
            return Poll::Ready(None);
        }
        let length = self.remaining.len();
        let given = if length > HTTP1_BUFFER { length - LAST_BYTES } else { length };
        let next = self.remaining.split_to(given);
        if self.remaining.is_empty() {
            self.gauge.note_sent();
        }
        Poll::Ready(Some(Ok(Frame::data(next))))
    }

    fn is_end_stream(&self) -> bool {
        self.remaining.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining.len() as u64)
    }
}
