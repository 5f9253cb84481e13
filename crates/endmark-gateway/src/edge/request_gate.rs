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
use endmark_wire::http1::{Framing, HeadLimits, PassableBytes, RequestPart};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::connection_state::{Activity, ConnectionState};
use super::raw_error::raw_error_response;
use crate::metrics::Metrics;
use crate::refusals::Refusal;
use crate::settings::Limits;
use crate::stopping::{ShutdownStage, Stopping};
use crate::turn::Alarm;

/// Size of one read in bytes. The head of an agent's request fits into one read.
const READ_BUFFER_BYTES: usize = 4 * 1024;

/// How long the connection stays open after the last response, so that the client can read it. Closing while the
/// client still sends data would make the system discard the response.
const CLOSE_DELAY: Duration = Duration::from_secs(2);

/// The byte stream of one connection, as the HTTP library sees it.
pub(super) struct RequestGate<S> {
    stream: S,
    connection_state: Arc<ConnectionState>,
    stopping: Arc<Stopping>,
    metrics: Arc<Metrics>,
    limits: Limits,
    framing: Framing,
    /// Bytes that arrived but were not passed on yet.
    waiting: BytesMut,
    /// How many bytes of `waiting` may be forwarded.
    passable: usize,
    is_first: bool,
    intake: RequestIntake,
    read_timer: Timer,
    write_timer: Timer,
    close_timer: Timer,
}

/// Whether the connection accepts more requests.
enum RequestIntake {
    /// The connection continues.
    Open,
    /// No more requests are accepted, without a message to the client.
    ClosedSilently,
    /// No more requests are accepted, and the client gets this message.
    ClosedWithMessage(Bytes),
}

impl<S: AsyncRead + AsyncWrite + Unpin> RequestGate<S> {
    pub(super) fn new(
        stream: S,
        connection_state: Arc<ConnectionState>,
        stopping: Arc<Stopping>,
        metrics: Arc<Metrics>,
        limits: &Limits,
    ) -> Self {
        let bounds = HeadLimits { bytes: limits.header_bytes, fields: limits.header_fields };
        Self {
            stream,
            connection_state,
            stopping,
            metrics,
            limits: limits.clone(),
            framing: Framing::new(bounds),
            waiting: BytesMut::new(),
            passable: 0,
            is_first: true,
            intake: RequestIntake::Open,
            read_timer: Timer::default(),
            write_timer: Timer::default(),
            close_timer: Timer::default(),
        }
    }

    /// Stops accepting requests and sends this refusal to the client.
    fn refuse(&mut self, refusal: &Refusal) {
        tracing::info!(%refusal, "refused a connection");
        self.metrics.note_refusal(refusal.error_type());
        self.intake = RequestIntake::ClosedWithMessage(raw_error_response(refusal));
    }

    /// Determines how many of the received bytes may be forwarded.
    fn mark_passable(&mut self) {
        let is_in_body = self.framing.part() == RequestPart::Body;
        if !is_in_body && self.connection_state.is_in_progress() {
            return;
        }
        match self.framing.pass(&self.waiting) {
            Ok(PassableBytes { skipped, bytes, begins_request: begins }) => {
                self.waiting.advance(skipped);
                if skipped > 0 {
                    return self.mark_passable();
                }
                self.passable = bytes;
                if begins {
                    self.is_first = false;
                    self.connection_state.set_in_progress();
                }
            }
            Err(fault) if is_in_body => {
                // The client waits for a response, so the reader of the request's body reports the refusal.
                self.connection_state.note_body_failure(fault);
                self.intake = RequestIntake::ClosedSilently;
            }
            Err(fault) => self.refuse(&Refusal::Malformed(fault)),
        }
        self.update_activity();
    }

    /// Records the connection's current activity.
    fn update_activity(&self) {
        self.connection_state.set_activity(match self.framing.part() {
            RequestPart::Body => Activity::SendsBody,
            _ if self.connection_state.is_in_progress() => Activity::WaitsForReply,
            RequestPart::Head => Activity::SendsHead,
            RequestPart::Between => Activity::Idle,
        });
    }

