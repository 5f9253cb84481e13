//! A model's server that costs as little as can be: the same reply at once, whole or as a stream of 50 chunks.
//!
//!     scripted_server PORT

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
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// Pieces of content in a stream; its role, its end and `[DONE]` come on top.
const PIECES: usize = 50;

/// About as long as a short answer of a chat model, with all the fields that the public endpoint sends.
const WHOLE: &str = r#"{"id":"chatcmpl-C0ffee00000000000000000000000","object":"chat.completion","created":1760000000,"model":"gpt-4o-mini-2024-07-18","choices":[{"index":0,"message":{"role":"assistant","content":"The harbour was quiet that morning, and the gulls had not yet found the boats. Mira counted the nets twice, once by hand and once by heart, and both times there was one too many. She said nothing of it. By noon the wind had turned, the boats were out, and the net that nobody owned lay folded on the wall as if it had always been there.","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":19,"completion_tokens":78,"total_tokens":97,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"default","system_fingerprint":"fp_0000000000"}"#;

/// Each chunk goes out in a write of its own, as it does from a model that makes one token after the other.
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
        // The server flushes what it has when the body has nothing to give for the moment.
        self.pause = !self.pause;
        if self.pause {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(self.left.next().map(|piece| Ok(Frame::data(piece))))
    }
}

fn chunks() -> Vec<Bytes> {
    let chunk = |delta: &str, finish: &str| {
        Bytes::from(
            format!(
                r#"data: {{"id":"chatcmpl-C0ffee00000000000000000000000","object":"chat.completion.chunk","created":1760000000,"model":"gpt-4o-mini-2024-07-18","service_tier":"default","system_fingerprint":"fp_0000000000","choices":[{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{finish}}}]}}"#
            ) + "\n\n",
        )
    };
    let mut chunks = vec![chunk(r#"{"role":"assistant","content":"","refusal":null}"#, "null")];
    chunks.extend((0..PIECES).map(|_| chunk(r#"{"content":" harbour"}"#, "null")));
    chunks.push(chunk("{}", r#""stop""#));
    chunks.push(Bytes::from_static(b"data: [DONE]\n\n"));
    chunks
}

type Answer = Response<BoxBody<Bytes, Infallible>>;

async fn answer(request: Request<Incoming>, chunks: Vec<Bytes>) -> Result<Answer, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    let streams = body.windows(13).any(|window| window == b"\"stream\":true");
    let (kind, body) = if streams {
        ("text/event-stream; charset=utf-8", Pieces { left: chunks.into_iter(), pause: false }.boxed())
    } else {
        ("application/json", Full::new(Bytes::from_static(WHOLE.as_bytes())).boxed())
    };
    let mut answer = Response::new(body);
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    Ok(answer)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let port: u16 = std::env::args().nth(1).ok_or("usage: scripted_server PORT")?.parse()?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let chunks = chunks();
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let chunks = chunks.clone();
        let service = service_fn(move |request| answer(request, chunks.clone()));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}
