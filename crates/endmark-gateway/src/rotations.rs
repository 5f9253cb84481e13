//! Warns if the credential of a session changes. An OAuth client, for example, changes it every hour.
//!
//! Only the issuer can verify that two tokens belong to the same client. Therefore the gateway starts a new session
//! for each new token. A user would not notice this, so the gateway logs an occasional warning.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of remembered sessions. When it is exceeded, all are forgotten.
const MAX_SESSIONS: usize = 4_096;

/// Minimum time between two warnings of the gateway. More warnings would add no information.
const WARNING_INTERVAL: Duration = Duration::from_hours(1);

/// Remembers the last credential of each named session.
#[derive(Debug, Default)]
pub(crate) struct Rotations {
    hasher: RandomState,
    last_credentials: Mutex<RotationState>,
}

#[derive(Debug, Default)]
struct RotationState {
    /// Maps the hash of a session to the hash of its last credential.
    credentials: HashMap<u64, u64>,
    warned_at: Option<Instant>,
}

impl Rotations {
    /// Records the credential of a named session, and logs a warning if it changed.
    pub(crate) fn note(&self, session: &str, credential: &str) {
        if self.needs_warning(session, credential, Instant::now()) {
            tracing::warn!(
                "a session came with several credentials: with each it has other budgets, summaries and kept outputs; if the \
                 credentials expire and are renewed, give clients a key of the gateway's own (`endmark keys add NAME`)"
            );
        }
    }

    fn needs_warning(&self, session: &str, credential: &str, now: Instant) -> bool {
        let (session, credential) = (self.hasher.hash_one(session), self.hasher.hash_one(credential));
        let mut known = self.last_credentials.lock().unwrap_or_else(PoisonError::into_inner);
        if known.credentials.len() >= MAX_SESSIONS && !known.credentials.contains_key(&session) {
            known.credentials.clear();
        }
        let before = known.credentials.insert(session, credential);
        let is_due = known.warned_at.is_none_or(|warned| now.duration_since(warned) >= WARNING_INTERVAL);
        let warns = is_due && before.is_some_and(|before| before != credential);
        if warns {
            known.warned_at = Some(now);
        }
        warns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_session_credential_causes_one_warning_an_hour() {
        let rotations = Rotations::default();
        let now = Instant::now();
        let notes = |session: &str, credential: &str, now| rotations.needs_warning(session, credential, now);
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
        assert!(rotations.last_credentials.lock().unwrap().credentials.len() <= MAX_SESSIONS);
    }
}
