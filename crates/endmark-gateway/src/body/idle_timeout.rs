//! A body with an idle timeout.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Instant;

use super::{AnyBody, BodyError};
use crate::turn::Alarm;

/// A body that fails if nothing arrives for too long while it is being read.
pub(crate) struct IdleTimeoutBody {
    body: AnyBody,
    idle: Duration,
    idle_since: Option<Instant>,
    alarm: Alarm,
}

impl IdleTimeoutBody {
    pub(crate) fn new(body: AnyBody, idle: Duration) -> Self {
        Self { body, idle, idle_since: None, alarm: Alarm::default() }
    }
}

impl Body for IdleTimeoutBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = self.get_mut();
        if let Poll::Ready(next) = Pin::new(&mut this.body).poll_frame(context) {
            this.idle_since = None;
            return Poll::Ready(next);
        }
        let until = *this.idle_since.get_or_insert_with(Instant::now) + this.idle;
        if this.alarm.poll(context, until).is_pending() {
            return Poll::Pending;
        }
        tracing::warn!(
            after_seconds = this.idle.as_secs_f64(),
            "an upstream stopped sending in the middle of its response: the response is cut off"
        );
        Poll::Ready(Some(Err(format!("no data arrived for {:?}", this.idle).into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
