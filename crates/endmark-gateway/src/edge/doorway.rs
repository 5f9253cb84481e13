//! Transfers the bytes between a connection and the HTTP library.
//!
//! A head is transferred only when it is complete and valid, and when no other request is in progress. Therefore the
//! library never rejects a request without a message, and never waits for a client. All rejections have the error
//! format of the client's SDK.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use endmark_wire::http1::{Bounds, Framing, PassableBytes, RequestPart};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::last_words::last_words;
use super::presence::{Activity, Presence};
use crate::metrics::Metrics;
use crate::rescue::Refusal;
use crate::settings::Limits;
use crate::stopping::{Stage, Stopping};
use crate::turn::Alarm;

/// Bytes read from the system at a time. A head with all headers that agents send fits.
const READ_BYTES: usize = 4 * 1024;

/// How long the connection stays open after the last response, so that the client can read it. Closing while the
/// client still sends data would make the system discard the response.
const CLOSE_DELAY: Duration = Duration::from_secs(2);

/// The bytes of one connection.
pub(super) struct Doorway<S> {
    stream: S,
    presence: Arc<Presence>,
    stopping: Arc<Stopping>,
    metrics: Arc<Metrics>,
    limits: Limits,
    framing: Framing,
    /// Bytes that arrived but were not passed on yet.
    waiting: BytesMut,
    /// How many of these bytes may be forwarded.
    passable: usize,
    is_first: bool,
    end: End,
    reading: Timer,
    writing: Timer,
    closing: Timer,
}

/// Whether the connection accepts more requests.
enum End {
    /// The connection continues.
    Open,
    /// No more requests are accepted, without a message to the client.
    Quiet,
    /// No more requests are accepted, and the client gets this message.
    WithMessage(Bytes),
}

impl<S: AsyncRead + AsyncWrite + Unpin> Doorway<S> {
    pub(super) fn new(
        stream: S,
        presence: Arc<Presence>,
        stopping: Arc<Stopping>,
        metrics: Arc<Metrics>,
        limits: &Limits,
    ) -> Self {
        let bounds = Bounds { bytes: limits.header_bytes, fields: limits.header_fields };
        Self {
            stream,
            presence,
            stopping,
            metrics,
            limits: limits.clone(),
            framing: Framing::new(bounds),
            waiting: BytesMut::new(),
            passable: 0,
            is_first: true,
            end: End::Open,
            reading: Timer::default(),
            writing: Timer::default(),
            closing: Timer::default(),
        }
    }

    /// Stops accepting requests and sends this refusal to the client.
    fn refuse(&mut self, refusal: &Refusal) {
        tracing::info!(%refusal, "refused a connection");
        self.metrics.note_refusal(refusal.kind());
        self.end = End::WithMessage(last_words(refusal));
    }

    /// Determines how many of the received bytes may be forwarded.
    fn judge(&mut self) {
        let is_in_body = self.framing.place() == RequestPart::Body;
        if !is_in_body && self.presence.is_in_progress() {
            return;
        }
        match self.framing.pass(&self.waiting) {
            Ok(PassableBytes { skipped, bytes, begins_request: begins }) => {
                self.waiting.advance(skipped);
                if skipped > 0 {
                    return self.judge();
                }
                self.passable = bytes;
                if begins {
                    self.is_first = false;
                    self.presence.begins();
                }
            }
            Err(fault) if is_in_body => {
                // The client waits for a response, so the reader of the request's body reports the refusal.
                self.presence.note_body_failure(fault);
                self.end = End::Quiet;
            }
            Err(fault) => self.refuse(&Refusal::Malformed(fault)),
        }
        self.tell();
    }

    /// Records the connection's current activity.
    fn tell(&self) {
        self.presence.set_activity(match self.framing.place() {
            RequestPart::Body => Activity::SendsBody,
            _ if self.presence.is_in_progress() => Activity::Waits,
            RequestPart::Head => Activity::SendsHead,
            RequestPart::Between => Activity::Idle,
        });
    }

    /// Waits for bytes until the deadline, or until there is a reason to stop waiting.
    fn wait(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.tell();
        if self.presence.waits_for_reply(context.waker()) || self.framing.place() == RequestPart::Body {
            self.reading.stop();
            return Poll::Pending;
        }
        let is_in_head = self.framing.place() == RequestPart::Head;
        let is_draining = self.stopping.has_reached(Stage::Draining);
        match (is_in_head, self.presence.must_close()) {
            (true, true) => self.refuse(&Refusal::GaveWayToOthers),
            (true, false) if is_draining => self.refuse(&Refusal::Draining),
            (false, true) => self.end = End::Quiet,
            // Serve a new connection while draining, because readiness probes open their own.
            (false, false) if is_draining && !self.is_first => self.end = End::Quiet,
            _ => {}
        }
        if self.is_closed_to_more() {
            return Poll::Ready(());
        }
        let patience = if is_in_head || self.is_first { self.limits.header } else { self.limits.keep_alive };
        // The time limit for a head starts with the first byte of the connection or the request. The limit
        // for idle connections starts when the connection becomes idle.
        ready!(self.reading.poll(context, (is_in_head, patience)));
        if is_in_head {
            self.refuse(&Refusal::HeadTimeout(self.limits.header));
        } else {
            self.end = End::Quiet;
        }
        Poll::Ready(())
    }

