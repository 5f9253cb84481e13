//! Measures the body of an upstream's response while it is forwarded.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use endmark_recovery::Ending;
use hyper::body::{Body, Frame, SizeHint};

use super::call::Call;
use super::endings::CallEnd;
use super::usage_reader::{ResponseContent, UsageReader};
use crate::body::{AnyBody, BodyError};

/// Measures a response: how much of its body arrived, when it began, and whether the complete request was sent.
#[derive(Debug)]
pub(super) struct ResponseMeter {
    began: Instant,
    is_sent: AtomicBool,
    bytes: AtomicU64,
    /// Estimated tokens of the text plus 1. 0 if the text is not read.
    written_tokens_plus_one: AtomicU64,
    /// Microseconds from the start to the first byte. 0 before the first byte.
    first_byte_micros: AtomicU64,
}

impl ResponseMeter {
    pub(super) fn new(began: Instant) -> Self {
        Self {
            began,
            is_sent: AtomicBool::new(false),
            bytes: AtomicU64::new(0),
            written_tokens_plus_one: AtomicU64::new(0),
            first_byte_micros: AtomicU64::new(0),
        }
    }

    /// Records that the whole request was sent.
    pub(super) fn note_sent(&self) {
        self.is_sent.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_sent(&self) -> bool {
        self.is_sent.load(Ordering::Relaxed)
    }

    fn count(&self, data: &[u8]) {
        if data.is_empty() {
            return;
        }
        if self.bytes.fetch_add(data.len() as u64, Ordering::Relaxed) == 0 {
            self.first_byte_micros.store(self.elapsed_micros().max(1), Ordering::Relaxed);
        }
    }

    /// Returns the microseconds since the start.
    pub(super) fn elapsed_micros(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Records the tokens of the text so far, or `None` if the text is no longer read.
    pub(super) fn set_written(&self, written: Option<u64>) {
        self.written_tokens_plus_one
            .store(written.map_or(0, |tokens| tokens.saturating_add(1)), Ordering::Relaxed);
    }

    pub(super) fn written_tokens(&self) -> Option<u64> {
        self.written_tokens_plus_one.load(Ordering::Relaxed).checked_sub(1)
    }

    pub(super) fn first_byte_micros(&self) -> Option<u64> {
        Some(self.first_byte_micros.load(Ordering::Relaxed)).filter(|micros| *micros > 0)
    }
}

/// A body that counts the bytes that pass. At its end it settles its call, if it has one.
pub(super) struct MeteredBody {
    pub(super) inner: AnyBody,
    pub(super) meter: Arc<ResponseMeter>,
    /// The call to settle, and its ending if the body ends normally.
    pub(super) call: Option<(Call, Ending)>,
    /// Reads the usage from the body.
    pub(super) usage_reader: Option<UsageReader>,
}

impl MeteredBody {
    fn settle(&mut self, failed: bool) {
        if let Some((call, ending)) = self.call.take() {
            let listener = self.usage_reader.take();
            let is_large = listener.as_ref().is_some_and(UsageReader::is_large);
            let settle = move || {
                let report = finish_reading(listener, &call, !failed);
                let ending = if failed { Ending::Dropped } else { ending };
                call.settle(CallEnd {
                    finish_reasons: report.finish_reasons,
                    usage: report.usage,
                    is_counted: report.is_counted,
                    tier: report.tier,
                    web_searches: report.web_searches,
                    model: report.model,
                    ..CallEnd::unread(ending)
                });
            };
            if is_large {
                // Use another thread, because parsing takes time and the client already has the complete body.
                tokio::task::spawn_blocking(settle);
            } else {
                settle();
            }
        }
    }
}

/// Returns the usage and text that were read from a finished response.
fn finish_reading(listener: Option<UsageReader>, call: &Call, ended: bool) -> ResponseContent {
    let report = listener.map(|listener| listener.finish(ended)).unwrap_or_default();
    call.record_tallies(report.written_tallies.as_deref());
    report
}

/// A drop before the end means that the client has disconnected.
impl Drop for MeteredBody {
    fn drop(&mut self) {
        if let Some((call, _)) = self.call.take() {
            // The last reported usage is not final, so the final usage is estimated from the text.
            finish_reading(self.usage_reader.take(), &call, false);
        }
    }
}

impl Body for MeteredBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref() {
                    self.meter.count(data);
                    if let Some(listener) = &mut self.usage_reader {
                        listener.read_data(data);
                    }
                }
                // hyper does not poll again if the declared length shows that nothing follows.
                if self.inner.is_end_stream() {
                    self.settle(false);
                }
            }
            Poll::Ready(None) => self.settle(false),
            Poll::Ready(Some(Err(_))) => self.settle(true),
            Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
