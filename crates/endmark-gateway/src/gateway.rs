//! The state that all requests of a gateway share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use endmark_store::Store;
use endmark_wire::http1::{AccessRules, InvalidRule};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Uri};
use tokio_rustls::TlsAcceptor;

use crate::admission::HeldBytes;
use crate::budget::Budgets;
use crate::faults::Faults;
use crate::keys::{Keys, OwnKey};
use crate::metrics::Metrics;
use crate::recovery::{Capabilities, Schema, SchemaError, StreamUsages};
use crate::refusals::Refusal;
use crate::rotations::Rotations;
use crate::scrub::Scrubber;
use crate::settings::{Settings, UnfitFallback, Upstream};
use crate::shaping::Shaping;
use crate::stopping::{ShutdownStage, Stopping};
use crate::successors::Successors;
use crate::tls::{TlsError, new_acceptor};
use crate::upstream::{Client, ClientError, UpstreamHealth};
use crate::webhook::WebhookError;

/// A gateway, ready to serve.
// Fields: all requests share them, and each stage uses only a few.
pub struct Gateway {
    pub(crate) settings: Settings,
    pub(crate) client: Client,
    pub(crate) store: Store,
    pub(crate) scrubber: Arc<Scrubber>,
    pub(crate) capabilities: Capabilities,
    pub(crate) stream_usages: StreamUsages,
    pub(crate) upstream_health: UpstreamHealth,
    pub(crate) faults: Arc<Faults>,
    pub(crate) schemas: BTreeMap<String, Schema>,
    pub(crate) budgets: Arc<Budgets>,
    pub(crate) keys: Keys,
    /// Number of requests with a gateway key that run a model, counted before the upstream call.
    pub(crate) admitted_calls: AtomicU64,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) visitors: AccessRules,
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) held_bytes: Arc<HeldBytes>,
    pub(crate) successors: Arc<Successors>,
    pub(crate) rotations: Arc<Rotations>,
    pub(crate) stopping: Arc<Stopping>,
    pub(crate) shaping: Arc<Shaping>,
}

