//! Routes a request to the gateway's own pages, or to an upstream in a format.

mod model;
mod provider;

use endmark_wire::format::{self, AddressedFormat, WireFormat};
use http::{HeaderMap, Method, Uri};

use crate::gateway::Gateway;
use crate::query;
use crate::refusals::Refusal;
use crate::settings::Upstream;
use provider::IntendedProvider;

pub(crate) use model::requested_model;

/// The destination of a request, except for the gateway's own pages.
#[derive(Debug)]
pub(crate) enum Route<'a> {
    /// A request for a reply, in the format of its path, to an upstream.
    Reply(Target<'a>, AddressedFormat),
    /// Any other path of an upstream.
    PassThrough(Target<'a>),
    /// An unknown path below `/u/`.
    Unknown(String),
    /// The key of the request belongs to a provider without an upstream.
    Unserved(Refusal),
}

/// A path at an upstream.
#[derive(Debug)]
pub(crate) struct Target<'a> {
    pub(crate) upstream: &'a Upstream,
    pub(crate) path_and_query: String,
}

impl Route<'_> {
    /// Returns the upstream's name if the path contains it.
    pub(crate) fn upstream(&self) -> Option<&str> {
        match self {
            Self::Reply(target, _) | Self::PassThrough(target) => Some(&target.upstream.name),
            Self::Unknown(_) | Self::Unserved(_) => None,
        }
    }
}

impl Target<'_> {
    /// Returns the path at the upstream, without its query.
    pub(crate) fn path(&self) -> &str {
        self.path_and_query.split('?').next().unwrap_or_default()
    }

    /// Returns the target without the client's key in its query, if the upstream has a key of its own.
    pub(crate) fn without_credential(&self) -> Self {
        let with_query = self.path_and_query.split_once('?').filter(|_| self.upstream.api_key.is_some());
        let path_and_query = match with_query {
            None => self.path_and_query.clone(),
            Some((path, query)) => match query::without_credentials(query) {
                None => path.to_owned(),
                Some(others) => format!("{path}?{others}"),
            },
        };
        Self { upstream: self.upstream, path_and_query }
    }

    /// Returns the URL of the target.
    pub(crate) fn to_uri(&self) -> Result<Uri, Refusal> {
        if has_dot_segment(&self.path_and_query) {
            return Err(Refusal::BadRequest(
                "a path with a segment `.` or `..` is not forwarded: send the resolved path".to_owned(),
            ));
        }
        // Without the query, which may contain a key.
        let path = self.path();
        let base_url = self.upstream.api_base_url();
        let uri = base_url.locate(&self.path_and_query).map_err(|error| {
            Refusal::BadRequest(format!("the path `{path}` cannot be forwarded: {error}"))
        })?;
        if !base_url.contains(&uri) {
            return Err(Refusal::BadRequest(format!(
                "the path `{path}` is not below the upstream's base_url `{base_url}`, and is not forwarded: \
                 `/v1/…` means that path"
            )));
        }
        Ok(uri)
    }
}

/// Paths outside of all providers' APIs at which people and monitors expect the gateway's own pages. With the prefix
/// of a named upstream (`/u/NAME/`), they are forwarded.
pub(crate) const WELL_KNOWN_PATHS: [&str; 3] = ["/", "/health", "/metrics"];

/// Whether the gateway answers this path itself.
pub(crate) fn is_own(path: &str) -> bool {
    path == "/endmark" || path.starts_with("/endmark/") || WELL_KNOWN_PATHS.contains(&path)
}

