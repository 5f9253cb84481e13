//! The model that a request is for, where an upstream may be chosen by it.

use bytes::Bytes;
use endmark_wire::format;
use endmark_wire::json::Value;
use http::request::Parts;
use http::{HeaderMap, Method, Request, Uri, header};

use crate::body::AnyBody;
use crate::gateway::Gateway;
use crate::request_body::Incoming;
use crate::rescue::Refusal;

/// The model that a request is for, and the request. Its body is read only where an upstream may be chosen by what
/// stands in it.
pub(crate) async fn named(
    gateway: &Gateway,
    request: Request<AnyBody>,
) -> Result<(Option<String>, Request<Incoming>), Refusal> {
    let (head, body) = request.into_parts();
    let body = Incoming::Arriving(body);
    if !counts(gateway, &head) {
        return Ok((None, Request::from_parts(head, body)));
    }
    if let Some(model) = in_path(&head.uri) {
        return Ok((Some(model), Request::from_parts(head, body)));
    }
    if !has_body_with_model(&head) {
        return Ok((None, Request::from_parts(head, body)));
    }
    let (body, holding) = body.read(&head.headers, &gateway.settings.limits, &gateway.held).await?;
    let model = in_body(&body.plain);
    Ok((model, Request::from_parts(head, Incoming::Read(body, holding))))
}

/// Whether an upstream may be chosen by the model.
fn counts(gateway: &Gateway, head: &Parts) -> bool {
    let path = head.uri.path();
    let is_open = gateway.conditional().any(|upstream| {
        let conditions = &upstream.conditions;
        !conditions.models.is_empty() && conditions.may_be_met(path, &head.headers)
    });
    is_open && !path.starts_with("/u/")
}

/// Whether a model may stand in the body.
fn has_body_with_model(head: &Parts) -> bool {
    let is_for_a_reply = || format::find(head.uri.path(), head.uri.query()).is_some();
    head.method == Method::POST && (is_for_a_reply() || is_json(&head.headers))
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
