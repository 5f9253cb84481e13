//! The base URL of an upstream.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use endmark_wire::provider::Provider;
use http::Uri;

/// The base URL of an upstream, split into its origin and its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl {
    origin: Uri,
    path: String,
}

/// Error for a base URL that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a base URL ({reason}): use one like http://127.0.0.1:8080/v1")]
pub struct BaseUrlError {
    given: String,
    reason: &'static str,
}

impl FromStr for BaseUrl {
    type Err = BaseUrlError;

    fn from_str(given: &str) -> Result<Self, BaseUrlError> {
        // Do not show credentials in the URL.
        let shown = match (given.find("://"), given.rfind('@')) {
            (Some(scheme), Some(at)) if scheme + 3 < at => {
                format!("{}***{}", &given[..scheme + 3], &given[at..])
            }
            _ => given.to_owned(),
        };
        let refuse = |reason| BaseUrlError { given: shown.clone(), reason };
        let uri: Uri = given.parse().map_err(|_| refuse("it cannot be parsed"))?;
        let scheme = uri.scheme_str().ok_or_else(|| refuse("the scheme is missing"))?;
        if scheme != "http" && scheme != "https" {
            return Err(refuse("the scheme is neither http nor https"));
        }
        let authority = uri.authority().ok_or_else(|| refuse("the host is missing"))?;
        if authority.as_str().contains('@') {
            return Err(refuse("credentials belong into api_key"));
        }
        if uri.query().is_some() {
            return Err(refuse("a query cannot be kept"));
        }
        let origin = format!("{scheme}://{authority}").parse().map_err(|_| refuse("it cannot be parsed"))?;
        Ok(Self { origin, path: uri.path().trim_end_matches('/').to_owned() })
    }
}

impl BaseUrl {
    /// Returns the URL of a provider's public endpoint with this path.
    pub(super) fn provider_default(origin: &'static str, path: &str) -> Self {
        Self { origin: Uri::from_static(origin), path: path.to_owned() }
    }

    /// Whether the URL's host is this machine.
    pub fn is_this_machine(&self) -> bool {
        let host = self.origin.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches([']', '.']);
        host.eq_ignore_ascii_case("localhost")
            || host.to_ascii_lowercase().ends_with(".localhost")
            || host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
    }

    /// Returns the scheme, host and port.
    pub(crate) fn origin(&self) -> &Uri {
        &self.origin
    }

    /// Returns the path without a final slash.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Whether a URL is below this base URL. A version at the end of the base path is ignored. If the path consists
    /// only of a version, all paths of the host are below it.
    pub(crate) fn contains(&self, address: &Uri) -> bool {
        let (place, last) = self.path.rsplit_once('/').unwrap_or_default();
        let place = if is_version(last) { place } else { &self.path };
        let below = address.path().strip_prefix(place);
        below.is_some_and(|below| place.is_empty() || below.is_empty() || below.starts_with('/'))
    }

