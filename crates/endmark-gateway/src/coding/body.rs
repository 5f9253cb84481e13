//! Decodes a compressed body.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame};

use super::{Codings, Decoder};
use crate::body::{AnyBody, BodyError};

/// Returns the decoded body. Data is read and decoded only when the reader polls.
pub(crate) fn decode(body: AnyBody, codings: &Codings) -> AnyBody {
    DecodedBody { body, decoder: Decoder::new(codings), has_ended: false, trailers: None }.boxed_unsync()
}

struct DecodedBody {
    body: AnyBody,
    decoder: Decoder,
    has_ended: bool,
    /// The trailers, delivered after the end of the decoded body.
    trailers: Option<Frame<Bytes>>,
}

impl Body for DecodedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        loop {
            match self.decoder.pull() {
                Err(error) => return Poll::Ready(Some(Err(error.into()))),
                Ok(piece) if !piece.is_empty() => return Poll::Ready(Some(Ok(Frame::data(piece)))),
                Ok(_) => {}
            }
            if self.has_ended {
                return Poll::Ready(self.trailers.take().map(Ok));
            }
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => self.has_ended = true,
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.decoder.push(&data),
                    Err(trailers) => {
                        self.has_ended = true;
                        self.trailers = Some(trailers);
                    }
                },
            }
            if self.has_ended {
                self.decoder.end();
            }
        }
    }
}
