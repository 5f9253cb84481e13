//! Decides which requests to serve, by their host name and by the page that sent them.
//!
//! A malicious page can make a browser send requests to a gateway on the loopback address. If the page's host
//! name resolves to that address (DNS rebinding), the page can even read the responses. The browser states
//! the page's origin (`Origin`, or at least `Sec-Fetch-Site`) and the host name (`Host`).

use core::net::{IpAddr, Ipv6Addr};
use std::fmt;
use std::str::FromStr;

/// A host's name or address, without a port, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostName(String);

/// Error of a text that is not a host name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a host name: use one like gateway.example.com or 192.0.2.1, without a scheme")]
pub struct InvalidHost(String);

impl FromStr for HostName {
    type Err = InvalidHost;

    fn from_str(given: &str) -> Result<Self, InvalidHost> {
        let refuse = || InvalidHost(given.chars().take(100).collect());
        let host = without_port(given).ok_or_else(refuse)?;
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_host = match inner {
            Some(address) => address.parse::<Ipv6Addr>().is_ok(),
            None => {
                !host.is_empty()
                    && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
            }
        };
        // A dot at the end (the DNS root) does not change the name.
        let name = inner.unwrap_or(host.strip_suffix('.').unwrap_or(host)).to_ascii_lowercase();
        if is_host && !name.is_empty() { Ok(Self(name)) } else { Err(refuse()) }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl HostName {
    fn address(&self) -> Option<IpAddr> {
        self.0.parse().ok()
    }

    /// Returns whether the name always refers to this machine.
    fn is_loopback(&self) -> bool {
        match self.address() {
            Some(address) => address.to_canonical().is_loopback(),
            None => self.0 == "localhost" || self.0.ends_with(".localhost"),
        }
    }
}

/// Returns a host without its port, or `None` if the port is not a number.
fn without_port(authority: &str) -> Option<&str> {
    let end_of_host = authority.find(']').map_or(0, |at| at + 1);
    match authority[end_of_host..].find(':') {
        None => Some(authority),
        Some(at) => {
            let (host, port) = authority.split_at(end_of_host + at);
            let is_port = port.len() <= 6 && port[1..].bytes().all(|byte| byte.is_ascii_digit());
            is_port.then_some(host)
        }
    }
}

/// The origin of a page: scheme, host and port, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginName(String);

/// Error of a text that is not an origin of a browser.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an origin: use one like https://app.example.com, without a path")]
pub struct InvalidOrigin(String);

impl FromStr for OriginName {
    type Err = InvalidOrigin;

    fn from_str(given: &str) -> Result<Self, InvalidOrigin> {
        let refuse = || InvalidOrigin(given.chars().take(100).collect());
        let (scheme, authority) = given.split_once("://").ok_or_else(refuse)?;
        let is_scheme = !scheme.is_empty()
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
        if !is_scheme || authority.parse::<HostName>().is_err() {
            return Err(refuse());
        }
        Ok(Self(given.to_ascii_lowercase()))
    }
}

impl OriginName {
    fn authority(&self) -> &str {
        self.0.split_once("://").map_or("", |(_, authority)| authority)
    }
}

impl fmt::Display for OriginName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The reason for rejecting a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// The request was sent to a host name that is not served.
    #[error(
        "the request was sent to the host `{0}`, which is not served here: add it to allowed_hosts if it is yours"
    )]
    Host(String),
    /// A page of another origin sent the request.
    #[error(
        "the request comes from a page of `{0}`, which may not use this gateway: add it to allowed_origins if it is yours"
    )]
    Origin(String),
    /// A page of another site sent the request without stating its origin.
    #[error(
        "the request comes from a page of another origin, which it does not state (Sec-Fetch-Site: {0}): let the page use CORS, and add its origin to allowed_origins if it is yours"
    )]
    Site(String),
}

/// Error of an allowed host or origin that no request can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRule {
    /// An entry in the list of hosts.
    #[error(transparent)]
    Host(#[from] InvalidHost),
    /// An entry in the list of origins.
    #[error(transparent)]
    Origin(#[from] InvalidOrigin),
}

/// The list entry that allows all names.
const WILDCARD: &str = "*";

/// The `Sec-Fetch-Site` values of requests that no other page sent: they come from the user or from the
/// gateway's own page. `same-site` means another port or another host of the domain. Such pages are not
/// trusted.
const SAME_ORIGIN_SITES: [&[u8]; 2] = [b"none", b"same-origin"];

/// The headers of a request that identify its target and its sender.
#[derive(Debug, Clone, Copy, Default)]
pub struct SenderHeaders<'a> {
    /// The value of `Host`. It may be missing only in HTTP/1.0, which browsers do not use.
    pub host: Option<&'a [u8]>,
    /// The values of all `Origin` headers. Each of them must be allowed.
    pub origins: &'a [&'a [u8]],
    /// The values of all `Sec-Fetch-Site` headers. Browsers send no `Origin` with requests for images,
    /// scripts or links.
    pub sites: &'a [&'a [u8]],
}

