//! The model that a request is for, where an upstream may be chosen by it.

use std::sync::Arc;

use bytes::Bytes;
use endmark_wire::format;
use endmark_wire::json::Value;
use http::{HeaderMap, Method, Request, Uri, header};

use crate::body::{AnyBody, full};
use crate::gateway::Gateway;
use crate::request_body;
use crate::rescue::Refusal;

/// A body that was read before it is known who gets it. What is held of it is given back with the last clone.
#[derive(Clone)]
pub(crate) struct ReadAlready {
    _holding: Arc<crate::held::Holding>,
}

/// The model that a request is for, and the request. Its body is read only where an upstream may be chosen by what
/// stands in it.
pub(crate) async fn named(
    gateway: &Gateway,
    request: Request<AnyBody>,
) -> Result<(Option<String>, Request<AnyBody>), Refusal> {
    let (path, query) = (request.uri().path(), request.uri().query());
    let counts = gateway.conditional().any(|upstream| {
        let conditions = &upstream.conditions;
        !conditions.models.is_empty() && conditions.may_be_met(path, request.headers())
    });
    if !counts || path.starts_with("/u/") {
        return Ok((None, request));
    }
    if let Some(model) = in_path(request.uri()) {
        return Ok((Some(model), request));
    }
    let is_for_a_reply = format::find(path, query).is_some();
    if request.method() != Method::POST || !(is_for_a_reply || is_json(request.headers())) {
        return Ok((None, request));
    }
    let (mut head, body) = request.into_parts();
    let limits = &gateway.settings.limits;
    let mut holding = gateway.held.part(limits.held_bytes);
    let body = request_body::read(&head.headers, body, limits, &mut holding).await?;
    let model = in_body(&body.plain);
    head.extensions.insert(ReadAlready { _holding: Arc::new(holding) });
    let bytes = body.encoded.map_or(body.plain, |encoded| encoded.bytes);
    Ok((model, Request::from_parts(head, full(bytes))))
}

/// The model where a path has it: Gemini's, Azure's.
fn in_path(uri: &Uri) -> Option<String> {
    let path = uri.path();
    if let Some(address) = format::find(path, uri.query()).map(|found| found.address)
        && address.model.is_some()
    {
        return address.model;
    }
    // Other things that are asked of a model: to count tokens, to embed.
    let named = ["/models/", "/deployments/"].into_iter().find_map(|before| path.split_once(before))?.1;
    let named = named.split('/').next()?;
    let end = named.find(':').or_else(|| named.to_ascii_lowercase().find("%3a")).unwrap_or(named.len());
    named.get(..end).filter(|model| !model.is_empty()).map(str::to_owned)
}

fn in_body(body: &Bytes) -> Option<String> {
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
    fn a_path_may_name_the_model() {
        for (path, model) in [
            ("/v1beta/models/gemini-2.5-flash:generateContent", Some("gemini-2.5-flash")),
            ("/v1beta/models/gemini-2.5-flash%3AcountTokens", Some("gemini-2.5-flash")),
            ("/v1beta/models/gemini-2.5-flash", Some("gemini-2.5-flash")),
            ("/openai/deployments/mine/chat/completions?api-version=1", Some("mine")),
            ("/openai/deployments/mine/embeddings?api-version=1", Some("mine")),
            ("/v1/models", None),
            ("/v1/models/", None),
            ("/v1/embeddings", None),
        ] {
            assert_eq!(in_path(&path.parse().unwrap()).as_deref(), model, "{path}");
        }
    }

    #[test]
    fn a_body_names_the_model_where_it_is_a_text() {
        for (body, model) in [
            (r#"{"model": "a\u0062", "input": 1}"#, Some("ab")),
            (r#"{"model": 7}"#, None),
            ("model=a", None),
            ("", None),
        ] {
            assert_eq!(in_body(&Bytes::from_static(body.as_bytes())).as_deref(), model, "{body}");
        }
    }
}
