//! Sends the body of a request to an upstream, and records whether all of it was sent.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::body::ResponseMeter;
use crate::body::BodyError;
use crate::upstream::HTTP1_BUFFER_BYTES;

/// Size of the last piece of a body. The connection requests it only after it has written the rest, except
/// for its buffer.
const LAST_PART_BYTES: usize = 1024;

/// The body of a request that is being sent.
pub(super) struct SentBody {
    remaining: Bytes,
    meter: Arc<ResponseMeter>,
}

impl SentBody {
    pub(super) fn new(body: Bytes, gauge: &Arc<ResponseMeter>) -> Self {
        Self { remaining: body, meter: Arc::clone(gauge) }
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
        let part_length = if length > HTTP1_BUFFER_BYTES { length - LAST_PART_BYTES } else { length };
        let next = self.remaining.split_to(part_length);
        if self.remaining.is_empty() {
            self.meter.note_sent();
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
