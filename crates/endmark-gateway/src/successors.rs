//! Maps the id of a continued response to the id of the response that completed it. The client of a stream
//! knows only the first id, but the server keeps the complete reply under the second.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of remembered responses. The oldest are forgotten.
const MAX_RESPONSES: usize = 8_192;

/// Maximum length of a remembered id in bytes. Real ids are shorter.
const MAX_ID_BYTES: usize = 256;

/// A response id with its owner. The id has no meaning for other clients.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct OwnedResponseId {
    upstream: String,
    /// The hash of the credential in the request, if any.
    credential: Option<String>,
    id: String,
}

/// The responses whose complete reply has another id.
#[derive(Debug, Default)]
pub(crate) struct Successors {
    state: Mutex<SuccessorState>,
}

#[derive(Debug, Default)]
struct SuccessorState {
    successor_ids: HashMap<OwnedResponseId, String>,
    /// All entries, oldest first.
    order: VecDeque<OwnedResponseId>,
}

impl Successors {
    /// Records that this response is complete under another id.
    pub(crate) fn note(&self, upstream: &str, credential: Option<&str>, id: &str, last: &str) {
        if id == last || id.len() > MAX_ID_BYTES || last.len() > MAX_ID_BYTES {
            return;
        }
        let owned = OwnedResponseId::new(upstream, credential, id);
        let mut known = self.lock();
        if known.successor_ids.insert(owned.clone(), last.to_owned()).is_none() {
            known.order.push_back(owned);
        }
        if known.order.len() > MAX_RESPONSES
            && let Some(oldest) = known.order.pop_front()
        {
            known.successor_ids.remove(&oldest);
        }
    }

    /// Returns the id under which the upstream has the complete response, if it differs.
    pub(crate) fn find(&self, upstream: &str, credential: Option<&str>, id: &str) -> Option<String> {
        let known = self.lock();
        known.successor_ids.get(&OwnedResponseId::new(upstream, credential, id)).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, SuccessorState> {
        // Both values are consistent after each operation, so a panic elsewhere cannot have corrupted them.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OwnedResponseId {
    fn new(upstream: &str, credential: Option<&str>, id: &str) -> Self {
        Self { upstream: upstream.to_owned(), credential: credential.map(str::to_owned), id: id.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_visible_only_to_its_owner() {
        let successors = Successors::default();
        successors.note("one", Some("me"), "a", "b");
        assert_eq!(successors.find("one", Some("me"), "a").as_deref(), Some("b"));
        for (upstream, credential, id) in [
            ("two", Some("me"), "a"),
            ("one", Some("you"), "a"),
            ("one", None, "a"),
            ("one", Some("me"), "b"),
        ] {
            assert_eq!(successors.find(upstream, credential, id), None);
        }
    }

    #[test]
    fn the_oldest_ids_are_dropped() {
        let successors = Successors::default();
        for number in 0..=MAX_RESPONSES {
            successors.note("one", None, &format!("a{number}"), "b");
        }
        assert_eq!(successors.find("one", None, "a0"), None);
        assert!(successors.find("one", None, "a1").is_some());
        successors.note("one", None, &"x".repeat(MAX_ID_BYTES + 1), "b");
        assert_eq!(successors.find("one", None, &"x".repeat(MAX_ID_BYTES + 1)), None);
    }
}
