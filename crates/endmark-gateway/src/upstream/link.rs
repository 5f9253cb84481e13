//! Reads a connection to an upstream to its end, even after writing has failed.
//!
//! An upstream may respond before it has received the complete request, usually with a refusal, and close the
//! connection. In that case the response has arrived, but a client that stops because it cannot send the rest would
//! not read it.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::rt::{Read, ReadBuf, ReadBufCursor, Write};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::client::legacy::connect::{Connected, Connection};

use super::connector::EstablishedConnection;

/// Maximum bytes per read from the system. The HTTP library uses buffers of 8 KiB, and enlarges them when one
/// was full. It reads twice before it is polled again, so a stream with a slow client uses two buffers.
const MAX_READ_BYTES: usize = 4 * 1024;

/// A connection to an upstream.
pub struct UpstreamStream {
    stream: MaybeHttpsStream<EstablishedConnection>,
    /// Whether the other end accepts no more data. Later writes are discarded, and reading reports how the connection
    /// ends.
    is_write_closed: bool,
}

impl UpstreamStream {
    pub(super) fn new(stream: MaybeHttpsStream<EstablishedConnection>) -> Self {
        Self { stream, is_write_closed: false }
    }

    /// Returns the result of a write, or `lost` if the other end accepts no more data.
    fn check_write<T>(&mut self, write: Poll<io::Result<T>>, lost: T) -> Poll<io::Result<T>> {
        match write {
            Poll::Ready(Err(error)) if is_peer_closed(&error) => {
                tracing::debug!(%error, "an upstream takes no more of a request");
                self.is_write_closed = true;
                Poll::Ready(Ok(lost))
            }
            write => write,
        }
    }
}

/// Whether the error means that the other end has closed the connection, so that a read also ends.
fn is_peer_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted
    )
}

impl Connection for UpstreamStream {
    fn connected(&self) -> Connected {
        self.stream.connected()
    }
}

impl Read for UpstreamStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if buffer.remaining() <= MAX_READ_BYTES {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let mut bytes = [MaybeUninit::uninit(); MAX_READ_BYTES];
        let mut came = ReadBuf::uninit(&mut bytes);
        ready!(Pin::new(&mut self.stream).poll_read(context, came.unfilled()))?;
        buffer.put_slice(came.filled());
        Poll::Ready(Ok(()))
    }
}

impl Write for UpstreamStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_write_closed {
            return Poll::Ready(Ok(bytes.len()));
        }
        let write = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.check_write(write, bytes.len())
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_write_closed {
            return Poll::Ready(Ok(()));
        }
        let flush = Pin::new(&mut self.stream).poll_flush(context);
        self.check_write(flush, ())
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let all = parts.iter().map(|part| part.len()).sum();
        if self.is_write_closed {
            return Poll::Ready(Ok(all));
        }
        let write = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.check_write(write, all)
    }
}
