//! Pages below `/endmark/` that another crate provides.

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

/// A page that is being made.
pub type Answering<'a> = Pin<Box<dyn Future<Output = Response<PageBody>> + Send + 'a>>;

/// A request for a page. The gateway has checked `Host` and `Origin`.
pub struct Visit {
    /// Its head.
    pub head: Parts,
    /// Its whole body.
    pub body: Bytes,
    /// The gateway's store.
    pub store: Store,
    /// Whether the gateway is stopping: endless responses end then.
    pub is_stopping: Arc<dyn Fn() -> bool + Send + Sync>,
    /// The latency that the gateway added to requests, once there was a request.
    pub added_latency: Option<AddedLatency>,
}

/// Whether a request has the admin key, in a header or as a browser's session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdminAccess {
    /// It has the admin key.
    Granted,
    /// It has no admin key, or another one.
    Denied,
    /// No admin key is configured.
    NoKey,
}

/// Provides pages below `/endmark/`. Each page decides by itself whom it answers.
pub trait Pages: fmt::Debug + Send + Sync {
    /// Returns whether a request with these headers has the admin key.
    fn admin_access(&self, headers: &HeaderMap) -> AdminAccess;

    /// Answers a request for a page, including unknown ones.
    fn respond(&self, visit: Visit) -> Answering<'_>;
}
