//! Admission: what a chat request is, and what Endmark may do for it.

use std::sync::Arc;

use endmark_core::Format;
use endmark_wire::openai_chat::ChatRequest;
use http::{HeaderMap, HeaderValue, Request, header};

use tokio::time::Instant;

use super::exchange::{Destination, Exchange};
use super::identity;
use super::request_body;
use crate::body::AnyBody;
use crate::edge::Permit;
use crate::faults::Rehearsal;
use crate::gateway::Gateway;
use crate::ledger::{Calls, Watch};
use crate::recovery::Schema;
use crate::rescue::Refusal;
use crate::route::Target;
use crate::settings::Mode;
use crate::upstream::{for_fallback, for_upstream};

/// Reads a request to the end of its body and decides what is to be done with its reply.
pub(crate) async fn admit(
    gateway: &Arc<Gateway>,
    target: &Target<'_>,
    request: Request<AnyBody>,
    rehearsal: Arc<Rehearsal>,
) -> Result<Exchange, Refusal> {
    let (mut head, body) = request.into_parts();
    let limits = &gateway.settings.limits;
    let mut holding = gateway.held.part(limits.held_bytes);
    let body = request_body::read(&head.headers, body, limits, &mut holding).await?;
    let request = ChatRequest::parse(&body.plain).map_err(|error| {
        Refusal::BadRequest(format!("the request is not a chat completion: {error}; {}", error.hint))
    })?;

    let mode = match named(&head.headers, "x-endmark-resume")? {
        Some(mode) => {
            mode.parse::<Mode>().map_err(|error| Refusal::BadRequest(format!("x-endmark-resume: {error}")))?
        }
        None => gateway.settings.resume.mode,
    };
    let schema = schema_of_text(gateway, &request, named(&head.headers, "x-endmark-schema")?)?;
    let demanded = match named(&head.headers, "x-endmark-format")? {
        Some(format) => demanded_by_name(format, named(&head.headers, "x-endmark-marker")?)?,
        None => schema.as_ref().map(|_| Format::Json).or(request.demanded.clone()),
    };
    let schema = schema.filter(|_| demanded == Some(Format::Json));
    let turn_number = match named(&head.headers, "x-endmark-turn")? {
        Some(turn) => turn
            .parse()
            .map_err(|_| Refusal::BadRequest(format!("x-endmark-turn is `{turn}`: use a whole number")))?,
        None => request.assistant_turns.saturating_add(1),
    };
    let session =
        identity::session(&head.headers, named(&head.headers, "x-endmark-session")?, &conversation(&request));

    let destination = Destination {
        uri: target.locate()?,
        headers: observable(for_upstream(&head.headers, target.upstream), mode),
        upstream: target.upstream.clone(),
    };
    let id = identity::new_request_id();
    let task_id = named(&head.headers, "x-endmark-task")?.map_or_else(|| session.clone(), str::to_owned);
    let credential = identity::credential(&head.headers);
    let watch =
        Watch::new(Arc::clone(&gateway.metrics), id.clone(), target.upstream.name.clone(), request.stream);
    Ok(Exchange {
        calls: Calls::new(gateway.store.clone(), watch, id.clone(), session, credential, mode),
        call: None,
        id,
        task_id,
        turn_number,
        mode,
        rehearsal,
        destination,
        fallback: fallback(gateway, target, &head.headers, mode),
        stands_in: false,
        retries: 0,
        set_aside: None,
        demanded,
        schema,
        request,
        encoded: body.encoded,
        deadline: Instant::now() + limits.total,
        _permit: head.extensions.remove::<Arc<Permit>>(),
        _holding: holding,
        gateway: Arc::clone(gateway),
    })
}

/// The upstream that can stand in for the one the request is for.
fn fallback(gateway: &Gateway, target: &Target<'_>, client: &HeaderMap, mode: Mode) -> Option<Destination> {
    let upstream = gateway.upstream(target.upstream.fallback.as_deref()?)?;
    // A query may hold the client's key; it was meant for another host.
    let path = target.path_and_query.split('?').next().unwrap_or_default();
    let there = Target { upstream, path_and_query: path.to_owned() };
    let uri = match there.locate() {
        Ok(uri) => uri,
        Err(refusal) => {
            // The first may well serve it: that nobody could stand in is no reason to refuse.
            tracing::warn!(fallback = upstream.name, %refusal, "the request has no fallback");
            return None;
        }
    };
    let headers = observable(for_fallback(client, upstream), mode);
    Some(Destination { uri, headers, upstream: upstream.clone() })
}

/// The headers of a request whose reply is to be read.
fn observable(mut headers: HeaderMap, mode: Mode) -> HeaderMap {
    // They tell of the bytes as they came: who sends those says it again.
    headers.remove(header::CONTENT_LENGTH);
    headers.remove(header::CONTENT_ENCODING);
    if mode != Mode::Off {
        // A reply can only be observed in plain bytes.
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    headers
}

/// What tells one conversation from another: its first user message and its tools. Not the system text,
/// which often carries a date.
fn conversation(request: &ChatRequest) -> String {
    let mut parts = vec![request.first_user_text.clone().unwrap_or_default()];
    parts.extend(request.tool_names());
    parts.join("\n")
}

/// The value of one of Endmark's own headers.
fn named<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<Option<&'a str>, Refusal> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    match value.to_str() {
        Ok(text) if !text.trim().is_empty() => Ok(Some(text.trim())),
        _ => Err(Refusal::BadRequest(format!("the header {name} has no readable value"))),
    }
}

/// A format named by the client is demanded, unless it demands nothing.
fn demanded_by_name(name: &str, marker: Option<&str>) -> Result<Option<Format>, Refusal> {
    let format = Format::parse(name, marker).map_err(|error| {
        Refusal::BadRequest(format!("x-endmark-format: {error} (the marker goes into x-endmark-marker)"))
    })?;
    Ok(format.can_be_demanded().then_some(format))
}

/// The schema of the message text: the request's own, else the configured one that the client names.
fn schema_of_text(
    gateway: &Gateway,
    request: &ChatRequest,
    name: Option<&str>,
) -> Result<Option<Schema>, Refusal> {
    if let Some(text) = &request.text_schema {
        // A schema that cannot be compiled is the provider's to judge; without one there is no validation.
        return Ok(Schema::compile(text).ok());
    }
    let Some(name) = name else { return Ok(None) };
    match gateway.schemas.get(name) {
        Some(schema) => Ok(Some(schema.clone())),
        None => Err(Refusal::BadRequest(format!(
            "x-endmark-schema names `{name}`, which is not in [schemas] of the configuration"
        ))),
    }
}