/// The hosts and origins whose requests are served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessRules {
    /// Whether every host is served, not only the listed ones.
    any_host: bool,
    hosts: Vec<HostName>,
    any_origin: bool,
    origins: Vec<OriginName>,
}

impl AccessRules {
    /// Creates the rules of a listener.
    ///
    /// By default, a listener on the loopback address serves the names of this machine, and any other
    /// listener serves every name. Pages of other origins must be listed. `*` allows all hosts or origins.
    ///
    /// ```
    /// use endmark_wire::http1::{AccessRules, SenderHeaders};
    /// let rules = AccessRules::new(true, &[], &[])?;
    /// let ours = SenderHeaders { host: Some(b"localhost:4141"), ..SenderHeaders::default() };
    /// assert!(rules.admit(ours).is_ok());
    /// assert!(rules.admit(SenderHeaders { host: Some(b"rebound.example"), ..ours }).is_err());
    /// assert!(rules.admit(SenderHeaders { origins: &[b"https://example.com"], ..ours }).is_err());
    /// assert!(rules.admit(SenderHeaders { sites: &[b"cross-site"], ..ours }).is_err());
    /// # Ok::<(), endmark_wire::http1::InvalidRule>(())
    /// ```
    ///
    /// # Errors
    /// [`InvalidRule`] for a name that no host or origin can have.
    pub fn new(is_loopback: bool, hosts: &[String], origins: &[String]) -> Result<Self, InvalidRule> {
        let is_any = |names: &[String]| names.iter().any(|name| name == WILDCARD);
        let named = |name: &&String| *name != WILDCARD;
        Ok(Self {
            any_host: is_any(hosts) || (!is_loopback && hosts.is_empty()),
            hosts: hosts.iter().filter(named).map(|host| host.parse()).collect::<Result<_, InvalidHost>>()?,
            any_origin: is_any(origins),
            origins: origins
                .iter()
                .filter(named)
                .map(|origin| origin.parse())
                .collect::<Result<_, InvalidOrigin>>()?,
        })
    }

    /// Decides whether to serve a request, by its target and its sender.
    ///
    /// # Errors
    /// [`AccessError`] with the reason for rejecting the request.
    pub fn admit(&self, sender: SenderHeaders<'_>) -> Result<(), AccessError> {
        let SenderHeaders { host, origins, sites } = sender;
        let shown = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(100)]).into_owned();
        let name = host.and_then(|host| std::str::from_utf8(host).ok()?.parse::<HostName>().ok());
        if let Some(host) = host
            && !self.is_served(name.as_ref())
        {
            return Err(AccessError::Host(shown(host)));
        }
        if self.any_origin {
            return Ok(());
        }
        let is_ours = |origin: &[u8]| {
            let page = std::str::from_utf8(origin).ok().and_then(|origin| origin.parse::<OriginName>().ok());
            page.is_some_and(|page| {
                self.origins.contains(&page) || self.is_own_page(&page, host, name.as_ref())
            })
        };
        if let Some(origin) = origins.iter().find(|origin| !is_ours(origin)) {
            return Err(AccessError::Origin(shown(origin)));
        }
        let strange = sites.iter().find(|site| !SAME_ORIGIN_SITES.contains(site));
        match strange.filter(|_| origins.is_empty()) {
            Some(site) => Err(AccessError::Site(shown(site))),
            None => Ok(()),
        }
    }

    fn is_served(&self, name: Option<&HostName>) -> bool {
        self.any_host || name.is_some_and(|name| name.is_loopback() || self.hosts.contains(name))
    }

    /// Returns whether the page belongs to the gateway. If every name is served, a foreign page can use any
    /// name. In that case only an address or a listed name identifies the gateway's own pages.
    fn is_own_page(&self, page: &OriginName, host: Option<&[u8]>, name: Option<&HostName>) -> bool {
        let is_sent_to = host.is_some_and(|host| page.authority().as_bytes().eq_ignore_ascii_case(host));
        is_sent_to
            && name.is_some_and(|name| {
                name.address().is_some() || name.is_loopback() || self.hosts.contains(name)
            })
    }
}

#[cfg(test)]
mod tests;
