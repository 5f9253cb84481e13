//! The body of a client's request, with limits for time and size.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use endmark_wire::http1::Fault;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::Instant;

use super::connection_state::ConnectionState;
use crate::body::BodyError;
use crate::refusals::Refusal;
use crate::settings::Limits;
use crate::turn::Alarm;

/// Minimum rate of a body in bytes per second, after a grace period. Slow mobile connections are a hundred times
/// faster. Clients that attack with slow requests are a hundred times slower.
const MIN_BODY_BYTES_PER_SECOND: u64 = 1024;

/// Why a body could not be read completely.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum BodyFailure {
    #[error("it is over {0} bytes")]
    TooLong(u64),
    #[error("it did not arrive in time")]
    Late,
    #[error(transparent)]
    Malformed(#[from] Fault),
}

impl BodyFailure {
    /// Returns the error response for the client.
    pub(super) fn refusal(&self, limits: &Limits) -> Refusal {
        match self {
            Self::TooLong(most) => Refusal::UploadTooLong(*most),
            Self::Late => Refusal::BodyLost(format!(
                "no data arrived for {:?}, or less than {MIN_BODY_BYTES_PER_SECOND} bytes a second",
                limits.idle.min(limits.body)
            )),
            Self::Malformed(fault) => Refusal::Malformed(fault.clone()),
        }
    }
}

/// A client's body as it arrives.
pub(super) struct ClientBody {
    body: Incoming,
    connection_state: Arc<ConnectionState>,
    failure: Arc<OnceLock<BodyFailure>>,
    max_bytes: u64,
    /// Maximum time without a byte.
    idle: Duration,
    /// Time limit for the body. The time that the received bytes need at the minimum rate is added to it.
    patience: Duration,
    received: u64,
    waited_time: Duration,
    waiting_since: Option<Instant>,
    alarm: Alarm,
}

impl ClientBody {
    /// Wraps a body with these limits. A failure is stored in `failure`.
    pub(super) fn new(
        body: Incoming,
        connection_state: Arc<ConnectionState>,
        limits: &Limits,
        failure: Arc<OnceLock<BodyFailure>>,
    ) -> Self {
        Self {
            body,
            connection_state,
            failure,
            max_bytes: limits.upload_bytes,
            idle: limits.idle,
            patience: limits.body,
            received: 0,
            waited_time: Duration::ZERO,
            waiting_since: None,
            alarm: Alarm::default(),
        }
    }

    fn fail(&self, failure: BodyFailure) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let known = self.failure.get_or_init(|| failure).clone();
        Poll::Ready(Some(Err(known.into())))
    }

    /// Returns the deadline for the next bytes if waiting began at `since`. Time during which an upstream did not
    /// read is not counted against the client.
    fn deadline(&self, since: Instant) -> Instant {
        let allowed = self.patience + Duration::from_secs(self.received / MIN_BODY_BYTES_PER_SECOND);
        since + self.idle.min(allowed.saturating_sub(self.waited_time))
    }
}

impl Body for ClientBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = self.get_mut();
        if this.body.size_hint().lower() > this.max_bytes {
            return this.fail(BodyFailure::TooLong(this.max_bytes));
        }
        match Pin::new(&mut this.body).poll_frame(context) {
            Poll::Ready(next) => {
                if let Some(since) = this.waiting_since.take() {
                    this.waited_time += since.elapsed();
                }
                if let Some(Ok(frame)) = &next {
                    let length = frame.data_ref().map_or(0, Bytes::len);
                    this.received += u64::try_from(length).unwrap_or(u64::MAX);
                    if this.received > this.max_bytes {
                        return this.fail(BodyFailure::TooLong(this.max_bytes));
                    }
                }
                Poll::Ready(next.map(|next| next.map_err(Into::into)))
            }
            Poll::Pending => {
                if let Some(fault) = this.connection_state.body_fault(context.waker()) {
                    return this.fail(fault.into());
                }
                let since = *this.waiting_since.get_or_insert_with(Instant::now);
                let deadline = this.deadline(since);
                match this.alarm.poll(context, deadline) {
                    Poll::Ready(()) => this.fail(BodyFailure::Late),
                    Poll::Pending => Poll::Pending,
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
