//! Admission: what a request is, and what Endmark may do for it.

use std::sync::Arc;

use endmark_core::Format;
use endmark_wire::format::Found;
use endmark_wire::request as wire;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request, Uri, header};

use tokio::time::Instant;

use super::history::change;
use super::identity;
use super::tool_schemas::ToolSchemas;
use super::{Destination, Exchange};
use crate::edge::Claim;
use crate::faults::Rehearsal;
use crate::gateway::Gateway;
use crate::ledger::{Calls, Watch};
use crate::recovery::{Schema, StorePatience};
use crate::request_body::Incoming;
use crate::rescue::Refusal;
use crate::route::Target;
use crate::scrub::{Scrubber, Secrets};
use crate::settings::{Mode, Upstream};
use crate::upstream::{for_fallback, for_upstream, of_changed_body, secrets_in};

/// Reads a request to the end of its body and decides what is to be done with its reply.
///
/// It is on the heap, since it is handed on from step to step.
pub(crate) async fn admit(
    gateway: &Arc<Gateway>,
    target: &Target<'_>,
    found: Found,
    request: Request<Incoming>,
    rehearsal: Arc<Rehearsal>,
) -> Result<Box<Exchange>, Refusal> {
    let (mut head, body) = request.into_parts();
    let limits = &gateway.settings.limits;
    let (body, holding) = body.read(&head.headers, limits, &gateway.held).await?;
    let claim = head.extensions.remove::<Arc<Claim>>();
    if let Some(claim) = &claim {
        claim.take().await?;
    }
    let parsed = wire::Request::parse(found.format, &body.plain, &found.address);
    let mut request = parsed.map_err(|error| {
        let kind = found.format.name();
        Refusal::BadRequest(format!("the request is not one of the format {kind}: {error}; {}", error.hint))
    })?;
    let wanted = mode_of(gateway, &head.headers)?;
    // Its reply does not come as the answer, or nobody knows what it asks: there is nothing to look at.
    let mode = if request.view().only_passes { Mode::Off } else { wanted };
    let credential = identity::credential(&head.headers);
    // The session is that of the id that the client knows.
    let conversation = conversation(&request);
    let changed = change(gateway, &target.upstream.name, credential.as_deref(), wanted, &mut request);
    let view = request.view();
    let schema = schema_of_text(gateway, &request, named(&head.headers, "x-endmark-schema")?)?;
    let demanded = match named(&head.headers, "x-endmark-format")? {
        Some(format) => demanded_by_name(format, named(&head.headers, "x-endmark-marker")?)?,
        None => schema.as_ref().map(|_| Format::Json).or(view.demanded.clone()),
    };
    let schema = schema.filter(|_| demanded == Some(Format::Json));
    let turn_number = match named(&head.headers, "x-endmark-turn")? {
        Some(turn) => turn
            .parse()
            .map_err(|_| Refusal::BadRequest(format!("x-endmark-turn is `{turn}`: use a whole number")))?,
        None => view.assistant_turns.saturating_add(1),
    };
    let session = identity::session(&head.headers, named(&head.headers, "x-endmark-session")?, &conversation);

    let mut destination = own_destination(target, &request, &head.headers, mode)?;
    if changed.is_any() {
        of_changed_body(&mut destination.headers);
    }
    let fallback = fallback(gateway, target, &request, &head.headers, mode);
    let secrets = secrets(gateway, &head, std::iter::once(&destination).chain(&fallback));
    let recorder = gateway.store.recorder(secrets);
    let id = identity::new_request_id();
    changed.note(gateway, &target.upstream.name, &id);
    let task_id = named(&head.headers, "x-endmark-task")?.map_or_else(|| session.clone(), str::to_owned);
    let watch = Watch::new(
        gateway,
        id.clone(),
        target.upstream.name.clone(),
        found.format,
        view.stream,
        &head.headers,
    );
    Ok(Box::new(Exchange {
        calls: Calls::new(recorder.clone(), watch, id.clone(), session, credential, mode, found.format),
        recorder,
        store_patience: StorePatience::default(),
        call: None,
        id,
        task_id,
        turn_number,
        mode,
        rehearsal,
        destination,
        fallback,
        stands_in: false,
        retries: 0,
        set_aside: None,
        demanded,
        schema,
        request,
        // What came compressed are the bytes before that.
        encoded: body.encoded.filter(|_| !changed.is_any()),
        changed,
        tool_schemas: ToolSchemas::default(),
        deadline: Instant::now() + limits.total,
        _claim: claim,
        _holding: holding,
        gateway: Arc::clone(gateway),
    }))
}

