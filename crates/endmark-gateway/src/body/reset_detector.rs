//! Detects an HTTP/2 body that ended before its sender declared the end.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::BodyError;

/// A body that fails if its stream is reset too early. The HTTP library treats some reset reasons as a regular end.
pub(crate) struct ResetDetector {
    body: Incoming,
    /// Whether the server may reset the stream right after its response, because it does not read the complete request.
    may_reset_early: bool,
}

impl ResetDetector {
    pub(crate) fn new(body: Incoming, may_be_early: bool) -> Self {
        Self { body, may_reset_early: may_be_early }
    }

    /// Whether the body is incomplete if no more data arrives.
    fn is_cut(&self) -> bool {
        match self.body.size_hint().exact() {
            _ if self.body.is_end_stream() => false,
            Some(missing) => missing > 0,
            None => !self.may_reset_early,
        }
    }
}

impl Body for ResetDetector {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = self.get_mut();
        match Pin::new(&mut this.body).poll_frame(context) {
            Poll::Ready(None) if this.is_cut() => {
                Poll::Ready(Some(Err("its stream was reset before its end".into())))
            }
            next => next.map(|next| next.map(|frame| frame.map_err(Into::into))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
