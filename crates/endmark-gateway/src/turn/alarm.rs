//! A timer for a deadline that moves often.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::time::{Instant, Sleep, sleep_until};

/// Fires if no data arrived before a deadline. The deadline usually moves before it is reached.
///
/// Setting a timer costs more than checking one. Therefore the timer is set again only when it fires too early, and
/// not for each part of a body.
#[derive(Default)]
pub(crate) struct Alarm(Option<Pin<Box<Sleep>>>);

impl Alarm {
    /// Becomes ready after `until`. Until then, the caller is woken at `until` at the latest.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>, until: Instant) -> Poll<()> {
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(until)));
        if until < sleep.deadline() {
            sleep.as_mut().reset(until);
        }
        while sleep.as_mut().poll(context).is_ready() {
            if Instant::now() >= until {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(until);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn an_alarm_fires_at_its_time_after_any_change() {
        let (mut alarm, began) = (Alarm::default(), Instant::now());
        let (near, far) = (began + Duration::from_millis(20), began + Duration::from_millis(60));
        for until in [far, near, far] {
            let rang = poll_fn(|context| Poll::Ready(alarm.poll(context, until))).await;
            assert_eq!(rang.is_ready(), Instant::now() >= until);
        }
        poll_fn(|context| alarm.poll(context, far)).await;
        assert!(Instant::now() >= far);
        // A timer that has fired is ready for a past deadline, but not for a future one.
        let later = Instant::now() + Duration::from_hours(1);
        poll_fn(|context| alarm.poll(context, near)).await;
        assert!(poll_fn(|context| Poll::Ready(alarm.poll(context, later))).await.is_pending());
    }
}
