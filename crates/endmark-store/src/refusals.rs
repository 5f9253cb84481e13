//! The newest requests that a gateway refused before any upstream call. They cost nothing, and a flood of
//! them must not fill the store, so they are kept only in memory.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::scrub::UntrustedRecord;

/// Maximum number of kept requests; older ones are dropped.
const MAX_REFUSALS: usize = 1_000;

/// Maximum number of bytes of a text from the client.
const MAX_REFUSAL_TEXT_BYTES: usize = 500;

/// A request that the gateway refused.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RefusedRequest {
    /// Time of the refusal, in the format of [`utc`](crate::utc).
    pub refused_at: String,
    /// The id of the request.
    pub request_id: String,
    /// The HTTP status of the response.
    pub status: u16,
    /// The `type` of the error.
    pub kind: String,
    /// The message of the error.
    pub message: String,
    /// The model that the request names; empty if unknown.
    pub model: String,
    /// The upstream that the request is for; empty if unknown.
    pub upstream: String,
    /// The client's key or the hash of its credential; `None` without a credential.
    pub credential: Option<String>,
    /// Hash of the session; empty if unknown.
    pub session: String,
}

impl UntrustedRecord for RefusedRequest {
    fn untrusted_texts(&mut self) -> Vec<&mut String> {
        let Self {
            refused_at: _,
            request_id: _,
            status: _,
            kind: _,
            message,
            model,
            upstream: _,
            credential: _,
            session: _,
        } = self;
        vec![message, model]
    }
}

/// The newest refused requests, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<VecDeque<RefusedRequest>>);

impl Refusals {
    /// Adds a request. Long texts are shortened.
    pub(crate) fn add(&self, mut refused: RefusedRequest) {
        for text in refused.untrusted_texts() {
            text.truncate(text.floor_char_boundary(MAX_REFUSAL_TEXT_BYTES));
            text.shrink_to_fit();
        }
        let mut all = self.lock();
        if all.len() == MAX_REFUSALS {
            all.pop_front();
        }
        all.push_back(refused);
    }

    /// Returns all requests, oldest first.
    pub(crate) fn all_refusals(&self) -> Vec<RefusedRequest> {
        self.lock().iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<RefusedRequest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Store, StoreLocation};

    struct RemovesCanary;

    impl crate::Scrub for RemovesCanary {
        fn scrub<'a>(&self, text: &'a str) -> std::borrow::Cow<'a, str> {
            text.replace("canary", "***").into()
        }
    }

    #[test]
    fn recent_refusals_are_kept_within_bounds_without_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&StoreLocation::sqlite(folder.path().join("a.db"))).unwrap();
        let recorder = store.recorder(RemovesCanary);
        for number in 0..MAX_REFUSALS + 7 {
            let model = format!("canary{}", "ä".repeat(MAX_REFUSAL_TEXT_BYTES));
            recorder.note_refusal(RefusedRequest {
                request_id: number.to_string(),
                model,
                ..RefusedRequest::default()
            });
        }
        let kept = store.refusals();
        assert_eq!((kept.len(), kept[0].request_id.as_str()), (MAX_REFUSALS, "7"));
        assert!(
            kept.iter().all(|one| one.model.starts_with("***ä") && one.model.len() <= MAX_REFUSAL_TEXT_BYTES)
        );
    }
}
