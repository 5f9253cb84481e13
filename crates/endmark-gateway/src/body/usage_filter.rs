//! Forwards a stream unchanged, except for a usage event that the client did not request.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use endmark_wire::sse::{Decoder, Frame as Event, Tail};
use hyper::body::{Body, Frame};

use super::{AnyBody, BodyError};

/// Maximum size of a usage event. After a longer event, the remaining stream is forwarded unchanged.
const MAX_EVENT_BYTES: usize = 1024 * 1024;

/// A stream without the events that only contain token counts.
pub(super) struct UsageFilter<C> {
    inner: AnyBody,
    /// The decoder. `None` once the remaining stream is forwarded unchanged.
    decoder: Option<Decoder>,
    is_usage_only: C,
}

impl<C: FnMut(&Event) -> bool> UsageFilter<C> {
    pub(super) fn new(inner: AnyBody, only_counts: C) -> Self {
        Self { inner, decoder: Some(Decoder::new(MAX_EVENT_BYTES)), is_usage_only: only_counts }
    }

    /// Returns the bytes to forward, from `data` and from the buffer.
    fn filter(&mut self, data: Bytes) -> Bytes {
        let Some(decoder) = &mut self.decoder else { return data };
        let is_too_long = decoder.push(&data).is_err();
        let events: Vec<Event> = std::iter::from_fn(|| decoder.next_frame()).collect();
        let mut passed = Vec::with_capacity(data.len());
        for event in events {
            if !(self.is_usage_only)(&event) {
                passed.extend_from_slice(&event.raw);
            }
        }
        if is_too_long {
            passed.extend(self.take_held());
        }
        passed.into()
    }

    /// Returns the buffered bytes of an incomplete event.
    fn take_held(&mut self) -> Vec<u8> {
        match self.decoder.take().map(Decoder::finish) {
            Some(Tail::Frame(event)) if !(self.is_usage_only)(&event) => event.raw,
            Some(Tail::Residue(bytes)) => bytes,
            Some(Tail::Frame(_) | Tail::Clean) | None => Vec::new(),
        }
    }
}

impl<C: FnMut(&Event) -> bool + Unpin> Body for UsageFilter<C> {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        loop {
            let next = ready!(Pin::new(&mut self.inner).poll_frame(context));
            let passed = match next {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.filter(data),
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => {
                    let rest = self.take_held();
                    return Poll::Ready((!rest.is_empty()).then(|| Ok(Frame::data(rest.into()))));
                }
            };
            if !passed.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(passed))));
            }
        }
    }
}
