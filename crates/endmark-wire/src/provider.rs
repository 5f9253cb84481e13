//! The providers that define the formats, and how requests to them are recognised.

use std::fmt;

/// A provider that defines formats, which other servers also implement.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Provider {
    /// Its name in a configuration, such as `openai`.
    pub name: &'static str,
    /// The public scheme and host of its API.
    pub origin: &'static str,
    /// The path at which its API begins.
    pub base_path: &'static str,
    /// Whether its own libraries append the API version to a base URL.
    pub adds_version: bool,
    /// The environment variable in which its own libraries look for a base URL.
    pub base_url_variable: &'static str,
    /// Its name in traces (`gen_ai.provider.name` of the OpenTelemetry conventions).
    pub trace_name: &'static str,
    /// Headers that only the provider's own libraries send.
    pub headers: &'static [&'static str],
    /// Prefixes that only keys of this provider have.
    pub key_prefixes: &'static [&'static str],
    /// The response headers about rate limits.
    pub rate_headers: &'static RateHeaders,
}

/// The response headers about rate limits: the limit, the remaining amount, and the time of the reset.
#[derive(Debug, PartialEq, Eq)]
pub struct RateHeaders {
    /// The limit on requests.
    pub requests: [&'static str; 3],
    /// The limit on tokens.
    pub tokens: [&'static str; 3],
    /// Whether the reset is an RFC 3339 timestamp. Otherwise it is a duration, such as `17s`.
    pub reset_is_timestamp: bool,
}

/// The headers of OpenAI, which many other servers send, too.
pub(crate) const OPENAI_RATE_HEADERS: RateHeaders = RateHeaders {
    requests: ["x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"],
    tokens: ["x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"],
    reset_is_timestamp: false,
};

impl Provider {
    /// Returns the public base URL of its API.
    pub fn base_url(&self) -> String {
        format!("{}{}", self.origin, self.base_path)
    }

    /// Returns the base URL for the provider's own libraries if a server at this origin replaces the
    /// provider.
    ///
    /// ```
    /// use endmark_wire::provider::Provider;
    /// let urls: Vec<String> = Provider::all().iter().map(|provider| provider.base_url_for_origin("http://h:1")).collect();
    /// assert_eq!(urls, ["http://h:1/v1", "http://h:1", "http://h:1"]);
    /// ```
    pub fn base_url_for_origin(&self, origin: &str) -> String {
        format!("{origin}{}", if self.adds_version { "" } else { self.base_path })
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}