    /// Waits for bytes until the deadline, or until there is a reason to stop waiting.
    fn wait(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.update_activity();
        if self.connection_state.waits_for_reply(context.waker()) || self.framing.part() == RequestPart::Body
        {
            self.read_timer.stop();
            return Poll::Pending;
        }
        let is_in_head = self.framing.part() == RequestPart::Head;
        let is_draining = self.stopping.has_reached(ShutdownStage::Draining);
        match (is_in_head, self.connection_state.must_close()) {
            (true, true) => self.refuse(&Refusal::GaveWayToOthers),
            (true, false) if is_draining => self.refuse(&Refusal::Draining),
            (false, true) => self.intake = RequestIntake::ClosedSilently,
            // Serve a new connection while draining, because readiness probes open their own.
            (false, false) if is_draining && !self.is_first => self.intake = RequestIntake::ClosedSilently,
            _ => {}
        }
        if self.is_intake_closed() {
            return Poll::Ready(());
        }
        let patience = if is_in_head || self.is_first { self.limits.header } else { self.limits.keep_alive };
        // The time limit for a head starts with the first byte of the connection or the request. The limit
        // for idle connections starts when the connection becomes idle.
        ready!(self.read_timer.poll(context, (is_in_head, patience)));
        if is_in_head {
            self.refuse(&Refusal::HeadTimeout(self.limits.header));
        } else {
            self.intake = RequestIntake::ClosedSilently;
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
        let received = &buffer.filled()[before..];
        if received.is_empty() {
            return Poll::Ready(Ok(()));
        }
        match self.framing.pass(received) {
            Ok(PassableBytes { bytes, .. }) => {
                self.waiting.extend_from_slice(&received[bytes..]);
                buffer.set_filled(before + bytes);
                self.update_activity();
                Poll::Ready(Ok(()))
            }
            Err(fault) => {
                buffer.set_filled(before);
                self.connection_state.note_body_failure(fault);
                self.intake = RequestIntake::ClosedSilently;
                if self.connection_state.waits_for_reply(context.waker()) {
                    Poll::Pending
                } else {
                    Poll::Ready(Ok(()))
                }
            }
        }
    }

    fn is_intake_closed(&self) -> bool {
        !matches!(self.intake, RequestIntake::Open)
    }

    /// Returns the result of a write. Fails if the client has not read for too long.
    fn check_write<T>(
        &mut self,
        context: &mut Context<'_>,
        write: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if write.is_ready() {
            self.write_timer.stop();
            if self.connection_state.activity().0 == Activity::NotReading {
                self.update_activity();
            }
            return write;
        }
        self.connection_state.set_activity(Activity::NotReading);
        ready!(self.write_timer.poll(context, (false, self.limits.unread)));
        tracing::info!(
            after_seconds = self.limits.unread.as_secs_f64(),
            "a client stopped reading: its connection is closed"
        );
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for RequestGate<S> {
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
            if this.is_intake_closed() {
                // During a request, an end of input would count as a disconnect of the client.
                return if this.connection_state.waits_for_reply(context.waker()) {
                    Poll::Pending
                } else {
                    Poll::Ready(Ok(()))
                };
            }
            if !this.waiting.is_empty() {
                this.mark_passable();
                if this.passable > 0 || this.is_intake_closed() {
                    continue;
                }
                if this.waiting.len() >= this.limits.header_bytes
                    && this.connection_state.waits_for_reply(context.waker())
                {
                    // The next request waits, and later bytes stay in the socket.
                    return Poll::Pending;
                }
            }
            if this.waiting.is_empty() && this.framing.part() == RequestPart::Body {
                return this.read_body(context, buffer);
            }
            let mut bytes = [MaybeUninit::uninit(); READ_BUFFER_BYTES];
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

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for RequestGate<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let write = Pin::new(&mut this.stream).poll_write(context, bytes);
        if let Poll::Ready(Ok(bytes)) = write {
            this.connection_state.note_written(bytes);
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
            this.connection_state.note_written(bytes);
        }
        this.check_write(context, write)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // The library flushes only after it has written everything.
        this.connection_state.note_all_written();
        let flush = Pin::new(&mut this.stream).poll_flush(context);
        this.check_write(context, flush)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.close_timer.poll(context, (false, CLOSE_DELAY)).is_ready() {
            return Poll::Ready(Ok(()));
        }
        let mut must_wait_for_client = this.framing.part() == RequestPart::Body;
        if let RequestIntake::ClosedWithMessage(words) = &mut this.intake {
            must_wait_for_client = true;
            while !words.is_empty() {
                let written = ready!(Pin::new(&mut this.stream).poll_write(context, words))?;
                words.advance(written);
            }
        }
        ready!(Pin::new(&mut this.stream).poll_flush(context))?;
        ready!(Pin::new(&mut this.stream).poll_shutdown(context))?;
        while must_wait_for_client {
            let mut bytes = [MaybeUninit::uninit(); READ_BUFFER_BYTES];
            let mut came = ReadBuf::uninit(&mut bytes);
            ready!(Pin::new(&mut this.stream).poll_read(context, &mut came))?;
            must_wait_for_client = !came.filled().is_empty();
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
    fn poll(&mut self, context: &mut Context<'_>, purpose: (bool, Duration)) -> Poll<()> {
        let until = match self.running_since {
            Some((known, until)) if known == purpose => until,
            _ => Instant::now() + purpose.1,
        };
        self.running_since = Some((purpose, until));
        self.alarm.poll(context, until)
    }

    fn stop(&mut self) {
        self.running_since = None;
    }
}
