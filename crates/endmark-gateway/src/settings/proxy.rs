//! The proxies of upstreams, from the configuration and from environment variables.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::Matcher;

use super::base_url::BaseUrl;
use super::secret::Secret;

/// A proxy for requests to an upstream, with optional credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    uri: Uri,
    authorization: Option<HeaderValue>,
}

/// Error for an invalid proxy URL. It does not contain the URL, which may contain a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    /// The URL cannot be parsed.
    #[error(
        "it is no URL of a proxy: use one like http://proxy.example:3128 or http://user:password@proxy.example:3128"
    )]
    Malformed,
    /// The proxy is not an HTTP proxy.
    #[error(
        "it is a SOCKS proxy, and only HTTP proxies are spoken to: use one like http://proxy.example:3128"
    )]
    Socks,
}

/// Error for an invalid proxy in an environment variable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable}: {source}")]
pub struct ProxyVariableError {
    /// The name of the variable.
    pub variable: &'static str,
    /// Why the value is invalid.
    pub source: ProxyError,
}

impl FromStr for Proxy {
    type Err = ProxyError;

    /// Parses a proxy's URL. The default scheme is `http`.
    ///
    /// ```
    /// use endmark_gateway::Proxy;
    /// let proxy: Proxy = "http://user:secret@proxy.example:3128".parse().unwrap();
    /// assert_eq!(proxy.to_string(), "http://***@proxy.example:3128");
    /// assert!("socks5://proxy.example:1080".parse::<Proxy>().is_err());
    /// ```
    fn from_str(url: &str) -> Result<Self, ProxyError> {
        let any = Uri::from_static("http://any.invalid");
        let found = Matcher::builder().all(url.trim().to_owned()).build().intercept(&any);
        let found = found.ok_or(ProxyError::Malformed)?;
        match found.uri().scheme_str() {
            Some("http" | "https") => {}
            _ => return Err(ProxyError::Socks),
        }
        if found.uri().host().is_none_or(str::is_empty) {
            return Err(ProxyError::Malformed);
        }
        Ok(Self { uri: found.uri().clone(), authorization: found.basic_auth().cloned() })
    }
}

