//! What every request of one gateway shares.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use endmark_store::Store;

use crate::recovery::{Capabilities, Schema, SchemaError};
use crate::settings::{Settings, Upstream};
use crate::upstream::{Client, ClientError};

/// A gateway, ready to serve.
pub struct Gateway {
    pub(crate) settings: Settings,
    pub(crate) client: Client,
    pub(crate) store: Store,
    pub(crate) capabilities: Capabilities,
    pub(crate) schemas: BTreeMap<String, Schema>,
    stopping: AtomicBool,
}

/// Why a gateway cannot be built from its settings.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Nothing to forward to.
    #[error("no upstream is configured: add a section [upstreams.NAME] with a base_url")]
    NoUpstream,
    /// The client for upstream calls cannot be made.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A configured schema is no JSON Schema.
    #[error("the schema `{name}` cannot be used")]
    Schema {
        /// Its name in the configuration.
        name: String,
        /// What is wrong with it.
        source: SchemaError,
    },
}

impl Gateway {
    /// Prepares everything that requests share; binds nothing.
    ///
    /// # Errors
    /// [`BuildError`] where the settings cannot work.
    pub fn new(settings: Settings, store: Store) -> Result<Arc<Self>, BuildError> {
        if settings.upstreams.is_empty() {
            return Err(BuildError::NoUpstream);
        }
        let mut schemas = BTreeMap::new();
        for (name, text) in &settings.schemas {
            let schema =
                Schema::compile(text).map_err(|source| BuildError::Schema { name: name.clone(), source })?;
            schemas.insert(name.clone(), schema);
        }
        Ok(Arc::new(Self {
            client: Client::new(&settings.limits)?,
            capabilities: Capabilities::new(store.clone()),
            schemas,
            stopping: AtomicBool::new(false),
            settings,
            store,
        }))
    }

    /// The upstream of that name.
    pub(crate) fn upstream(&self, name: &str) -> Option<&Upstream> {
        self.settings.upstreams.iter().find(|upstream| upstream.name == name)
    }

    /// The upstream that serves the paths without a name; there always is one.
    pub(crate) fn default_upstream(&self) -> Option<&Upstream> {
        self.settings.upstreams.first()
    }

    /// From now on the gateway is not ready for new work.
    pub(crate) fn stop_accepting(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    /// Whether the gateway was asked to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }
}