    /// Returns the base URL as this provider's own libraries interpret it. Most of them append the version, so users
    /// may omit it.
    ///
    /// ```
    /// use endmark_gateway::BaseUrl;
    /// use endmark_wire::anthropic_messages::ANTHROPIC;
    /// for given in ["https://api.anthropic.com", "https://api.anthropic.com/v1/"] {
    ///     let base: BaseUrl = given.parse().unwrap();
    ///     assert_eq!(base.as_used_by(&ANTHROPIC).to_string(), "https://api.anthropic.com/v1");
    /// }
    /// ```
    pub fn as_used_by(&self, provider: &Provider) -> Cow<'_, Self> {
        if !provider.adds_version || self.path.split('/').any(is_version) {
            return Cow::Borrowed(self);
        }
        let path = format!("{}{}", self.path, provider.base_path);
        Cow::Owned(Self { origin: self.origin.clone(), path })
    }

    /// Returns the URL of a client's path at this upstream. The base path replaces `/v1/…`, and a base path that ends
    /// in `/v1beta` replaces `/v1beta/…`. Projects and publishers of Vertex AI are appended to the base path. All
    /// other paths replace it.
    ///
    /// ```
    /// use endmark_gateway::BaseUrl;
    /// let base: BaseUrl = "http://127.0.0.1:8080/api/v1".parse().unwrap();
    /// assert_eq!(base.locate("/v1/models?x=1").unwrap(), "http://127.0.0.1:8080/api/v1/models?x=1");
    /// assert_eq!(base.locate("/health").unwrap(), "http://127.0.0.1:8080/health");
    /// let vertex = base.locate("/projects/p/locations/l/publishers/google/models/m:generateContent").unwrap();
    /// assert_eq!(vertex.path(), "/api/v1/projects/p/locations/l/publishers/google/models/m:generateContent");
    /// let base: BaseUrl = "http://127.0.0.1:8080/google/v1beta".parse().unwrap();
    /// assert_eq!(base.locate("/v1beta/models").unwrap(), "http://127.0.0.1:8080/google/v1beta/models");
    /// ```
    pub fn locate(&self, path_and_query: &str) -> Result<Uri, http::Error> {
        let below = |version: &str| {
            let rest = path_and_query.strip_prefix(version);
            rest.filter(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
        };
        let beta = || below("/v1beta").filter(|_| self.path.ends_with("/v1beta"));
        let vertex = || {
            let is_below =
                ["/projects/", "/publishers/"].iter().any(|place| path_and_query.starts_with(place));
            (is_below && path_and_query.contains("publishers/")).then_some(path_and_query)
        };
        let below_base = below("/v1").or_else(beta).or_else(vertex);
        let target = match below_base {
            Some(rest) => format!("{}{rest}", self.path),
            None => path_and_query.to_owned(),
        };
        let mut parts = self.origin.clone().into_parts();
        parts.path_and_query = Some(if target.is_empty() { "/".parse()? } else { target.parse()? });
        Ok(Uri::from_parts(parts)?)
    }
}

/// Whether a path segment is a version, such as `v1` or `v1beta`.
fn is_version(segment: &str) -> bool {
    segment.strip_prefix('v').is_some_and(|number| number.starts_with(|first: char| first.is_ascii_digit()))
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = self.origin.to_string();
        write!(formatter, "{}{}", origin.trim_end_matches('/'), self.path)
    }
}

#[cfg(test)]
mod tests {
    use endmark_wire::anthropic_messages::ANTHROPIC;
    use endmark_wire::gemini::GEMINI;
    use endmark_wire::openai_chat::OPENAI;

    use super::*;

    #[test]
    fn a_path_outside_the_base_url_is_detected() {
        for (base, path, is_held) in [
            ("http://h/v1", "/v1/models", true),
            ("http://h/v1", "/health", true),
            ("http://h", "/health", true),
            ("http://h/team/v1", "/v1/models", true),
            ("http://h/team/v1", "/team/health", true),
            ("http://h/team/v1beta", "/v1beta/models?x=/", true),
            ("http://h/team/v1", "/team", true),
            ("http://h/team/v1", "/other/v1/models", false),
            ("http://h/team/v1", "/health", false),
            ("http://h/team/v1", "/teams", false),
            ("http://h/team/v1", "//team", false),
            ("http://h/team/v1", "/%74eam/x", false),
            ("http://h/team", "/v1/models", true),
            ("http://h/team", "/x", false),
            ("http://h/team/voices", "/team/x", false),
        ] {
            let base: BaseUrl = base.parse().unwrap();
            assert_eq!(base.contains(&base.locate(path).unwrap()), is_held, "{base} {path}");
        }
    }

    #[test]
    fn a_version_is_added_as_in_the_providers_library() {
        for (given, provider, read) in [
            ("http://a", &ANTHROPIC, "http://a/v1"),
            ("http://a/anthropic/", &ANTHROPIC, "http://a/anthropic/v1"),
            ("http://a/anthropic/v1", &ANTHROPIC, "http://a/anthropic/v1"),
            ("http://a", &GEMINI, "http://a/v1beta"),
            ("http://a/google", &GEMINI, "http://a/google/v1beta"),
            ("http://a/v1alpha", &GEMINI, "http://a/v1alpha"),
            ("http://a/v1/publishers/google", &GEMINI, "http://a/v1/publishers/google"),
            ("http://a", &OPENAI, "http://a"),
            ("http://a/inference", &OPENAI, "http://a/inference"),
        ] {
            let base: BaseUrl = given.parse().unwrap();
            assert_eq!(base.as_used_by(provider).to_string(), read, "{given}");
        }
    }
}
