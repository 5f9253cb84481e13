//! A body that is written while it is read: the writer waits for the reader.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::BodyError;

/// The writer's end.
pub(crate) struct Outlet {
    sender: mpsc::UnboundedSender<Result<Portion, BodyError>>,
    /// As many permits as bytes may be under way.
    room: Arc<Semaphore>,
    capacity: u32,
}

/// Nobody reads any more.
#[derive(Debug)]
pub(crate) struct Closed;

struct Portion {
    bytes: Bytes,
    _room: OwnedSemaphorePermit,
}

/// A body of which `capacity` bytes may be under way, and one part more, however long that is.
pub(crate) fn outlet(capacity: usize) -> (Outlet, impl Body<Data = Bytes, Error = BodyError> + Send) {
    let capacity = u32::try_from(capacity.max(1)).unwrap_or(u32::MAX).min(u32::MAX >> 4);
    let room = Arc::new(Semaphore::new(usize::try_from(capacity).unwrap_or(1)));
    let (sender, receiver) = mpsc::unbounded_channel();
    (Outlet { sender, room, capacity }, Inside(receiver))
}

impl Outlet {
    /// Sends bytes, once so much of what was sent before has been read that there is room for them.
    pub(crate) async fn send(&self, bytes: Bytes) -> Result<(), Closed> {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX).clamp(1, self.capacity);
        let room = tokio::select! {
            room = Arc::clone(&self.room).acquire_many_owned(length) => room.map_err(|_| Closed)?,
            () = self.sender.closed() => return Err(Closed),
        };
        self.sender.send(Ok(Portion { bytes, _room: room })).map_err(|_| Closed)
    }

    /// Waits until nobody reads any more.
    pub(crate) async fn closed(&self) {
        self.sender.closed().await;
    }

    /// Breaks the body off behind what was sent.
    pub(crate) fn abort(self, why: BodyError) {
        // Where nobody reads nobody has to be told.
        let _ = self.sender.send(Err(why));
    }
}

struct Inside(mpsc::UnboundedReceiver<Result<Portion, BodyError>>);

impl Body for Inside {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let next = ready!(self.0.poll_recv(context));
        Poll::Ready(next.map(|next| next.map(|portion| Frame::data(portion.bytes))))
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    /// Whether a part of so many bytes is taken at once.
    async fn is_taken(outlet: &Outlet, bytes: usize) -> bool {
        let sent = std::pin::pin!(outlet.send(Bytes::from(vec![0; bytes])));
        tokio::select! { biased; sent = sent => sent.is_ok(), () = std::future::ready(()) => false }
    }

    #[tokio::test]
    async fn the_writer_waits_for_the_reader_in_bytes() {
        let (outlet, mut body) = outlet(100);
        assert!(is_taken(&outlet, 60).await && is_taken(&outlet, 40).await);
        assert!(!is_taken(&outlet, 1).await);
        body.frame().await.unwrap().unwrap();
        assert!(is_taken(&outlet, 60).await && !is_taken(&outlet, 1).await);
        // A part that is longer than all of the room has to have it for itself.
        for _ in 0..2 {
            body.frame().await.unwrap().unwrap();
        }
        assert!(is_taken(&outlet, 1_000).await && !is_taken(&outlet, 1).await);
    }

    #[tokio::test]
    async fn a_writer_without_a_reader_is_told() {
        let (outlet, body) = outlet(10);
        assert!(is_taken(&outlet, 10).await);
        drop(body);
        outlet.closed().await;
        assert!(outlet.send(Bytes::from_static(b"x")).await.is_err());
    }

    #[tokio::test]
    async fn what_is_broken_off_has_no_end() {
        let (outlet, mut body) = outlet(10);
        assert!(is_taken(&outlet, 1).await);
        outlet.abort("broken".into());
        assert!(body.frame().await.unwrap().is_ok());
        assert!(body.frame().await.unwrap().is_err());
    }
}
