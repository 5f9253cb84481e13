//! Sessions whose credential changes, such as that of an OAuth client every hour.
//!
//! The gateway cannot know that two tokens belong to one client: only their issuer can verify their content. So a
//! session starts again with each token. Its user would not notice that, so a warning is logged occasionally.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The most sessions that are remembered. If there are more, all are forgotten.
const MAX_SESSIONS: usize = 4_096;

/// For the whole gateway: repeating a warning for each session adds nothing.
const WARNING_INTERVAL: Duration = Duration::from_hours(1);

/// The last credential of each named session.
#[derive(Debug, Default)]
pub(crate) struct Rotations {
    hasher: RandomState,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Hashes of sessions and of credentials.
    credentials: HashMap<u64, u64>,
    warned: Option<Instant>,
}

impl Rotations {
    /// Records the credential of a session with this name, and logs a warning if it has changed.
    pub(crate) fn note(&self, session: &str, credential: &str) {
        if self.is_to_be_warned_of(session, credential, Instant::now()) {
            tracing::warn!(
                "a session came with several credentials: with each it has other budgets, summaries and kept outputs; if the \
                 credentials expire and are renewed, give clients a key of the gateway's own (`endmark keys add NAME`)"
            );
        }
    }

    fn is_to_be_warned_of(&self, session: &str, credential: &str, now: Instant) -> bool {
        let (session, credential) = (self.hasher.hash_one(session), self.hasher.hash_one(credential));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.credentials.len() >= MAX_SESSIONS && !known.credentials.contains_key(&session) {
            known.credentials.clear();
        }
        let before = known.credentials.insert(session, credential);
        let is_due = known.warned.is_none_or(|warned| now.duration_since(warned) >= WARNING_INTERVAL);
        let warns = is_due && before.is_some_and(|before| before != credential);
        if warns {
            known.warned = Some(now);
        }
        warns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_with_another_credential_is_warned_of_once_an_hour() {
        let rotations = Rotations::default();
        let now = Instant::now();
        let notes =
            |session: &str, credential: &str, now| rotations.is_to_be_warned_of(session, credential, now);
        assert!(!notes("a", "1", now));
        assert!(!notes("a", "1", now));
        assert!(!notes("b", "2", now));
        assert!(notes("a", "2", now));
        assert!(!notes("b", "1", now), "once an hour");
        assert!(!notes("a", "2", now + WARNING_INTERVAL), "nothing changed");
        assert!(notes("a", "1", now + WARNING_INTERVAL));
        for session in 0..2 * MAX_SESSIONS {
            notes(&session.to_string(), "1", now);
        }
        assert!(rotations.known.lock().unwrap().credentials.len() <= MAX_SESSIONS);
    }
}
