//! Determines the upstreams that may answer a request, and the address of each.

use endmark_wire::request as wire;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Uri, header};

use crate::gateway::Gateway;
use crate::refusals::Refusal;
use crate::route::Target;
use crate::settings::{ResumeMode, Upstream};
use crate::upstream::{Destination, for_fallback, for_upstream};

/// Returns the upstream that the request is for.
pub(super) fn own_destination(
    target: &Target<'_>,
    request: &wire::Request,
    client: &Parts,
    mode: ResumeMode,
) -> Result<Destination, Refusal> {
    let upstream = target.upstream;
    let uri = target.without_credential().to_uri()?;
    let model = upstream.summary_model.as_deref();
    let summary = match model.and_then(|model| request.question(model, "", 1)) {
        Some(question) => {
            let [plain, _] = continuation_uris(upstream, &question, &uri)?;
            Some(plain)
        }
        None => None,
    };
    Ok(Destination {
        continuation_uris: continuation_uris(upstream, request, &uri)?,
        summary_uri: summary,
        uri,
        headers: examinable_reply_headers(
            for_upstream(&client.headers, upstream, Some(request.format().facts().credential)),
            mode,
        ),
        upstream: upstream.clone(),
        interceptor: client.extensions.get().cloned(),
    })
}

/// Returns the fallback of that upstream.
pub(super) fn fallback(
    gateway: &Gateway,
    target: &Target<'_>,
    request: &wire::Request,
    client: &Parts,
    mode: ResumeMode,
) -> Option<Destination> {
    let upstream = gateway.upstream(target.upstream.fallback.as_deref()?)?;
    // Do not use the original path or query: they are for another host, and may contain the client's key.
    let at = |request: &wire::Request, stream: bool| {
        Target { upstream, path_and_query: request.path_at_other_upstream(stream) }.to_uri()
    };
    let located = request
        .for_other_upstream(upstream.model.as_deref())
        .ok_or_else(|| Refusal::BadRequest("its model's name cannot be part of a path".to_owned()))
        .and_then(|request| {
            Ok((at(&request, request.view().stream)?, [at(&request, false)?, at(&request, true)?]))
        });
    let (uri, further) = match located {
        Ok(located) => located,
        Err(refusal) => {
            // The original upstream may still answer, so do not refuse the request because the fallback is missing.
            tracing::warn!(fallback = upstream.name, %refusal, "the request has no fallback");
            return None;
        }
    };
    let headers = examinable_reply_headers(for_fallback(&client.headers, upstream, request.format()), mode);
    Some(Destination {
        uri,
        continuation_uris: further,
        summary_uri: None,
        headers,
        upstream: upstream.clone(),
        interceptor: client.extensions.get().cloned(),
    })
}

/// Returns the addresses for continuation requests: without a stream, and with a stream.
fn continuation_uris(upstream: &Upstream, request: &wire::Request, own: &Uri) -> Result<[Uri; 2], Refusal> {
    let of = |stream: bool| {
        let Some(path) = request.path_for(&request.view().model, stream) else { return Ok(own.clone()) };
        // The other parameters of the client's query also apply to these requests.
        let is_format_parameter =
            |pair: &&str| pair.is_empty() || pair.trim_start_matches('$').starts_with("alt=");
        let others = own
            .query()
            .into_iter()
            .flat_map(|query| query.split('&'))
            .filter(|pair| !is_format_parameter(pair));
        let path_and_query = others.fold(path, |mut path, pair| {
            path.push(if path.contains('?') { '&' } else { '?' });
            path.push_str(pair);
            path
        });
        Target { upstream, path_and_query }.to_uri()
    };
    Ok([of(false)?, of(true)?])
}

/// Returns the headers for a request whose reply will be examined.
fn examinable_reply_headers(mut headers: HeaderMap, mode: ResumeMode) -> HeaderMap {
    // These headers describe the original bytes. The HTTP client sets them again.
    headers.remove(header::CONTENT_LENGTH);
    headers.remove(header::CONTENT_ENCODING);
    if mode != ResumeMode::Off {
        // A reply can be examined only if it is uncompressed.
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    headers
}
