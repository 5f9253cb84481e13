//! The console as pages of the gateway: neither of the two knows the other.

use endmark_console::{Console, ConsoleSettings};
use endmark_gateway::{AdminAccess, Answering, Pages, Visit};
use http::HeaderMap;

/// A console that a gateway shows.
#[derive(Debug)]
pub(crate) struct ConsolePages(Console);

impl ConsolePages {
    /// With these settings.
    pub(crate) fn new(settings: ConsoleSettings) -> Self {
        Self(Console::new(settings))
    }
}

impl Pages for ConsolePages {
    fn admin_access(&self, headers: &HeaderMap) -> AdminAccess {
        match self.0.has_admin_key(headers) {
            Some(true) => AdminAccess::Granted,
            Some(false) => AdminAccess::Denied,
            None => AdminAccess::NoKey,
        }
    }

    fn respond(&self, visit: Visit) -> Answering<'_> {
        let Visit { head, body, store, is_stopping, added_latency } = visit;
        let added_ms = added_latency.map(|added| (added.p50_ms, added.p95_ms));
        Box::pin(self.0.respond(endmark_console::Visit { head, body, store, is_stopping, added_ms }))
    }
}
