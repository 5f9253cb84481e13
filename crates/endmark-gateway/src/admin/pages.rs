//! Pages of the console, to which the gateway forwards the complete request.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use endmark_console::{Console, ConsoleRequest};
use http::Response;
use http::request::Parts;
use http_body_util::BodyExt as _;

use crate::body::AnyBody;
use crate::gateway::Gateway;
use crate::refusals::Refusal;

/// Maximum size of the body of a console request. Forms are far smaller.
const BODY_LIMIT_BYTES: usize = 64 * 1024;

/// Forwards a request to the console and returns the console's response.
pub(super) async fn respond(
    gateway: &Arc<Gateway>,
    console: &Console,
    head: Parts,
    body: AnyBody,
) -> Result<Response<AnyBody>, Refusal> {
    let body = read_body(body).await?;
    let own_gateway = Arc::clone(gateway);
    let visit = ConsoleRequest {
        head,
        body,
        store: gateway.store.clone(),
        is_stopping: Arc::new(move || own_gateway.is_stopping()),
        added_latency_ms: gateway.metrics.added_ms(),
    };
    Ok(console.respond(visit).await)
}

async fn read_body(mut body: AnyBody) -> Result<Bytes, Refusal> {
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| Refusal::BadRequest(format!("the body cannot be read: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        if whole.len() + data.len() > BODY_LIMIT_BYTES {
            return Err(Refusal::BadRequest(format!("the body has more than {BODY_LIMIT_BYTES} bytes")));
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole.freeze())
}
