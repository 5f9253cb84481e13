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
    /// Whether its own libraries add the version to a base URL, so that a base URL may lack it.
    pub adds_version: bool,
    /// The environment variable in which its own libraries look for a base URL.
    pub base_url_variable: &'static str,
    /// Its name in traces (`gen_ai.provider.name` of the OpenTelemetry conventions).
    pub traced_as: &'static str,
    /// Headers that only its libraries send.
    pub headers: &'static [&'static str],
    /// Prefixes that only its keys have.
    pub keys_begin: &'static [&'static str],
    /// The response headers about rate limits.
    pub rate_headers: &'static RateHeaders,
}

/// The response headers about rate limits: the limit, what remains of it, and when it is reset.
#[derive(Debug, PartialEq, Eq)]
pub struct RateHeaders {
    /// About requests.
    pub requests: [&'static str; 3],
    /// About tokens.
    pub tokens: [&'static str; 3],
    /// Whether the reset is a moment in RFC 3339. Otherwise it is a number of seconds, such as `17s`.
    pub reset_is_moment: bool,
}

/// The headers of OpenAI, which many other servers send, too.
pub(crate) const OPENAI_RATE_HEADERS: RateHeaders = RateHeaders {
    requests: ["x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"],
    tokens: ["x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"],
    reset_is_moment: false,
};

impl Provider {
    /// Returns the public base URL of its API.
    pub fn base_url(&self) -> String {
        format!("{}{}", self.origin, self.base_path)
    }

    /// Returns the base URL to give to its own libraries if a server at this origin acts for it.
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