/// What of a request, as it came and as it goes on, nobody else is to read.
fn secrets<'a>(
    gateway: &Gateway,
    client: &Parts,
    destinations: impl Iterator<Item = &'a Destination>,
) -> Secrets {
    let sent = destinations.map(|destination| (&destination.headers, &destination.uri));
    let all = std::iter::once((&client.headers, &client.uri)).chain(sent);
    Secrets {
        of_settings: Arc::clone(&gateway.scrubber),
        of_request: Arc::new(Scrubber::new(all.flat_map(|(headers, uri)| secrets_in(headers, uri)))),
    }
}

/// The upstream that the request is for.
fn own_destination(
    target: &Target<'_>,
    request: &wire::Request,
    client: &HeaderMap,
    mode: Mode,
) -> Result<Destination, Refusal> {
    let upstream = target.upstream;
    let uri = target.without_credential().locate()?;
    Ok(Destination {
        further: further(upstream, request, &uri)?,
        uri,
        headers: observable(for_upstream(client, upstream, Some(request.format().credential())), mode),
        upstream: upstream.clone(),
    })
}

/// The upstream that can stand in for the one the request is for.
fn fallback(
    gateway: &Gateway,
    target: &Target<'_>,
    request: &wire::Request,
    client: &HeaderMap,
    mode: Mode,
) -> Option<Destination> {
    let upstream = gateway.upstream(target.upstream.fallback.as_deref()?)?;
    // Neither the first's path nor its query, which may hold the client's key: they were meant for another host.
    let at = |request: &wire::Request, stream: bool| {
        Target { upstream, path_and_query: request.path_elsewhere(stream) }.locate()
    };
    let located = request
        .elsewhere(upstream.model.as_deref())
        .ok_or_else(|| Refusal::BadRequest("no path can be made of its model's name".to_owned()))
        .and_then(|request| {
            Ok((at(&request, request.view().stream)?, [at(&request, false)?, at(&request, true)?]))
        });
    let (uri, further) = match located {
        Ok(located) => located,
        Err(refusal) => {
            // The first may well serve it: that nobody could stand in is no reason to refuse.
            tracing::warn!(fallback = upstream.name, %refusal, "the request has no fallback");
            return None;
        }
    };
    let headers = observable(for_fallback(client, upstream, request.format()), mode);
    Some(Destination { uri, further, headers, upstream: upstream.clone() })
}

/// Where requests for the rest go: those that are to be no streams, and those that are.
fn further(upstream: &Upstream, request: &wire::Request, own: &Uri) -> Result<[Uri; 2], Refusal> {
    let of = |stream: bool| {
        let Some(path) = request.path_for(&request.view().model, stream) else { return Ok(own.clone()) };
        // What else the client's query says belongs to these, too.
        let is_taken = |pair: &&str| pair.is_empty() || pair.trim_start_matches('$').starts_with("alt=");
        let others =
            own.query().into_iter().flat_map(|query| query.split('&')).filter(|pair| !is_taken(pair));
        let path_and_query = others.fold(path, |mut path, pair| {
            path.push(if path.contains('?') { '&' } else { '?' });
            path.push_str(pair);
            path
        });
        Target { upstream, path_and_query }.locate()
    };
    Ok([of(false)?, of(true)?])
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

/// What tells one conversation from another: the provider's own name for it, else its first user message and its
/// tools. Not the system text, which often carries a date.
fn conversation(request: &wire::Request) -> String {
    let view = request.view();
    if let Some(named) = &view.conversation {
        return named.clone();
    }
    let mut parts = vec![view.first_user_text.clone().unwrap_or_default()];
    parts.extend(request.tools().into_iter().map(|tool| tool.name));
    parts.join("\n")
}

/// What the client wants to be done for its reply, else what the settings say.
pub(super) fn mode_of(gateway: &Gateway, headers: &HeaderMap) -> Result<Mode, Refusal> {
    match named(headers, "x-endmark-resume")? {
        Some(mode) => mode.parse().map_err(|error| Refusal::BadRequest(format!("x-endmark-resume: {error}"))),
        None => Ok(gateway.settings.resume.mode),
    }
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
    request: &wire::Request,
    name: Option<&str>,
) -> Result<Option<Schema>, Refusal> {
    if let Some(text) = &request.view().text_schema {
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
