//! Bodies of requests and responses that pass through the gateway.

mod idle_timeout;
mod outlet;
mod reset_detector;
mod timed_body;
mod usage_filter;

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use endmark_wire::sse;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, SizeHint};

use idle_timeout::IdleTimeoutBody;
pub(crate) use outlet::{Outlet, body_from};
pub(crate) use reset_detector::ResetDetector;
pub(crate) use timed_body::TimedBody;
use usage_filter::UsageFilter;

/// The error of a body, in either direction.
pub(crate) type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// Any body, in either direction.
pub(crate) type AnyBody = UnsyncBoxBody<Bytes, BodyError>;

/// Returns a body with these complete bytes.
pub(crate) fn full(bytes: impl Into<Bytes>) -> AnyBody {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// Returns a body that forwards its data as it arrives.
pub(crate) fn forward_body<B>(body: B) -> AnyBody
where
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BodyError>,
{
    body.map_err(Into::into).boxed_unsync()
}

/// Returns a body that fails if no data arrives for the time `idle`.
pub(crate) fn with_idle_timeout(body: AnyBody, idle: Duration) -> AnyBody {
    IdleTimeoutBody::new(body, idle).boxed_unsync()
}

/// Returns a stream without the events that only contain token counts.
pub(crate) fn without_usage_events(
    stream: AnyBody,
    is_usage_only: impl FnMut(&sse::Frame) -> bool + Send + Unpin + 'static,
) -> AnyBody {
    UsageFilter::new(stream, is_usage_only).boxed_unsync()
}

/// Returns a body that starts with bytes that were already read.
pub(crate) fn with_prefix(beginning: Bytes, rest: AnyBody) -> AnyBody {
    PrefixedBody { beginning, remaining: rest }.boxed_unsync()
}

/// Returns a body that fails at its first read.
pub(crate) fn failing_body(error: BodyError) -> AnyBody {
    FailingBody(Some(error)).boxed_unsync()
}

struct FailingBody(Option<BodyError>);

impl Body for FailingBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Poll::Ready(self.0.take().map(Err))
    }
}

struct PrefixedBody {
    beginning: Bytes,
    remaining: AnyBody,
}

impl Body for PrefixedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.beginning.is_empty() {
            return Pin::new(&mut self.remaining).poll_frame(context);
        }
        Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.beginning)))))
    }

    fn is_end_stream(&self) -> bool {
        self.beginning.is_empty() && self.remaining.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = self.remaining.size_hint();
        let before = self.beginning.len() as u64;
        // Set the upper bound first, because it must not be below the lower bound.
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + before);
        }
        hint.set_lower(hint.lower() + before);
        hint
    }
}
