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
    /// The sections that the gateway declares. Its upstreams, schemas, prices, budget and TLS files come from the
    /// other fields when the gateway is built.
    pub gateway: endmark_gateway::Settings,
    /// Files for all sections.
    pub files: Files,
    /// The files for TLS on the listener.
    pub tls: Tls,
    /// In their given order: the first serves the paths that name none.
    pub upstreams: Vec<Upstream>,
    /// Whether the user configured any. Otherwise they are the providers' public endpoints.
    pub has_own_upstreams: bool,
    /// The budgets.
    pub budget: Budget,
    /// The target of events of supervised runs (CG-4).
    pub runs: Runs,
    /// The schemas that requests can name.
    pub schemas: Vec<Schema>,
    /// The user's own prices, in their given order.
    pub prices: Vec<Price>,
}

impl Settings {
    /// Whether the admin key is in the configuration itself.
    pub fn holds_admin_key(&self) -> bool {
        matches!(self.files.admin_key, Some(SecretSource::Value(_)))
    }

    /// Returns whether only this machine's users reach the listener. With other host names it is reached from
    /// elsewhere, through a proxy or a tunnel. A proxy may also hide such a name. A gateway that requires keys has
    /// clients whom its owner does not trust with the stored data.
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
    /// The store, and the files that protect it and the connections to upstreams.
    #[derive(Debug, Clone)]
    pub struct Files {
        /// The key for the pages below /endmark/; without one they are open only on the loopback address without require_key.
        admin_key: Option<SecretSource> = None, Kept;
        /// Where everything is recorded: a SQLite file, or a PostgreSQL database that several instances share (docs/several-machines.md).
        store: StoreLocation = StoreLocation::sqlite(super::SHOWN_STORE), StorePlace;
        /// With PostgreSQL: the password, instead of that of the URL or of the variable PGPASSWORD.
        store_password: Option<SecretSource> = None, Kept;
        /// With PostgreSQL: a SQLite file of this instance alone, on a disk that survives a restart.
        journal: Option<PathBuf> = None, FilePath;
        /// Certificate authorities (PEM) for upstreams, in addition to the system's.
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
    /// The target of events of supervised runs (CG-4). Its address alone permits sending events there.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Runs {
        /// An address that gets each event of supervised runs.
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
    /// The conditions for its requests.
    pub conditions: Conditions,
    /// `None` only until the whole configuration has been read.
    pub base_url: Option<BaseUrl>,
    /// Its own key, used instead of the client's.
    pub api_key: Option<SecretSource>,
    pub prefill: Prefill,
    /// The name of the upstream that answers if this one cannot.
    pub fallback: Option<String>,
    /// Its model when it is the fallback of another upstream.
    pub model: Option<String>,
    /// The model for summaries.
    pub summary_model: Option<String>,
    /// Whether it is another Endmark.
    pub endmark: bool,
    pub proxy: ProxyChoice,
    /// Certificate authorities for it, in addition to all others.
    pub ca_file: Option<PathBuf>,
}

impl Upstream {
    /// Makes an upstream of this name with default values.
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
    /// Whether its key is in the configuration itself.
    pub fn holds_key(&self) -> bool {
        matches!(self.api_key, Some(SecretSource::Value(_)))
    }
}

/// The proxy of an upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxyChoice {
    /// The environment's proxy for it, if any.
    Environment,
    /// No proxy, whatever the environment says.
    None,
    /// This proxy.
    Named(Proxy),
    /// The proxy whose URL is kept elsewhere.
    Kept(SecretSource),
}

/// A JSON Schema that a request names by header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    pub name: String,
    pub path: PathBuf,
}
