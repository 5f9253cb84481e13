//! Reads the model of a request if the choice of the upstream depends on it.

use bytes::Bytes;
use endmark_wire::format;
use endmark_wire::json::Value;
use endmark_wire::model_in_path;
use http::request::Parts;
use http::{HeaderMap, Method, Request, header};

use crate::body::AnyBody;
use crate::gateway::Gateway;
use crate::refusals::Refusal;
use crate::request_body::IncomingBody;
use crate::work;

/// Returns the model that a request names, and the request itself. Reads the body only if the choice of the
/// upstream depends on its content.
pub(crate) async fn requested_model(
    gateway: &Gateway,
    request: Request<AnyBody>,
) -> Result<(Option<String>, Request<IncomingBody>), Refusal> {
    let (head, body) = request.into_parts();
    let body = IncomingBody::Arriving(body);
    if !depends_on_model(gateway, &head) {
        return Ok((None, Request::from_parts(head, body)));
    }
    if let Some(model) = model_in_path(upstream_path(head.uri.path())) {
        return Ok((Some(model), Request::from_parts(head, body)));
    }
    let limits = &gateway.settings.limits;
    let (body, holding) = if is_for_a_reply(&head) {
        body.read(&head.headers, limits, &gateway.held_bytes).await?
    } else if head.method == Method::POST && is_json(&head.headers) {
        // If the body cannot be read here, the upstream reports the error.
        body.read_if_possible(&head.headers, limits, &gateway.held_bytes).await?
    } else {
        return Ok((None, Request::from_parts(head, body)));
    };
    let _large = work::enter_pool_if_large(body.plain.len()).await;
    let model = model_in_body(&body.plain);
    Ok((model, Request::from_parts(head, IncomingBody::Read(body, holding))))
}

/// Whether an upstream with a condition for the model could still get the request.
fn depends_on_model(gateway: &Gateway, head: &Parts) -> bool {
    let path = head.uri.path();
    let has_model_condition = gateway.conditional_upstreams().any(|upstream| {
        let conditions = &upstream.conditions;
        !conditions.models.is_empty() && conditions.may_be_met(path, &head.headers)
    });
    has_model_condition && !path.starts_with("/u/")
}

/// Whether the request is for a reply. The body of such a request is always read.
fn is_for_a_reply(head: &Parts) -> bool {
    head.method == Method::POST && format::find(upstream_path(head.uri.path()), head.uri.query()).is_some()
}

/// Returns the path without the prefix that names the upstream.
pub(super) fn upstream_path(path: &str) -> &str {
    path.strip_prefix("/u/").map_or(path, |named| named.find('/').map_or("", |at| named.split_at(at).1))
}

fn model_in_body(body: &Bytes) -> Option<String> {
    let model = Value::parse(body).ok()?.field("model")?.text()?;
    Some(model.into_owned())
}

fn is_json(headers: &HeaderMap) -> bool {
    headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .is_some_and(|kind| kind.split(';').next().unwrap_or_default().trim().ends_with("json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_read_only_from_a_string_field() {
        for (body, model) in [
            (r#"{"model": "a\u0062", "input": 1}"#, Some("ab")),
            (r#"{"model": 7}"#, None),
            ("model=a", None),
            ("", None),
        ] {
            assert_eq!(model_in_body(&Bytes::from_static(body.as_bytes())).as_deref(), model, "{body}");
        }
    }
}
