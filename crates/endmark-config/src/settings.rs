//! The effective configuration, typed. The sections that the gateway declares are in `gateway`.

use std::net::SocketAddr;
use std::path::PathBuf;

use endmark_gateway::{BaseUrl, Conditions, Hidden, Prefill, Proxy, Secret};
use endmark_setting::{FilePath, settings};
use endmark_store::StoreLocation;
use endmark_wire::openai_chat::OPENAI;
use endmark_wire::provider::Provider;

use super::budget::Budget;
use super::kinds::{Kept, StorePlace};
use super::listening::reachable;
use super::prices::Price;
use super::secret_source::SecretSource;

/// Everything that can be configured, with its default.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The sections that the gateway declares. Its upstreams, schemas, prices, budget and TLS files come from the other fields
    /// when the gateway is built.
    pub gateway: endmark_gateway::Settings,
    /// The files that belong to all of it.
    pub files: Files,
    /// The files for TLS on the listener.
    pub tls: Tls,
    /// In the order in which they were given: the first serves the paths that name none.
    pub upstreams: Vec<Upstream>,
    /// Whether somebody named them: else they are the providers' public endpoints.
    pub has_own_upstreams: bool,
    /// What may be spent.
    pub budget: Budget,
    /// Where events of supervised runs go (CG-4).
    pub runs: Runs,
    /// The schemas that requests name.
    pub schemas: Vec<Schema>,
    /// The user's own prices, in the order in which they were given.
    pub prices: Vec<Price>,
}

impl Settings {
    /// Whether the admin key is written in the configuration itself.
    pub fn holds_admin_key(&self) -> bool {
        matches!(self.files.admin_key, Some(SecretSource::Value(_)))
    }

    /// Returns whether only the machine's own users reach the listener. Under another name it is reached from elsewhere, through
    /// a proxy or a tunnel. A proxy may also keep that name to itself; a gateway that requires keys has clients whom its owner
    /// does not trust with what is stored.
    pub fn is_local(&self) -> bool {
        let listener = &self.gateway.listener;
        listener.listen.ip().to_canonical().is_loopback()
            && listener.allowed_hosts.is_empty()
            && !listener.require_key
    }

    /// Returns the URL at which this machine reaches a listener at this address.
    pub fn origin(&self, listen: SocketAddr) -> String {
        let scheme = if self.tls.certificate.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", reachable(listen))
    }

    /// Returns the upstreams without a key of their own. Requests to them with a key of the gateway are refused.
    pub fn keyless(&self) -> impl Iterator<Item = &Upstream> {
        self.upstreams.iter().filter(|upstream| upstream.api_key.is_none())
    }
}

settings! {
    /// The store, and what protects it and the ways to upstreams.
    #[derive(Debug, Clone)]
    pub struct Files {
        /// The key that opens the pages below /endmark/; without one they open on the loopback address alone, and not with require_key.
        admin_key: Option<SecretSource> = None, Kept;
        /// Where recoveries are recorded: sqlite:PATH.
        store: StoreLocation = StoreLocation::sqlite(super::SHOWN_STORE), StorePlace;
        /// Certificate authorities (PEM) that upstreams may be certified by, beside the system's.
        ca_file: Option<PathBuf> = None, FilePath;
    }
}

settings! {
    /// The files for TLS on the listener: both or none.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Tls {
        /// The listener's chain of certificates, a PEM file; without one it speaks plain HTTP.
        certificate: Option<PathBuf> = None, FilePath;
        /// The key of the certificate, a PEM file.
        key: Option<PathBuf> = None, FilePath;
    }
}

settings! {
    /// Where events of supervised runs go (CG-4). An address is enough to send something there.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Runs {
        /// An address that is sent each event of supervised runs.
        webhook: Option<Secret> = None, Hidden;
        /// The secret that signs these events (HMAC-SHA256, in x-endmark-signature).
        webhook_secret: Option<Secret> = None, Hidden;
    }
}

/// A server that requests are forwarded to.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "`keys::list` documents each key")]
pub struct Upstream {
    pub name: String,
    pub format: &'static Provider,
    /// What a request has to meet for it.
    pub conditions: Conditions,
    /// None only until the whole configuration has been read.
    pub base_url: Option<BaseUrl>,
    /// Its own key, used in place of the client's.
    pub api_key: Option<SecretSource>,
    pub prefill: Prefill,
    /// The name of the upstream that answers where this one cannot.
    pub fallback: Option<String>,
    /// The model it is asked for where it stands in for another.
    pub model: Option<String>,
    /// The model that is asked for summaries.
    pub summary_model: Option<String>,
    /// Whether it is another Endmark.
    pub endmark: bool,
    pub proxy: ProxyChoice,
    /// Certificate authorities that are trusted for it beside all others.
    pub ca_file: Option<PathBuf>,
}

impl Upstream {
    /// An upstream of this name, as it is before anything is said about it.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            format: &OPENAI,
            conditions: Conditions::default(),
            base_url: None,
            api_key: None,
            prefill: Prefill::Auto,
            fallback: None,
            model: None,
            summary_model: None,
            endmark: false,
            proxy: ProxyChoice::Environment,
            ca_file: None,
        }
    }
}

impl Upstream {
    /// Whether its key stands in the configuration itself.
    pub fn holds_key(&self) -> bool {
        matches!(self.api_key, Some(SecretSource::Value(_)))
    }
}

/// The proxy of an upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxyChoice {
    /// The one that the environment has for it, if any.
    Environment,
    /// None, whatever the environment says.
    None,
    /// This one.
    Named(Proxy),
    /// The one whose URL is kept elsewhere.
    Kept(SecretSource),
}

/// A JSON Schema that a request names by header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    pub name: String,
    pub path: PathBuf,
}