/// Finds the destination of a request by method, URI, headers and model. Only configured upstreams are used: a
/// request cannot name another host.
pub(crate) fn find<'a>(
    gateway: &'a Gateway,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    model: Option<&str>,
) -> Route<'a> {
    let path_and_query = uri.path_and_query().map_or("/", |path| path.as_str());
    let target = if let Some(named) = path_and_query.strip_prefix("/u/") {
        let (name, rest) = named.find(['/', '?']).map_or((named, ""), |at| named.split_at(at));
        let Some(upstream) = gateway.upstream(name) else {
            let known: Vec<&str> = gateway.settings.upstreams.iter().map(|u| u.name.as_str()).collect();
            return Route::Unknown(format!(
                "no upstream is called `{name}`; configured are: {}",
                known.join(", ")
            ));
        };
        Target { upstream, path_and_query: if rest.is_empty() { "/".to_owned() } else { rest.to_owned() } }
    } else {
        let intended = IntendedProvider::new(uri.path(), uri.query(), headers);
        let format = intended.format();
        let supports_format = |upstream: &&Upstream| upstream.provider == format.provider();
        let may_get_request = |upstream: &&Upstream| {
            supports_format(upstream) || intended.may_be_sent_to(upstream, uri.query(), headers)
        };
        let meets_conditions = |upstream: &&Upstream| upstream.conditions.are_met(uri.path(), headers, model);
        let upstream = gateway
            .conditional_upstreams()
            .filter(meets_conditions)
            .find(may_get_request)
            .or_else(|| gateway.unconditional_upstreams().find(supports_format))
            .or_else(|| gateway.unconditional_upstreams().next().filter(may_get_request));
        let Some(upstream) = upstream else {
            let unmet_conditions: Vec<String> = gateway
                .conditional_upstreams()
                .filter(may_get_request)
                .map(|closed| format!("`{}` is for {}", closed.name, closed.conditions))
                .collect();
            let refusal = if unmet_conditions.is_empty() {
                no_upstream(format)
            } else {
                Refusal::NoConditionMet(unmet_conditions.join(", "))
            };
            return Route::Unserved(refusal);
        };
        Target { upstream, path_and_query: path_and_query.to_owned() }
    };
    let path = target.path_and_query.split('?').next().unwrap_or_default();
    let query = uri.query();
    match format::find(path, query).filter(|_| method == Method::POST) {
        Some(found) => Route::Reply(target, found),
        None => Route::PassThrough(target),
    }
}

/// Returns the format of a request for a reply or for another service. If nothing indicates a format, returns
/// the first supported one.
pub(crate) fn detect_format(uri: &Uri, headers: &HeaderMap) -> &'static dyn WireFormat {
    IntendedProvider::new(model::upstream_path(uri.path()), uri.query(), headers).format()
}

fn no_upstream(format: &dyn WireFormat) -> Refusal {
    let titles: Vec<&str> = format.provider().formats().map(WireFormat::title).collect();
    Refusal::NoUpstream { titles: titles.join(" or "), word: format.provider().name }
}

/// Whether a path contains a dot segment in any spelling that a server may accept. Servers resolve dot segments
/// differently, so no rule can be applied safely.
fn has_dot_segment(path_and_query: &str) -> bool {
    let path = path_and_query.split('?').next().unwrap_or_default();
    if !path.contains(['.', '%']) {
        // The path contains no dot segment in any spelling.
        return false;
    }
    let mut path = path.to_ascii_lowercase();
    // Some servers decode twice.
    while path.contains("%25") {
        path = path.replace("%25", "%");
    }
    let path = path.replace("%2e", ".").replace("%2f", "/").replace("%5c", "/").replace('\\', "/");
    path.split('/').any(|segment| matches!(segment.split(';').next(), Some("." | "..")))
}

#[cfg(test)]
mod tests {
    use super::has_dot_segment;

    #[test]
    fn a_path_traversal_segment_is_detected_in_every_spelling() {
        for path in [
            "/v1/../x",
            "/..",
            "/v1/./x",
            "/v1/%2e%2E/x",
            "/v1/.%2e",
            "/v1/..%2fx",
            "/v1/..;a=b/x",
            "/v1/..%5Cx",
            "/v1/%252e%252E%25252fx",
        ] {
            assert!(has_dot_segment(path), "{path}");
        }
        for path in
            ["/", "/v1/models/a..b", "/v1/.well-known", "/v1/x?path=../y", "/v1/%2E%2E%2E", "//", "/v1/a%2Fb"]
        {
            assert!(!has_dot_segment(path), "{path}");
        }
    }
}
