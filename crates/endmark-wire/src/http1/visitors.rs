//! Decides which requests are served, from their host name and from the page that sent them.
//!
//! A malicious page can make a browser send requests to a gateway on the loopback address. If the page's host name
//! resolves to that address (DNS rebinding), it can even read the responses. The browser states the page's origin
//! (`Origin`, or at least `Sec-Fetch-Site`) and the host name (`Host`).

use core::net::{IpAddr, Ipv6Addr};
use std::fmt;
use std::str::FromStr;

/// A host's name or address, without a port, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostName(String);

/// Error of a text that is not a host name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no host name: use one like gateway.example.com or 192.0.2.1, without a scheme")]
pub struct NotAHost(String);

impl FromStr for HostName {
    type Err = NotAHost;

    fn from_str(given: &str) -> Result<Self, NotAHost> {
        let refuse = || NotAHost(given.chars().take(100).collect());
        let host = without_port(given).ok_or_else(refuse)?;
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_host = match inner {
            Some(address) => address.parse::<Ipv6Addr>().is_ok(),
            None => {
                !host.is_empty()
                    && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
            }
        };
        // A root dot at the end does not change the name.
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

    /// Returns whether the name can only mean this machine.
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

/// Error for a text that is not an origin of a browser.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no origin: use one like https://app.example.com, without a path")]
pub struct NotAnOrigin(String);

impl FromStr for OriginName {
    type Err = NotAnOrigin;

    fn from_str(given: &str) -> Result<Self, NotAnOrigin> {
        let refuse = || NotAnOrigin(given.chars().take(100).collect());
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

/// The reason for not serving a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Stranger {
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
        "the request comes from a page of another origin (Sec-Fetch-Site: {0}), which does not say which: let it use CORS, and add its origin to allowed_origins if it is yours"
    )]
    Site(String),
}

/// Error for an allowed host or origin that no request can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAllowable {
    /// In the list of hosts.
    #[error(transparent)]
    Host(#[from] NotAHost),
    /// In the list of origins.
    #[error(transparent)]
    Origin(#[from] NotAnOrigin),
}

/// The list entry that allows all names.
const ANY: &str = "*";

/// The `Sec-Fetch-Site` values of requests that no other page sent: they come from the user or the gateway's own
/// page. `same-site` means another port or another name of the domain, which is not trusted either.
const SAME_ORIGIN_SITES: [&[u8]; 2] = [b"none", b"same-origin"];

/// The headers of a request that identify its target and its sender.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sender<'a> {
    /// The value of `Host`. It is missing only in HTTP/1.0, which browsers do not send.
    pub host: Option<&'a [u8]>,
    /// The values of every `Origin`. Each must be allowed.
    pub origins: &'a [&'a [u8]],
    /// The values of every `Sec-Fetch-Site`. Browsers send no `Origin` with requests for images, scripts or links.
    pub sites: &'a [&'a [u8]],
}

/// The hosts and origins whose requests are served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visitors {
    /// Whether every host is served, in addition to the named ones.
    any_host: bool,
    hosts: Vec<HostName>,
    any_origin: bool,
    origins: Vec<OriginName>,
}

impl Visitors {
    /// Creates the rules of a listener.
    ///
    /// By default, a listener on the loopback address serves the names of this machine, and any other listener serves
    /// every name. Pages of other origins must be named. `*` allows all.
    ///
    /// ```
    /// use endmark_wire::http1::{Sender, Visitors};
    /// let visitors = Visitors::new(true, &[], &[])?;
    /// let ours = Sender { host: Some(b"localhost:4141"), ..Sender::default() };
    /// assert!(visitors.admit(ours).is_ok());
    /// assert!(visitors.admit(Sender { host: Some(b"rebound.example"), ..ours }).is_err());
    /// assert!(visitors.admit(Sender { origins: &[b"https://example.com"], ..ours }).is_err());
    /// assert!(visitors.admit(Sender { sites: &[b"cross-site"], ..ours }).is_err());
    /// # Ok::<(), endmark_wire::http1::NotAllowable>(())
    /// ```
    ///
    /// # Errors
    /// [`NotAllowable`] for a name that no host or origin can have.
    pub fn new(is_loopback: bool, hosts: &[String], origins: &[String]) -> Result<Self, NotAllowable> {
        let is_any = |names: &[String]| names.iter().any(|name| name == ANY);
        let named = |name: &&String| *name != ANY;
        Ok(Self {
            any_host: is_any(hosts) || (!is_loopback && hosts.is_empty()),
            hosts: hosts.iter().filter(named).map(|host| host.parse()).collect::<Result<_, NotAHost>>()?,
            any_origin: is_any(origins),
            origins: origins
                .iter()
                .filter(named)
                .map(|origin| origin.parse())
                .collect::<Result<_, NotAnOrigin>>()?,
        })
    }

    /// Decides whether to serve a request from its target and its sender.
    ///
    /// # Errors
    /// [`Stranger`] with the reason why the request is not served.
    pub fn admit(&self, sender: Sender<'_>) -> Result<(), Stranger> {
        let Sender { host, origins, sites } = sender;
        let shown = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(100)]).into_owned();
        let name = host.and_then(|host| std::str::from_utf8(host).ok()?.parse::<HostName>().ok());
        if let Some(host) = host
            && !self.is_served(name.as_ref())
        {
            return Err(Stranger::Host(shown(host)));
        }
        if self.any_origin {
            return Ok(());
        }
        let is_ours = |origin: &[u8]| {
            let page = std::str::from_utf8(origin).ok().and_then(|origin| origin.parse::<OriginName>().ok());
            page.is_some_and(|page| self.origins.contains(&page) || self.is_same(&page, host, name.as_ref()))
        };
        if let Some(origin) = origins.iter().find(|origin| !is_ours(origin)) {
            return Err(Stranger::Origin(shown(origin)));
        }
        let strange = sites.iter().find(|site| !SAME_ORIGIN_SITES.contains(site));
        match strange.filter(|_| origins.is_empty()) {
            Some(site) => Err(Stranger::Site(shown(site))),
            None => Ok(()),
        }
    }

    fn is_served(&self, name: Option<&HostName>) -> bool {
        self.any_host || name.is_some_and(|name| name.is_loopback() || self.hosts.contains(name))
    }

    /// Returns whether the page belongs to the gateway. If every name is served, a foreign page can use any name. In
    /// that case only an address or a configured name identifies the gateway's own pages.
    fn is_same(&self, page: &OriginName, host: Option<&[u8]>, name: Option<&HostName>) -> bool {
        let is_sent_to = host.is_some_and(|host| page.authority().as_bytes().eq_ignore_ascii_case(host));
        is_sent_to
            && name.is_some_and(|name| {
                name.address().is_some() || name.is_loopback() || self.hosts.contains(name)
            })
    }
}

#[cfg(test)]
mod tests;