impl Proxy {
    /// Returns the URL without its credentials.
    pub(crate) fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Returns the credentials as a header value.
    pub(crate) fn authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref()
    }

    /// Returns the secrets in the URL.
    pub(crate) fn secrets(&self) -> Vec<Secret> {
        let Some(encoded) = self.authorization.as_ref().and_then(|value| value.to_str().ok()) else {
            return Vec::new();
        };
        let encoded = encoded.trim_start_matches("Basic ");
        let plain = STANDARD.decode(encoded).ok().and_then(|plain| String::from_utf8(plain).ok());
        let password =
            plain.as_deref().and_then(|plain| plain.split_once(':')).map(|(_, password)| password.to_owned());
        [Some(encoded.to_owned()), password].into_iter().flatten().map(Secret::new).collect()
    }

    /// Returns the environment's proxy for an upstream, from the variables that curl reads. These are `https_proxy`
    /// or `http_proxy`, depending on the URL's scheme, or else `all_proxy`. No proxy is used if `no_proxy` contains
    /// the host. Lower-case names take precedence. An upstream on this machine never uses a proxy.
    ///
    /// # Errors
    /// [`ProxyVariableError`] if the variable is invalid.
    pub fn from_environment<'a>(
        base_url: &BaseUrl,
        get: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<Option<Self>, ProxyVariableError> {
        let origin = base_url.origin();
        if base_url.is_this_machine() {
            return Ok(None);
        }
        let either = |names: [&'static str; 2]| {
            names
                .into_iter()
                .find_map(|name| get(name).filter(|value| !value.is_empty()).map(|value| (name, value)))
        };
        let own = match origin.scheme_str() {
            Some("https") => either(["https_proxy", "HTTPS_PROXY"]),
            // In a CGI process, a client can set `HTTP_PROXY` with its header `Proxy`.
            _ if get("REQUEST_METHOD").is_some() => either(["http_proxy", "http_proxy"]),
            _ => either(["http_proxy", "HTTP_PROXY"]),
        };
        let Some((variable, url)) = own.or_else(|| either(["all_proxy", "ALL_PROXY"])) else {
            return Ok(None);
        };
        let exceptions = either(["no_proxy", "NO_PROXY"]).map_or("", |(_, value)| value);
        if exceptions.split([',', ' ']).any(|exception| is_excepted(origin, exception.trim())) {
            return Ok(None);
        }
        url.parse().map(Some).map_err(|source| ProxyVariableError { variable, source })
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.uri.scheme_str().unwrap_or("http");
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        let credentials = if self.authorization.is_some() { "***@" } else { "" };
        write!(formatter, "{scheme}://{credentials}{authority}")
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// Whether an entry of `no_proxy` matches this origin. An entry is `*`, an address, a range of addresses
/// (`10.0.0.0/8`), or a domain with its subdomains (`example.com`, `.example.com`, `*.example.com`). Each entry may
/// have a port.
fn is_excepted(origin: &Uri, exception: &str) -> bool {
    let (host, port) = match exception.rsplit_once(':') {
        // The colons in an IPv6 address without brackets do not separate a port.
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, Some(port)),
        _ => (exception, None),
    };
    let own_port = origin.port_u16().unwrap_or(if origin.scheme_str() == Some("https") { 443 } else { 80 });
    if port.is_some_and(|port| port.parse() != Ok(own_port)) {
        return false;
    }
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let host = host.strip_prefix("*.").unwrap_or(host);
    if host.is_empty() {
        return false;
    }
    // Use the library's rules for ranges and suffixes: the host is excepted if the library would not use a proxy for
    // it.
    let matcher = Matcher::builder().all("http://any.invalid").no(host.to_owned()).build();
    matcher.intercept(origin).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(url: &str, variables: &[(&str, &'static str)]) -> Option<String> {
        let get = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        Proxy::from_environment(&url.parse().unwrap(), get).unwrap().map(|proxy| proxy.to_string())
    }

    #[test]
    fn the_proxy_variable_of_the_scheme_takes_precedence() {
        let variables = [
            ("HTTPS_PROXY", "http://s:1"),
            ("http_proxy", "http://h:2"),
            ("HTTP_PROXY", "http://x:3"),
            ("ALL_PROXY", "a:4"),
        ];
        assert_eq!(proxy("https://host/v1", &variables).as_deref(), Some("http://s:1"));
        assert_eq!(proxy("http://host/v1", &variables).as_deref(), Some("http://h:2"));
        assert_eq!(proxy("http://host/v1", &variables[3..]).as_deref(), Some("http://a:4"));
        assert_eq!(proxy("http://host/v1", &variables[..1]), None);
        assert_eq!(proxy("http://host/v1", &[("HTTP_PROXY", "http://x:3"), ("REQUEST_METHOD", "GET")]), None);
        assert_eq!(
            proxy("https://host/v1", &[("https_proxy", ""), ("HTTPS_PROXY", "b:5")]).as_deref(),
            Some("http://b:5")
        );
    }

    #[test]
    fn loopback_addresses_bypass_the_proxy() {
        for url in [
            "http://localhost:1/v1",
            "http://127.9.9.9/v1",
            "http://[::1]:80/v1",
            "http://a.LocalHost/v1",
            "http://[::ffff:127.0.0.1]/v1",
        ] {
            assert_eq!(proxy(url, &[("ALL_PROXY", "http://p:1")]), None, "{url}");
        }
    }

    #[test]
    fn proxy_exceptions_are_hosts_domains_ranges_and_ports() {
        for (exceptions, url, is_excepted) in [
            ("*", "http://any.host/v1", true),
            ("example.com", "http://example.com/v1", true),
            ("example.com", "http://api.EXAMPLE.com/v1", true),
            ("example.com", "http://notexample.com/v1", false),
            (".example.com, other", "http://api.example.com/v1", true),
            ("*.example.com", "http://api.example.com/v1", true),
            ("a,b example.com", "http://example.com/v1", true),
            ("example.com:8080", "http://example.com:8080/v1", true),
            ("example.com:8080", "http://example.com/v1", false),
            ("example.com:443", "https://example.com/v1", true),
            ("10.0.0.0/8", "http://10.9.8.7:1/v1", true),
            ("10.0.0.0/8", "http://11.9.8.7:1/v1", false),
            ("10.9.8.7:1", "http://10.9.8.7:1/v1", true),
            ("fd00::/8", "http://[fd12::1]/v1", true),
            ("[fd12::1]:9", "http://[fd12::1]:9/v1", true),
            ("fd12::1", "http://[fd12::1]:9/v1", true),
            (",, ,", "http://example.com/v1", false),
        ] {
            let variables = [("all_proxy", "http://p:1"), ("NO_PROXY", exceptions)];
            assert_eq!(proxy(url, &variables).is_none(), is_excepted, "{exceptions} for {url}");
        }
    }

    #[test]
    fn a_proxy_password_is_sent_but_never_shown() {
        let proxy: Proxy = "http://me:s%40crEt@proxy:3128".parse().unwrap();
        assert_eq!(proxy.authorization().unwrap().as_bytes(), b"Basic bWU6c0BjckV0");
        assert!(proxy.authorization().unwrap().is_sensitive());
        let shown = format!("{proxy} {proxy:?}");
        assert!(!shown.contains("crEt") && !shown.contains("bWU6"), "{shown}");
    }

    #[test]
    fn the_secrets_of_a_proxy_url_are_listed() {
        let secrets = "http://me:s%40crEt@proxy".parse::<Proxy>().unwrap().secrets();
        assert_eq!(secrets.iter().map(Secret::reveal).collect::<Vec<_>>(), ["bWU6c0BjckV0", "s@crEt"]);
    }

    #[test]
    fn the_error_for_an_invalid_proxy_does_not_repeat_it() {
        for (value, error) in [
            ("http://", ProxyError::Malformed),
            ("ftp://p", ProxyError::Malformed),
            ("socks5h://u:pw@p:1", ProxyError::Socks),
        ] {
            assert_eq!(value.parse::<Proxy>(), Err(error), "{value}");
        }
        let refused = Proxy::from_environment(&"http://host/v1".parse().unwrap(), |name| {
            (name == "ALL_PROXY").then_some("socks5://u:pw@p:1")
        });
        let message = refused.unwrap_err().to_string();
        assert!(message.contains("ALL_PROXY") && !message.contains("pw"), "{message}");
    }
}
