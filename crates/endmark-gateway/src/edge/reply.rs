//! Sends a reply to the client. The reply has a deadline and keeps the request's permit.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Instant;

use super::connection_state::RequestInProgress;
use crate::admission::PermitClaim;
use crate::body::{AnyBody, BodyError};
use crate::turn::Alarm;

/// Bytes of HTTP framing around each chunk: the length in digits, and two line ends.
const CHUNK_FRAMING_BYTES: usize = 8;

/// Error: the reply exceeded its time limit.
#[derive(Debug, thiserror::Error)]
#[error("the request took longer than [limits] total_seconds allows ({0:?})")]
struct ReplyTimeout(Duration);

/// The body of a reply. The request keeps its permit and counts as in progress until this is dropped. That happens at
/// the end of the body, on an error, or when the client disconnects.
pub(super) struct ReplyBody {
    body: AnyBody,
    total: Duration,
    deadline: Instant,
    alarm: Alarm,
    _claim: Option<Arc<PermitClaim>>,
    request_guard: RequestInProgress,
    /// Whether only the end of the connection marks the end of the reply, as in HTTP/1.0.
    ends_by_closing: bool,
}

impl ReplyBody {
    /// Wraps a reply, and aborts it at the deadline. `total` is the time limit that the error message names.
    pub(super) fn new(
        body: AnyBody,
        (total, deadline): (Duration, Instant),
        claim: Option<Arc<PermitClaim>>,
        request_guard: RequestInProgress,
    ) -> Self {
        let alarm = Alarm::default();
        Self { body, total, deadline, alarm, _claim: claim, request_guard, ends_by_closing: false }
    }

    /// Declares that only the end of the connection ends the reply.
    pub(super) fn ending_by_close(self) -> Self {
        Self { ends_by_closing: true, ..self }
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = self.get_mut();
        // Produce nothing more until a slow client has read its data.
        let next = if this.request_guard.connection_state().has_room(context.waker()) {
            Pin::new(&mut this.body).poll_frame(context)
        } else {
            Poll::Pending
        };
        if let Poll::Ready(Some(Ok(frame))) = &next {
            this.request_guard
                .connection_state()
                .note_accepted(frame.data_ref().map_or(0, |part| part.len() + CHUNK_FRAMING_BYTES));
        }
        if this.ends_by_closing
            && let Poll::Ready(Some(Ok(_)) | None) = &next
        {
            let is_over = matches!(next, Poll::Ready(None)) || this.body.is_end_stream();
            this.request_guard.connection_state().set_ends_by_closing(!is_over);
        }
        let is_late = match next {
            Poll::Pending => this.alarm.poll(context, this.deadline).is_ready(),
            // Also check the deadline here, because a body that is always ready never waits.
            Poll::Ready(Some(Ok(_))) => Instant::now() >= this.deadline,
            Poll::Ready(None | Some(Err(_))) => false,
        };
        if !is_late {
            return next;
        }
        let why = ReplyTimeout(this.total);
        tracing::warn!(%why, "a reply is aborted");
        Poll::Ready(Some(Err(why.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
