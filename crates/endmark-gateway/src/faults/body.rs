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

use super::strike::{End, Step, Strike};
use super::whole;
use crate::body::{AnyBody, BodyError, full, with_prefix};
use crate::settings::{Fault, Kind};
use crate::upstream::{PartialBody, UpstreamError, decode_response, is_event_stream, read_up_to};

/// Maximum size of a reply without a stream into which a fault is injected. Larger replies pass unchanged.
const MAX_REPLY_BYTES: usize = 64 * 1024 * 1024;

/// The time limit for reading a reply into which a fault is injected.
const READ_TIMEOUT: std::time::Duration = std::time::Duration::from_mins(10);

/// Returns the response with the fault.
pub(super) async fn strike_response(
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
        let strike = Box::new(Strike::new(fault, format));
        FaultyBody::into_body(body, Some(strike), VecDeque::new())
    } else {
        let lost = |error| UpstreamError::Unreachable(format!("its answer was lost: {error}"));
        match read_up_to(body, MAX_REPLY_BYTES, READ_TIMEOUT, None).await.map_err(lost)? {
            PartialBody::Longer(beginning, rest) | PartialBody::NoRoom(beginning, rest) => {
                return Ok(Response::from_parts(head, with_prefix(beginning, rest)));
            }
            PartialBody::Whole(body) => strike_whole(fault, format, &body),
        }
    };
    head.headers.remove(header::CONTENT_LENGTH);
    Ok(Response::from_parts(head, body))
}

fn strike_whole(fault: &Fault, format: &'static dyn WireFormat, body: &Bytes) -> AnyBody {
    let at = whole::place(fault.place);
    let mut steps = VecDeque::new();
    match fault.kind.end() {
        Some(end) if at < body.len() => {
            steps.push_back(Step::Pass(body.slice(..at)));
            steps.push_back(Step::End(end));
        }
        _ => {
            if let Kind::Slow(pause) = fault.kind {
                steps.push_back(Step::Wait(pause));
            }
            steps.push_back(Step::Pass(whole::apply(fault.kind, format, at, body)));
        }
    }
    FaultyBody::into_body(full(""), None, steps)
}

struct FaultyBody {
    inner: AnyBody,
    /// The fault that is still pending. `None` if only `steps` remain.
    strike: Option<Box<Strike>>,
    steps: VecDeque<Step>,
    sleep: Option<Pin<Box<Sleep>>>,
    /// The error that ends the body. It follows after the preceding parts are written, because closing discards
    /// buffered bytes.
    breaks: Option<io::ErrorKind>,
}

impl FaultyBody {
    fn into_body(inner: AnyBody, strike: Option<Box<Strike>>, steps: VecDeque<Step>) -> AnyBody {
        Self { inner, strike, steps, sleep: None, breaks: None }.boxed_unsync()
    }

    fn break_off(&mut self, how: io::ErrorKind, context: &Context<'_>) {
        self.breaks = Some(how);
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
        if let Some(how) = self.breaks.take() {
            return Poll::Ready(Some(Err(break_error(how))));
        }
        loop {
            if let Some(sleep) = &mut self.sleep {
                ready!(sleep.as_mut().poll(context));
                self.sleep = None;
            }
            match self.steps.pop_front() {
                Some(Step::Pass(bytes)) if bytes.is_empty() => continue,
                Some(Step::Pass(bytes)) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Some(Step::Wait(pause)) => {
                    self.sleep = Some(Box::pin(tokio::time::sleep(pause)));
                    continue;
                }
                Some(Step::End(end)) => {
                    // The rest is not read, so let the upstream stop producing it.
                    self.inner = full("");
                    self.strike = None;
                    match end {
                        End::InOrder => return Poll::Ready(None),
                        End::Closed => {
                            self.break_off(io::ErrorKind::UnexpectedEof, context);
                            return Poll::Pending;
                        }
                        End::Reset => {
                            self.break_off(io::ErrorKind::ConnectionReset, context);
                            return Poll::Pending;
                        }
                        End::Never => {
                            self.steps.push_front(Step::End(End::Never));
                            return Poll::Pending;
                        }
                    }
                }
                None => {}
            }
            if self.strike.is_none() {
                return Poll::Ready(None);
            }
            let Some(frame) = ready!(Pin::new(&mut self.inner).poll_frame(context)) else {
                let rest = self.strike.take().map(|mut strike| strike.finish());
                self.steps.extend(rest.into_iter().flatten());
                continue;
            };
            match frame?.into_data() {
                Ok(data) => {
                    let steps = self.strike.as_mut().map(|strike| strike.push(&data));
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
