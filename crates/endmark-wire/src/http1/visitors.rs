//! Whose requests are answered: by the name they were sent to, and by the page that sent them.
//!
//! A page of a stranger can make a browser send requests to a gateway on the loopback address, and by a name
//! that it lets point there (DNS rebinding) even read the answers. The browser says where the page is from
//! (`Origin`, or at least `Sec-Fetch-Site`), and what name it used (`Host`).

use core::net::{IpAddr, Ipv6Addr};
use std::fmt;
use std::str::FromStr;

/// A host's name or address, without a port, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostName(String);

/// A name that no host has.
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
        // A name with the root's dot at its end is the same name.
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

    /// Whether it can only be this machine.
    fn is_loopback(&self) -> bool {
        match self.address() {
            Some(address) => address.to_canonical().is_loopback(),
            None => self.0 == "localhost" || self.0.ends_with(".localhost"),
        }
    }
}

/// A host without its port; none where the port is no number.
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

/// Where a page is from: scheme, host and port, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginName(String);

/// A text that no browser sends as an origin.
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

/// Why a request is not answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Stranger {
    /// It was sent to a name that is none of ours.
    #[error(
        "the request was sent to the host `{0}`, which is not served here: add it to allowed_hosts if it is yours"
    )]
    Host(String),
    /// It was sent by a page of somewhere else.
    #[error(
        "the request comes from a page of `{0}`, which may not use this gateway: add it to allowed_origins if it is yours"
    )]
    Origin(String),
    /// It was sent by a page of another site, which does not say of which.
    #[error(
        "the request comes from a page of another origin (Sec-Fetch-Site: {0}), which does not say which: let it use CORS, and add its origin to allowed_origins if it is yours"
    )]
    Site(String),
}

/// A name in a list of those that are allowed that no request can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAllowable {
    /// In the list of hosts.
    #[error(transparent)]
    Host(#[from] NotAHost),
    /// In the list of origins.
    #[error(transparent)]
    Origin(#[from] NotAnOrigin),
}

/// What stands in a list for every name.
const ANY: &str = "*";

/// What `Sec-Fetch-Site` says of a request that no page of another origin sent: a person asked for it, or the gateway's
/// own page did. `same-site` is another port or another name of the domain: another origin, as strange as any.
const OF_NO_OTHER_ORIGIN: [&[u8]; 2] = [b"none", b"same-origin"];

/// What a request says of whom it was sent to and by.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sender<'a> {
    /// The value of `Host`. One without it (HTTP/1.0) is of no browser.
    pub host: Option<&'a [u8]>,
    /// The values of every `Origin`; each has to be let in.
    pub origins: &'a [&'a [u8]],
    /// The values of every `Sec-Fetch-Site`. A browser sends no `Origin` with an image, a script or a link's request.
    pub sites: &'a [&'a [u8]],
}

/// Whose requests are answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visitors {
    /// Whether every host is served, beside those named.
    any_host: bool,
    hosts: Vec<HostName>,
    any_origin: bool,
    origins: Vec<OriginName>,
}

impl Visitors {
    /// Those of a listener: one on the loopback address serves this machine's names, any other one every name,
    /// until names are given; a page of another origin is served nowhere until it is named. `*` allows all.
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
    /// [`NotAllowable`] for a name that no host or origin has.
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

    /// Decides by what a request says of its sender.
    ///
    /// # Errors
    /// The [`Stranger`] that it is.
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
        let strange = sites.iter().find(|site| !OF_NO_OTHER_ORIGIN.contains(site));
        match strange.filter(|_| origins.is_empty()) {
            Some(site) => Err(Stranger::Site(shown(site))),
            None => Ok(()),
        }
    }

    fn is_served(&self, name: Option<&HostName>) -> bool {
        self.any_host || name.is_some_and(|name| name.is_loopback() || self.hosts.contains(name))
    }

    /// Whether the page is one of the gateway's own. Where every name is served a stranger's page can be at any,
    /// so that only an address, or a name that was given, tells it from ours.
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
