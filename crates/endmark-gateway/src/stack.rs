//! The way of a request, from top to bottom.
//!
//! admit → forward → observe → judge → resume → validate → correct → settle → disclose: the first two
//! stand here, the others in `chat`, once for replies that come as a whole and once for streams.

use std::sync::Arc;

use http::{Request, Response, header};
use hyper::body::Incoming;

use crate::body::{AnyBody, full, passing};
use crate::chat;
use crate::gateway::Gateway;
use crate::health;
use crate::rescue::{self, Refusal};
use crate::route::{self, Route, Target};
use crate::settings::Mode;
use crate::upstream::{for_upstream, from_upstream};

/// Answers one request, whatever it is.
pub(crate) async fn respond(gateway: Arc<Gateway>, request: Request<Incoming>) -> Response<AnyBody> {
    let answered = match route::find(&gateway, request.method(), request.uri()) {
        Route::Health => Ok(health::alive()),
        Route::Ready => Ok(health::ready(&gateway).await),
        Route::Chat(target) => chat_completions(&gateway, &target, request).await,
        Route::PassThrough(target) => pass_through(&gateway, &target, request).await,
        Route::Unknown(what) => Err(Refusal::NotFound(what)),
    };
    answered.unwrap_or_else(|refusal| rescue::respond(&refusal))
}

/// A path that Endmark has nothing to do with: there and back, byte for byte.
async fn pass_through(
    gateway: &Gateway,
    target: &Target<'_>,
    request: Request<Incoming>,
) -> Result<Response<AnyBody>, Refusal> {
    let (head, body) = request.into_parts();
    let mut onward = Request::new(passing(body));
    *onward.method_mut() = head.method;
    *onward.uri_mut() = locate(target)?;
    *onward.headers_mut() = for_upstream(&head.headers, target.upstream);
    send(gateway, target, onward).await
}

/// `POST /v1/chat/completions`.
async fn chat_completions(
    gateway: &Arc<Gateway>,
    target: &Target<'_>,
    request: Request<Incoming>,
) -> Result<Response<AnyBody>, Refusal> {
    let exchange = chat::admit(gateway, target, request).await?;
    let mut onward = Request::new(full(exchange.request.body().to_vec()));
    *onward.method_mut() = http::Method::POST;
    *onward.uri_mut() = exchange.uri.clone();
    *onward.headers_mut() = exchange.headers.clone();
    let answer = send(gateway, target, onward).await?;
    if exchange.mode == Mode::Off {
        return Ok(answer);
    }
    if !answer.status().is_success() {
        return chat::refused(&exchange, answer).await;
    }
    let kind =
        answer.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.starts_with("text/event-stream") {
        Ok(chat::streamed(Arc::new(exchange), answer))
    } else {
        chat::whole(exchange, answer).await
    }
}

/// The address of a target.
fn locate(target: &Target<'_>) -> Result<http::Uri, Refusal> {
    target.upstream.base_url.locate(&target.path_and_query).map_err(|error| {
        Refusal::BadRequest(format!("the path `{}` cannot be forwarded: {error}", target.path_and_query))
    })
}

/// Sends a request to its upstream; the answer has the headers a client gets.
async fn send(
    gateway: &Gateway,
    target: &Target<'_>,
    request: Request<AnyBody>,
) -> Result<Response<AnyBody>, Refusal> {
    let mut answer = gateway.client.send(request).await.map_err(|error| Refusal::Unreachable {
        upstream: target.upstream.name.clone(),
        address: target.upstream.base_url.to_string(),
        error,
    })?;
    let headers = from_upstream(answer.headers());
    *answer.headers_mut() = headers;
    Ok(answer)
}

/// The exchange's own address, found once.
pub(crate) fn address(target: &Target<'_>) -> Result<http::Uri, Refusal> {
    locate(target)
}
