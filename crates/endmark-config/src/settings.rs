//! Defines the settings of the whole configuration.

use std::net::SocketAddr;
use std::path::PathBuf;

use endmark_gateway::{BaseUrl, Conditions, Prefill, Proxy, Secret, SecretText};
use endmark_setting::{FilePath, settings};
use endmark_store::StoreLocation;
use endmark_wire::openai_chat::OPENAI;
use endmark_wire::provider::Provider;

use super::budget::Budget;
use super::kinds::{SecretOrReference, StoreAddress};
use super::listening::reachable_address;
use super::prices::Price;
use super::secret_source::SecretSource;

/// All settings, with their defaults.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The sections that the gateway declares. Its upstreams, schemas, prices, budget and TLS files are filled in from
    /// the other fields when the gateway is built.
    pub gateway: endmark_gateway::Settings,
    /// Files that several sections use.
    pub files: Files,
    /// The TLS files of the listener.
    pub tls: Tls,
    /// The upstreams in the configured order. The first one serves paths without an upstream name.
    pub upstreams: Vec<Upstream>,
    /// Whether the user configured upstreams. Otherwise the providers' public endpoints are used.
    pub has_own_upstreams: bool,
    /// The budgets.
    pub budget: Budget,
    /// The address that receives events of supervised runs (CG-4).
    pub runs: Runs,
    /// The JSON Schemas that requests can refer to by name.
    pub schemas: Vec<Schema>,
    /// The user's own prices, in the configured order.
    pub prices: Vec<Price>,
}

impl Settings {
    /// Returns whether the configuration itself contains the admin key.
    pub fn has_inline_admin_key(&self) -> bool {
        matches!(self.files.admin_key, Some(SecretSource::Value(_)))
    }

    /// Returns whether all clients are users of this machine and may see the stored data. They may not if other host
    /// names are allowed, because requests may then come through a proxy or a tunnel. Nor may they if the gateway
    /// requires keys, because its owner then does not trust all clients.
    pub fn is_local(&self) -> bool {
        let listener = &self.gateway.listener;
        listener.listen.ip().to_canonical().is_loopback()
            && listener.allowed_hosts.is_empty()
            && !listener.require_key
    }

    /// Returns the URL at which this machine reaches a listener at this address.
    pub fn listener_url(&self, listen: SocketAddr) -> String {
        let scheme = if self.tls.certificate.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", reachable_address(listen))
    }

    /// Returns the upstreams without a configured key. The gateway refuses requests to them that use one of the
    /// gateway's own keys.
    pub fn upstreams_without_key(&self) -> impl Iterator<Item = &Upstream> {
        self.upstreams.iter().filter(|upstream| upstream.api_key.is_none())
    }
}

settings! {
    /// The store, and the files that protect it and the connections to upstreams.
    #[derive(Debug, Clone)]
    pub struct Files {
        /// The key for the pages below /endmark/; without one they are open only on the loopback address without require_key.
        admin_key: Option<SecretSource> = None, SecretOrReference;
        /// Where everything is recorded: a SQLite file, or a PostgreSQL database that several instances share (docs/several-machines.md).
        store: StoreLocation = StoreLocation::sqlite(super::DOCUMENTED_STORE_PATH), StoreAddress;
        /// With PostgreSQL: the password, instead of that of the URL or of the variable PGPASSWORD.
        store_password: Option<SecretSource> = None, SecretOrReference;
        /// With PostgreSQL: a SQLite file of this instance alone, on a disk that survives a restart.
        journal: Option<PathBuf> = None, FilePath;
        /// Certificate authorities (PEM) for upstreams, in addition to the system's.
        ca_file: Option<PathBuf> = None, FilePath;
    }
}

settings! {
    /// The files for TLS on the listener. Both must be set, or neither.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Tls {
        /// The listener's chain of certificates, a PEM file; without one it speaks plain HTTP.
        certificate: Option<PathBuf> = None, FilePath;
        /// The key of the certificate, a PEM file.
        key: Option<PathBuf> = None, FilePath;
    }
}

settings! {
    /// The address that receives events of supervised runs (CG-4). Setting it also permits sending them there.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Runs {
        /// An address that gets each event of supervised runs.
        webhook: Option<Secret> = None, SecretText;
        /// The secret that signs these events (HMAC-SHA256, in x-endmark-signature).
        webhook_secret: Option<Secret> = None, SecretText;
    }
}

/// A server to which the gateway forwards requests.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "`keys::list` documents each key")]
pub struct Upstream {
    pub name: String,
    pub format: &'static Provider,
    /// The conditions that apply to requests to this upstream.
    pub conditions: Conditions,
    /// The base URL. `None` only while the configuration is being read.
    pub base_url: Option<BaseUrl>,
    /// The upstream's own key, used instead of the client's.
    pub api_key: Option<SecretSource>,
    pub prefill: Prefill,
    /// The name of the upstream that is used if this one cannot answer.
    pub fallback: Option<String>,
    /// The model to request when this upstream is the fallback of another.
    pub model: Option<String>,
    /// The model that writes summaries.
    pub summary_model: Option<String>,
    /// Whether this upstream is another Endmark gateway.
    pub endmark: bool,
    pub proxy: ProxyChoice,
    /// Certificate authorities for this upstream, in addition to all others.
    pub ca_file: Option<PathBuf>,
}

impl Upstream {
    /// Creates an upstream of this name with default values.
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
    /// Returns whether the configuration itself contains the upstream's key.
    pub fn has_inline_key(&self) -> bool {
        matches!(self.api_key, Some(SecretSource::Value(_)))
    }
}

/// The proxy of an upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxyChoice {
    /// The proxy that environment variables set, if any.
    Environment,
    /// No proxy, even if environment variables set one.
    None,
    /// A proxy from the configuration.
    Named(Proxy),
    /// A proxy whose URL is in an environment variable or a file.
    Referenced(SecretSource),
}

/// A JSON Schema that a request names by header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    pub name: String,
    pub path: PathBuf,
}
