//! A body with an injected fault.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use endmark_wire::format::WireFormat;
use http::{Response, header};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame};
use tokio::time::Sleep;

use super::stream::{BodyEnd, BodyStep, FaultyStream};
use super::whole;
use crate::body::{AnyBody, BodyError, full, with_prefix};
use crate::settings::{Fault, FaultKind};
use crate::upstream::{PartialBody, UpstreamError, decode_response, is_event_stream, read_up_to};

/// Maximum size of a non-streamed reply into which a fault is injected. Larger replies pass unchanged.
const MAX_REPLY_BYTES: usize = 64 * 1024 * 1024;

/// The time limit for reading a reply into which a fault is injected.
const READ_TIMEOUT: std::time::Duration = std::time::Duration::from_mins(10);

/// Returns the response with the fault injected into its body.
pub(super) async fn inject_into_response(
    fault: &Fault,
    format: &'static dyn WireFormat,
    answer: Response<AnyBody>,
) -> Result<Response<AnyBody>, UpstreamError> {
    // Decode the body first, because faults apply to decoded text.
    let answer = decode_response(answer);
    let streams = is_event_stream(answer.headers());
    let (mut head, body) = answer.into_parts();
    if !head.status.is_success() {
        return Ok(Response::from_parts(head, body));
    }
    let body = if streams {
        let strike = Box::new(FaultyStream::new(fault, format));
        FaultyBody::into_body(body, Some(strike), VecDeque::new())
    } else {
        let lost = |error| UpstreamError::Unreachable(format!("its answer was lost: {error}"));
        match read_up_to(body, MAX_REPLY_BYTES, READ_TIMEOUT, None).await.map_err(lost)? {
            PartialBody::Longer(beginning, rest) | PartialBody::NoRoom(beginning, rest) => {
                return Ok(Response::from_parts(head, with_prefix(beginning, rest)));
            }
            PartialBody::Whole(body) => inject_into_body(fault, format, &body),
        }
    };
    head.headers.remove(header::CONTENT_LENGTH);
    Ok(Response::from_parts(head, body))
}

fn inject_into_body(fault: &Fault, format: &'static dyn WireFormat, body: &Bytes) -> AnyBody {
    let at = whole::byte_offset(fault.position);
    let mut steps = VecDeque::new();
    match fault.kind.body_end() {
        Some(end) if at < body.len() => {
            steps.push_back(BodyStep::Pass(body.slice(..at)));
            steps.push_back(BodyStep::End(end));
        }
        _ => {
            if let FaultKind::Slow(pause) = fault.kind {
                steps.push_back(BodyStep::Wait(pause));
            }
            steps.push_back(BodyStep::Pass(whole::apply(fault.kind, format, at, body)));
        }
    }
    FaultyBody::into_body(full(""), None, steps)
}

struct FaultyBody {
    inner: AnyBody,
    /// The fault that is still pending. `None` if only `steps` remain.
    pending_fault: Option<Box<FaultyStream>>,
    steps: VecDeque<BodyStep>,
    sleep: Option<Pin<Box<Sleep>>>,
    /// The error that ends the body. It follows after the preceding parts are written, because closing discards
    /// buffered bytes.
    pending_error: Option<io::ErrorKind>,
}

impl FaultyBody {
    fn into_body(
        inner: AnyBody,
        pending_fault: Option<Box<FaultyStream>>,
        steps: VecDeque<BodyStep>,
    ) -> AnyBody {
        Self { inner, pending_fault, steps, sleep: None, pending_error: None }.boxed_unsync()
    }

    fn break_off(&mut self, how: io::ErrorKind, context: &Context<'_>) {
        self.pending_error = Some(how);
        context.waker().wake_by_ref();
    }
}

impl Body for FaultyBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Some(how) = self.pending_error.take() {
            return Poll::Ready(Some(Err(break_error(how))));
        }
        loop {
            if let Some(sleep) = &mut self.sleep {
                ready!(sleep.as_mut().poll(context));
                self.sleep = None;
            }
            match self.steps.pop_front() {
                Some(BodyStep::Pass(bytes)) if bytes.is_empty() => continue,
                Some(BodyStep::Pass(bytes)) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Some(BodyStep::Wait(pause)) => {
                    self.sleep = Some(Box::pin(tokio::time::sleep(pause)));
                    continue;
                }
                Some(BodyStep::End(end)) => {
                    // The rest is not read, so let the upstream stop producing it.
                    self.inner = full("");
                    self.pending_fault = None;
                    match end {
                        BodyEnd::Regular => return Poll::Ready(None),
                        BodyEnd::Closed => {
                            self.break_off(io::ErrorKind::UnexpectedEof, context);
                            return Poll::Pending;
                        }
                        BodyEnd::Reset => {
                            self.break_off(io::ErrorKind::ConnectionReset, context);
                            return Poll::Pending;
                        }
                        BodyEnd::Never => {
                            self.steps.push_front(BodyStep::End(BodyEnd::Never));
                            return Poll::Pending;
                        }
                    }
                }
                None => {}
            }
            if self.pending_fault.is_none() {
                return Poll::Ready(None);
            }
            let Some(frame) = ready!(Pin::new(&mut self.inner).poll_frame(context)) else {
                let rest = self.pending_fault.take().map(|mut strike| strike.finish());
                self.steps.extend(rest.into_iter().flatten());
                continue;
            };
            match frame?.into_data() {
                Ok(data) => {
                    let steps = self.pending_fault.as_mut().map(|strike| strike.push(&data));
                    self.steps.extend(steps.into_iter().flatten());
                }
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
    }
}

fn break_error(kind: io::ErrorKind) -> BodyError {
    Box::new(io::Error::new(kind, "a rehearsed fault (--fault)"))
}
