//! Pages that the gateway shows beside the ones of its own, made by somebody else.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use endmark_store::Store;
use http::request::Parts;
use http::{HeaderMap, Response};
use http_body_util::combinators::UnsyncBoxBody;

pub use crate::metrics::AddedLatency;

/// The body of a page.
pub type PageBody = UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>>;

/// A page in the making.
pub type Answering<'a> = Pin<Box<dyn Future<Output = Response<PageBody>> + Send + 'a>>;

/// A request for a page. The gateway has seen to it that `Host` and `Origin` are ones that may ask it anything.
pub struct Visit {
    /// Its head.
    pub head: Parts,
    /// Its body as a whole.
    pub body: Bytes,
    /// What the gateway remembers.
    pub store: Store,
    /// Whether the gateway is asked to stop: what goes on ends then.
    pub is_stopping: Arc<dyn Fn() -> bool + Send + Sync>,
    /// The latency that the gateway added to requests, once there was one.
    pub added_latency: Option<AddedLatency>,
}

/// Whether a request has the admin key, in a header or as a session of a browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdminAccess {
    /// It has.
    Granted,
    /// It has none, or another one.
    Denied,
    /// There is no admin key.
    NoKey,
}

/// Who shows pages below `/endmark/`. Each says by itself to whom it answers.
pub trait Pages: fmt::Debug + Send + Sync {
    /// Returns whether a request with these headers has the admin key.
    fn admin_access(&self, headers: &HeaderMap) -> AdminAccess;

    /// Answers a request for a page, also where there is none.
    fn respond(&self, visit: Visit) -> Answering<'_>;
}