    /// Reads a body directly into the library's buffer.
    fn read_body(&mut self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.stream).poll_read(context, buffer) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => {
                ready!(self.wait(context));
                return Poll::Ready(Ok(()));
            }
        }
        let came = &buffer.filled()[before..];
        if came.is_empty() {
            return Poll::Ready(Ok(()));
        }
        match self.framing.pass(came) {
            Ok(PassableBytes { bytes, .. }) => {
                self.waiting.extend_from_slice(&came[bytes..]);
                buffer.set_filled(before + bytes);
                self.tell();
                Poll::Ready(Ok(()))
            }
            Err(fault) => {
                buffer.set_filled(before);
                self.presence.note_body_failure(fault);
                self.end = End::Quiet;
                if self.presence.waits_for_reply(context.waker()) {
                    Poll::Pending
                } else {
                    Poll::Ready(Ok(()))
                }
            }
        }
    }

    fn is_closed_to_more(&self) -> bool {
        !matches!(self.end, End::Open)
    }

    /// Returns the result of a write. Fails if the client has not read for too long.
    fn check_write<T>(
        &mut self,
        context: &mut Context<'_>,
        write: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if write.is_ready() {
            self.writing.stop();
            if self.presence.activity().0 == Activity::NotReading {
                self.tell();
            }
            return write;
        }
        self.presence.set_activity(Activity::NotReading);
        ready!(self.writing.poll(context, (false, self.limits.unread)));
        tracing::info!(
            after_seconds = self.limits.unread.as_secs_f64(),
            "a client read nothing, and is dropped"
        );
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Doorway<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if this.passable > 0 {
                let passing = this.passable.min(buffer.remaining());
                buffer.put_slice(&this.waiting[..passing]);
                this.waiting.advance(passing);
                this.passable -= passing;
                return Poll::Ready(Ok(()));
            }
            if this.is_closed_to_more() {
                // During a request, an end of input would count as a disconnect of the client.
                return if this.presence.waits_for_reply(context.waker()) {
                    Poll::Pending
                } else {
                    Poll::Ready(Ok(()))
                };
            }
            if !this.waiting.is_empty() {
                this.judge();
                if this.passable > 0 || this.is_closed_to_more() {
                    continue;
                }
                if this.waiting.len() >= this.limits.header_bytes
                    && this.presence.waits_for_reply(context.waker())
                {
                    // The next request waits, and later bytes stay in the socket.
                    return Poll::Pending;
                }
            }
            if this.waiting.is_empty() && this.framing.place() == RequestPart::Body {
                return this.read_body(context, buffer);
            }
            let mut bytes = [MaybeUninit::uninit(); READ_BYTES];
            let mut came = ReadBuf::uninit(&mut bytes);
            match Pin::new(&mut this.stream).poll_read(context, &mut came) {
                Poll::Ready(Ok(())) if came.filled().is_empty() => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(())) => this.waiting.extend_from_slice(came.filled()),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => ready!(this.wait(context)),
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Doorway<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let write = Pin::new(&mut this.stream).poll_write(context, bytes);
        if let Poll::Ready(Ok(bytes)) = write {
            this.presence.note_written(bytes);
        }
        this.check_write(context, write)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let write = Pin::new(&mut this.stream).poll_write_vectored(context, slices);
        if let Poll::Ready(Ok(bytes)) = write {
            this.presence.note_written(bytes);
        }
        this.check_write(context, write)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // The library flushes only after it has written everything.
        this.presence.note_all_written();
        let flush = Pin::new(&mut this.stream).poll_flush(context);
        this.check_write(context, flush)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.closing.poll(context, (false, CLOSE_DELAY)).is_ready() {
            return Poll::Ready(Ok(()));
        }
        let mut is_waited_for = this.framing.place() == RequestPart::Body;
        if let End::WithMessage(words) = &mut this.end {
            is_waited_for = true;
            while !words.is_empty() {
                let written = ready!(Pin::new(&mut this.stream).poll_write(context, words))?;
                words.advance(written);
            }
        }
        ready!(Pin::new(&mut this.stream).poll_flush(context))?;
        ready!(Pin::new(&mut this.stream).poll_shutdown(context))?;
        while is_waited_for {
            let mut bytes = [MaybeUninit::uninit(); READ_BYTES];
            let mut came = ReadBuf::uninit(&mut bytes);
            ready!(Pin::new(&mut this.stream).poll_read(context, &mut came))?;
            is_waited_for = !came.filled().is_empty();
        }
        Poll::Ready(Ok(()))
    }
}

/// A timer for one purpose. Polling it for another purpose restarts it.
#[derive(Default)]
struct Timer {
    running_since: Option<((bool, Duration), Instant)>,
    alarm: Alarm,
}

impl Timer {
    /// Becomes ready after this duration, counted from the first poll for this purpose.
    fn poll(&mut self, context: &mut Context<'_>, what: (bool, Duration)) -> Poll<()> {
        let until = match self.running_since {
            Some((known, until)) if known == what => until,
            _ => Instant::now() + what.1,
        };
        self.running_since = Some((what, until));
        self.alarm.poll(context, until)
    }

    fn stop(&mut self) {
        self.running_since = None;
    }
}
