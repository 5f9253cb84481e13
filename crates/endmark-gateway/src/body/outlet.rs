//! A body produced by a future that runs inside the task that reads the body.
//!
//! A separate task for each stream would wake another thread for each event, and would outlive the reader.
//! Here the producer ends together with the body.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use hyper::body::{Body, Frame};

use super::BodyError;
use crate::work::{PooledFuture, is_in_pool};

/// The sending side of a body.
pub(crate) struct Outlet {
    unread_parts: Arc<Mutex<UnreadParts>>,
    capacity: usize,
}

/// Error: the reader was dropped.
#[derive(Debug)]
pub(crate) struct ReaderDropped;

/// Bytes that were produced but not yet read.
#[derive(Default)]
struct UnreadParts {
    parts: VecDeque<Bytes>,
    bytes: usize,
    /// Wakes a producer that runs on another thread and waits for room.
    waiting_producer: Option<Waker>,
}

impl Outlet {
    /// Sends bytes. Waits while `capacity` bytes are unread.
    pub(crate) async fn send(&self, part: Bytes) -> Result<(), ReaderDropped> {
        if Arc::strong_count(&self.unread_parts) == 1 {
            return Err(ReaderDropped);
        }
        {
            let mut unread = lock(&self.unread_parts);
            unread.bytes += part.len();
            unread.parts.push_back(part);
        }
        // Reading also polls the producer, so a wake-up is needed only if it runs on another thread.
        poll_fn(|context| {
            let mut unread = lock(&self.unread_parts);
            if unread.bytes < self.capacity {
                return Poll::Ready(());
            }
            unread.waiting_producer = is_in_pool().then(|| context.waker().clone());
            Poll::Pending
        })
        .await;
        Ok(())
    }
}

fn lock(unread: &Mutex<UnreadParts>) -> MutexGuard<'_, UnreadParts> {
    // Both values are consistent after each operation, so a panic elsewhere cannot have corrupted them.
    unread.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a body with the bytes that `producer` sends. If the producer fails, the body ends with its error
/// after those bytes. The producer waits while `capacity` bytes are unread, and is dropped with the body.
pub(crate) fn body_from<M>(
    capacity: usize,
    producer: impl FnOnce(Outlet) -> M,
) -> impl Body<Data = Bytes, Error = BodyError> + Send
where
    M: Future<Output = Result<(), BodyError>> + Send + 'static,
{
    let unread = Arc::<Mutex<UnreadParts>>::default();
    let outlet = Outlet { unread_parts: Arc::clone(&unread), capacity };
    ProducedBody { producer: Some(PooledFuture::new(producer(outlet))), error: None, unread_parts: unread }
}

struct ProducedBody<M: Future> {
    /// The producer. `None` after it ended.
    producer: Option<PooledFuture<M>>,
    /// The producer's error, returned after all produced bytes are read.
    error: Option<BodyError>,
    unread_parts: Arc<Mutex<UnreadParts>>,
}

impl<M: Future> ProducedBody<M> {
    fn next(&self) -> Option<Bytes> {
        let mut unread = lock(&self.unread_parts);
        let part = unread.parts.pop_front()?;
        unread.bytes -= part.len();
        if let Some(maker) = unread.waiting_producer.take() {
            maker.wake();
        }
        Some(part)
    }
}

impl<M: Future<Output = Result<(), BodyError>> + Send + 'static> Body for ProducedBody<M> {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Some(part) = self.next() {
            return Poll::Ready(Some(Ok(Frame::data(part))));
        }
        if let Some(maker) = &mut self.producer
            && let Poll::Ready(ended) = Pin::new(maker).poll(context)
        {
            self.producer = None;
            self.error = ended.err();
        }
        match self.next() {
            Some(part) => Poll::Ready(Some(Ok(Frame::data(part)))),
            None if self.producer.is_none() => Poll::Ready(self.error.take().map(Err)),
            None => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http_body_util::BodyExt;

    use super::*;

    const PART_COUNT: usize = 40;

    #[tokio::test]
    async fn parts_are_read_in_order_and_produced_lazily() {
        let made_so_far = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&made_so_far);
        let mut body = body_from(100, |outlet| async move {
            for number in 0..PART_COUNT {
                count.fetch_add(1, Ordering::Relaxed);
                outlet.send(Bytes::from(vec![u8::try_from(number).unwrap(); 60])).await.unwrap();
            }
            Ok(())
        });
        for number in 0..PART_COUNT {
            let part = body.frame().await.unwrap().unwrap().into_data().unwrap();
            assert_eq!(usize::from(part[0]), number);
            assert!(made_so_far.load(Ordering::Relaxed) <= number + 2);
        }
        assert!(body.frame().await.is_none());
    }

    #[tokio::test]
    async fn a_producer_error_ends_the_body_with_that_error() {
        let mut body = body_from(10, |outlet| async move {
            outlet.send(Bytes::from_static(b"beginning")).await.unwrap();
            Err("it broke off".into())
        });
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "beginning");
        assert!(body.frame().await.unwrap().is_err());
        assert!(body.frame().await.is_none());
    }

    #[tokio::test]
    async fn a_producer_stops_with_its_body() {
        let shared = Arc::new(());
        let producer_copy = Arc::clone(&shared);
        let body = body_from(10, |outlet| async move {
            outlet.send(Bytes::from_static(b"much more than there is room for")).await.unwrap();
            drop(producer_copy);
            Ok(())
        });
        assert_eq!(Arc::strong_count(&shared), 2);
        drop(body);
        assert_eq!(Arc::strong_count(&shared), 1);
    }

    #[tokio::test]
    async fn an_outlet_reports_a_dropped_body() {
        let mut kept = None;
        let body = body_from(10, |outlet| {
            kept = Some(outlet);
            std::future::pending()
        });
        drop(body);
        assert!(kept.unwrap().send(Bytes::from_static(b"x")).await.is_err());
    }
}