/// Why a gateway cannot be built from its settings.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// There is no upstream.
    #[error("no upstream is configured: add a section [upstreams.NAME] with a base_url")]
    NoUpstream,
    /// A fallback is invalid.
    #[error("the upstream `{upstream}` has the fallback `{fallback}`, {why}")]
    Fallback {
        /// The upstream that has the fallback.
        upstream: String,
        /// The name of the fallback.
        fallback: String,
        /// Why the fallback is unusable.
        why: &'static str,
    },
    /// No request could reach the fallback.
    #[error("the `{}` of the upstream `{fallback}` must be {unfit}", unfit.key())]
    UnfitFallback {
        /// The name of the fallback upstream.
        fallback: String,
        /// Why the fallback is unusable.
        unfit: UnfitFallback,
    },
    /// The key of an upstream contains a character that is not valid in a header.
    #[error(
        "the key of the upstream `{0}` holds a character that no header can carry: write it without line breaks"
    )]
    Key(String),
    /// The client for upstream calls cannot be created.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The listener's TLS settings are invalid.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A permitted host or origin is invalid.
    #[error(transparent)]
    NotAllowable(#[from] InvalidRule),
    /// The address of the webhook for budgets cannot be used.
    #[error(transparent)]
    Webhook(#[from] WebhookError),
    /// A configured schema is not a JSON Schema.
    #[error("the schema `{name}` cannot be used")]
    Schema {
        /// The name of the schema in the configuration.
        name: String,
        /// Why the schema is unusable.
        source: SchemaError,
    },
}

impl Gateway {
    /// Creates the shared state of all requests. It does not listen yet.
    ///
    /// # Errors
    /// [`BuildError`] for settings that cannot work.
    pub fn new(settings: Settings, store: Store) -> Result<Arc<Self>, BuildError> {
        Ok(Arc::new(Self::build(settings, store)?))
    }

    /// Adds the number of lost log lines to the metrics. `lost` is called whenever the number is needed.
    pub fn count_lost_lines(&self, lost: fn() -> u64) {
        self.metrics.count_lost_lines(lost);
    }

    /// Returns how long replies in progress may continue after a request to stop.
    pub fn drain_time(&self) -> Duration {
        self.settings.limits.drain
    }

    /// Creates a gateway with other settings. The new gateway shares this one's state: requests in progress,
    /// metrics and injected faults. The health of upstreams is unknown at first. The address and the store do
    /// not change.
    ///
    /// # Errors
    /// [`BuildError`] for settings that cannot work. This gateway is unchanged.
    pub fn with_settings(&self, settings: Settings) -> Result<Arc<Self>, BuildError> {
        let mut next = Self::build(settings, self.store.clone())?;
        next.held_bytes = Arc::clone(&self.held_bytes);
        next.successors = Arc::clone(&self.successors);
        next.rotations = Arc::clone(&self.rotations);
        next.metrics = Arc::clone(&self.metrics);
        next.stopping = Arc::clone(&self.stopping);
        next.shaping = Arc::clone(&self.shaping);
        next.faults = Arc::clone(&self.faults);
        Ok(Arc::new(next))
    }

    fn build(settings: Settings, store: Store) -> Result<Self, BuildError> {
        if settings.upstreams.is_empty() {
            return Err(BuildError::NoUpstream);
        }
        for upstream in &settings.upstreams {
            check_fallback(upstream, &settings.upstreams)?;
            if upstream.api_key.as_ref().is_some_and(|key| HeaderValue::from_str(key.reveal()).is_err()) {
                return Err(BuildError::Key(upstream.name.clone()));
            }
        }
        let mut schemas = BTreeMap::new();
        for (name, text) in &settings.schemas {
            let schema =
                Schema::compile(text).map_err(|source| BuildError::Schema { name: name.clone(), source })?;
            schemas.insert(name.clone(), schema);
        }
        let is_loopback = settings.listener.listen.ip().to_canonical().is_loopback();
        Ok(Self {
            visitors: AccessRules::new(
                is_loopback,
                &settings.listener.allowed_hosts,
                &settings.listener.allowed_origins,
            )?,
            tls: settings.tls.as_ref().map(new_acceptor).transpose()?,
            held_bytes: Arc::default(),
            successors: Arc::default(),
            rotations: Arc::default(),
            client: Client::new(&settings.upstreams)?,
            upstream_health: UpstreamHealth::new(&settings),
            faults: Arc::new(Faults::new(&settings.faults.plan, settings.faults.side, settings.faults.seed)),
            capabilities: Capabilities::default(),
            stream_usages: StreamUsages::default(),
            scrubber: Arc::new(settings.scrubber()),
            schemas,
            budgets: Arc::new(Budgets::new(&settings)?),
            keys: Keys::new(&settings),
            admitted_calls: AtomicU64::new(0),
            metrics: Arc::new(Metrics::new()),
            stopping: Arc::default(),
            shaping: Arc::default(),
            settings,
            store,
        })
    }

    /// Returns the gateway key that a request contains, if any.
    ///
    /// # Errors
    /// [`Refusal`] if the key is not valid, or if it is missing and one is required.
    pub(crate) async fn own_key(
        &self,
        headers: &HeaderMap,
        uri: &Uri,
    ) -> Result<Option<Arc<OwnKey>>, Refusal> {
        self.keys
            .find(&self.store, self.settings.listener.require_key || self.keys.has_sole_key(), headers, uri)
            .await
    }

    /// Records the client in the head of a request for a gateway page. Pages do not require a key: each page decides
    /// which clients it serves.
    ///
    /// # Errors
    /// [`Refusal`] for a key that is not valid.
    pub(crate) async fn recognise(&self, head: &mut Parts) -> Result<(), Refusal> {
        if let Some(key) = self.keys.find(&self.store, false, &head.headers, &head.uri).await? {
            head.extensions.insert(key);
        }
        Ok(())
    }

    pub(crate) fn upstream(&self, name: &str) -> Option<&Upstream> {
        self.settings.upstreams.iter().find(|upstream| upstream.name == name)
    }

    /// Returns the upstreams with conditions.
    pub(crate) fn conditional_upstreams(&self) -> impl Iterator<Item = &Upstream> {
        self.settings.upstreams.iter().filter(|upstream| !upstream.conditions.is_empty())
    }

    /// Returns the upstreams without conditions. They serve requests that meet no other upstream's conditions.
    pub(crate) fn unconditional_upstreams(&self) -> impl Iterator<Item = &Upstream> {
        self.settings.upstreams.iter().filter(|upstream| upstream.conditions.is_empty())
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.has_reached(ShutdownStage::Draining)
    }
}

fn check_fallback(upstream: &Upstream, all: &[Upstream]) -> Result<(), BuildError> {
    let Some(fallback) = &upstream.fallback else { return Ok(()) };
    let why = if *fallback == upstream.name {
        "which is itself"
    } else if let Some(other) = all.iter().find(|other| other.name == *fallback) {
        return match UnfitFallback::check(&other.base_url, other.provider, other.model.as_deref()) {
            None => Ok(()),
            Some(unfit) => Err(BuildError::UnfitFallback { fallback: fallback.clone(), unfit }),
        };
    } else {
        "which is not configured"
    };
    Err(BuildError::Fallback { upstream: upstream.name.clone(), fallback: fallback.clone(), why })
}
