//! A model server that needs little CPU time. It always sends the same reply without delay, either whole or
//! as a stream of 50 content chunks. The path determines the format.
//!
//!     scripted_server PORT

mod replies;

use std::convert::Infallible;
use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use replies::Reply;
use tokio::net::TcpListener;

/// The body of a stream. Each chunk is written separately, as by a model that generates one token after
/// another.
struct Pieces {
    left: std::vec::IntoIter<Bytes>,
    pause: bool,
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        // hyper flushes its buffer when the body returns `Pending`.
        self.pause = !self.pause;
        if self.pause {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(self.left.next().map(|piece| Ok(Frame::data(piece))))
    }
}

type Answer = Response<BoxBody<Bytes, Infallible>>;

async fn answer(
    request: Request<Incoming>,
    replies: &'static [(&'static str, Reply)],
) -> Result<Answer, hyper::Error> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await?.to_bytes();
    let streams = path.ends_with(":streamGenerateContent")
        || body.windows(13).any(|window| window == b"\"stream\":true");
    let Some((_, reply)) = replies.iter().find(|(part, _)| path.contains(part)) else {
        let mut answer = Response::new(Full::new(Bytes::new()).boxed());
        *answer.status_mut() = StatusCode::NOT_FOUND;
        return Ok(answer);
    };
    let (kind, body) = if streams {
        let left = reply.pieces.clone().into_iter();
        ("text/event-stream; charset=utf-8", Pieces { left, pause: false }.boxed())
    } else {
        ("application/json", Full::new(reply.whole.clone()).boxed())
    };
    let mut answer = Response::new(body);
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    Ok(answer)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let port: u16 = std::env::args().nth(1).ok_or("usage: scripted_server PORT")?.parse()?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let replies: &'static [(&'static str, Reply)] = Box::leak(Box::new(replies::by_path()));
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = service_fn(move |request| answer(request, replies));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}
