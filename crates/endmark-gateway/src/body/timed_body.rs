//! Reads a body with time limits.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use endmark_recovery::Ending;
use hyper::body::Body;
use tokio::time::Instant;

use super::AnyBody;
use crate::turn::{Alarm, poll_woken_work};

/// An upstream's body with time limits: at most `idle` between parts, and a `deadline` for the whole body.
pub(crate) struct TimedBody {
    body: AnyBody,
    idle: Duration,
    deadline: Instant,
    alarm: Alarm,
}

impl TimedBody {
    pub(crate) fn new(body: AnyBody, idle: Duration, deadline: Instant) -> Self {
        Self { body, idle, deadline, alarm: Alarm::default() }
    }

    /// Returns the next bytes, or `None` at the end. The error states why the body ended too early.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Ending> {
        let until = self.deadline.min(Instant::now() + self.idle);
        poll_fn(|context| self.poll_next(context, until)).await
    }

    /// Returns the next bytes like `next`, or `None` if none have arrived yet.
    pub(crate) async fn next_ready(&mut self) -> Option<Result<Option<Bytes>, Ending>> {
        poll_fn(|context| {
            let mut next = self.poll_body(context);
            // The connection may have more data, which it delivers only when polled again.
            if next.is_pending() && poll_woken_work() {
                next = self.poll_body(context);
            }
            Poll::Ready(match next {
                Poll::Ready(next) => Some(next),
                Poll::Pending => None,
            })
        })
        .await
    }

    fn poll_next(
        &mut self,
        context: &mut Context<'_>,
        until: Instant,
    ) -> Poll<Result<Option<Bytes>, Ending>> {
        match self.poll_body(context) {
            Poll::Pending => self.alarm.poll(context, until).map(|()| Err(Ending::Stalled)),
            ready @ Poll::Ready(_) => ready,
        }
    }

    fn poll_body(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Ending>> {
        loop {
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                None => return Poll::Ready(Ok(None)),
                Some(Err(_)) => return Poll::Ready(Err(Ending::Dropped)),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Poll::Ready(Ok(Some(data)));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use http_body_util::channel::Channel;

    use super::*;
    use crate::body::BodyError;

    #[tokio::test]
    async fn the_idle_timeout_ends_a_silent_body() {
        let (mut sender, channel) = Channel::<Bytes, BodyError>::new(4);
        let hour = Instant::now() + Duration::from_hours(1);
        let mut patient = TimedBody::new(channel.boxed_unsync(), Duration::from_millis(50), hour);
        for _ in 0..3 {
            sender.send_data(Bytes::from_static(b"x")).await.unwrap();
            assert_eq!(patient.next().await, Ok(Some(Bytes::from_static(b"x"))));
        }
        assert_eq!(patient.next().await, Err(Ending::Stalled));
    }

    #[tokio::test]
    async fn available_parts_are_returned_without_waiting() {
        let (mut sender, channel) = Channel::<Bytes, BodyError>::new(4);
        let hour = Instant::now() + Duration::from_hours(1);
        let mut patient = TimedBody::new(channel.boxed_unsync(), Duration::from_hours(1), hour);
        for _ in 0..2 {
            sender.send_data(Bytes::from_static(b"x")).await.unwrap();
        }
        for _ in 0..2 {
            assert_eq!(patient.next_ready().await, Some(Ok(Some(Bytes::from_static(b"x")))));
        }
        assert_eq!(patient.next_ready().await, None);
        drop(sender);
        assert_eq!(patient.next_ready().await, Some(Ok(None)));
    }

    #[tokio::test]
    async fn the_deadline_ends_a_silent_body() {
        let (sender, channel) = Channel::<Bytes, BodyError>::new(4);
        let soon = Instant::now() + Duration::from_millis(10);
        let mut patient = TimedBody::new(channel.boxed_unsync(), Duration::from_hours(1), soon);
        assert_eq!(patient.next().await, Err(Ending::Stalled));
        drop(sender);
        assert_eq!(patient.next().await, Ok(None));
    }

    #[tokio::test]
    async fn an_aborted_body_is_reported_as_dropped() {
        let (sender, channel) = Channel::<Bytes, BodyError>::new(4);
        let hour = Instant::now() + Duration::from_hours(1);
        let mut patient = TimedBody::new(channel.boxed_unsync(), Duration::from_hours(1), hour);
        sender.abort("broken".into());
        assert_eq!(patient.next().await, Err(Ending::Dropped));
    }
}
