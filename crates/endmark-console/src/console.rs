//! Answers requests for the stored data.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use endmark_context::Models;
use endmark_context::budget::{BudgetRule, Zone};
use endmark_store::Store;
use http::request::Parts;
use http::{HeaderMap, Method, Response};
use tokio::sync::Semaphore;

use crate::access::Access;
use crate::answer::{ConsoleBody, ConsoleError};
use crate::api::{self, events};
use crate::page;

/// The settings of a console.
#[derive(Debug, Clone)]
pub struct ConsoleSettings {
    /// The admin key. If it is set, every request must contain it.
    pub admin_key: Option<String>,
    /// Whether only the owner can reach the listener: requests come from this machine, use local host names
    /// and need no client key.
    pub is_local: bool,
    /// An unpredictable value that signs the forms of the pages.
    pub nonce: String,
    /// The table of models and their prices.
    pub models: Arc<Models>,
    /// The configured budgets.
    pub rules: Vec<BudgetRule>,
    /// The time zone of budget windows.
    pub zone: Zone,
    /// Days for which records are kept; 0 means forever.
    pub keep_days: u64,
    /// Whether the texts of cut replies are kept.
    pub keep_text: bool,
    /// Maximum tokens of one continuation, which are used for estimates.
    pub continuation_tokens: u64,
}

/// A request, with the data that is needed to answer it.
pub struct ConsoleRequest {
    /// The head of the request.
    pub head: Parts,
    /// The complete body of the request.
    pub body: Bytes,
    /// The store to read.
    pub store: Store,
    /// Whether the gateway is stopping. If it is, event streams end.
    pub is_stopping: Arc<dyn Fn() -> bool + Send + Sync>,
    /// Median and 95th percentile of the latency that the gateway adds, in milliseconds. `None` until they are
    /// measured.
    pub added_latency_ms: Option<(f64, f64)>,
}

/// Answers requests for the stored data.
pub struct Console {
    pub(crate) access: Access,
    pub(crate) models: Arc<Models>,
    pub(crate) rules: Vec<BudgetRule>,
    pub(crate) zone: Zone,
    pub(crate) keep_days: u64,
    pub(crate) keep_text: bool,
    pub(crate) continuation_tokens: u64,
    pub(crate) followers: Arc<Semaphore>,
}

impl Console {
    /// Creates a console with these settings.
    pub fn new(settings: ConsoleSettings) -> Self {
        Self {
            access: Access::new(settings.admin_key.as_deref(), settings.is_local, &settings.nonce),
            models: settings.models,
            rules: settings.rules,
            zone: settings.zone,
            keep_days: settings.keep_days,
            keep_text: settings.keep_text,
            continuation_tokens: settings.continuation_tokens,
            followers: Arc::new(Semaphore::new(events::MAX_FOLLOWERS)),
        }
    }

    /// Returns whether a request has the admin key, or `None` if no admin key is set.
    pub fn has_admin_key(&self, headers: &HeaderMap) -> Option<bool> {
        self.access.has_key().then(|| self.access.admit(headers).is_ok())
    }

    /// Answers a request for a path below `/endmark/`.
    pub async fn respond(&self, visit: ConsoleRequest) -> Response<ConsoleBody> {
        if !visit.head.uri.path().starts_with(api::ROUTE_PREFIX) {
            return page::respond(self, &visit).await;
        }
        let answered = match self.admit(&visit.head) {
            Ok(()) => api::respond(self, &visit).await,
            Err(failure) => Err(failure),
        };
        answered.unwrap_or_else(|failure| failure.to_json_response())
    }

    fn admit(&self, head: &Parts) -> Result<(), ConsoleError> {
        self.access.admit(&head.headers)?;
        if matches!(head.method, Method::GET | Method::HEAD) {
            Ok(())
        } else {
            Err(ConsoleError::MethodNotAllowed)
        }
    }
}

impl fmt::Debug for Console {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Console").finish_non_exhaustive()
    }
}
