//! What the gateway remembers about condensed conversations, in memory.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use endmark_context::compact::{CompactionMode, CompactionProgress};
use endmark_store::StoreError;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::ShapingContext;
use super::summaries::HashedTurns;
use super::tokens::TokenCounts;

/// Maximum number of conversations for which a failed attempt is remembered.
const MAX_FAILED_CONVERSATIONS: usize = 1_000;
/// Maximum number of models for which a rejection because of length is remembered.
const MAX_LEARNED_LIMITS: usize = 1_000;
/// Pause before another query to a store that did not respond.
const STORE_RETRY_DELAY: Duration = Duration::from_secs(30);

/// Data that is remembered in memory, in addition to the store.
#[derive(Default)]
pub(super) struct SummaryMemory {
    /// The tokens of a request that was rejected as too long, by upstream and model.
    learned_limits: Mutex<HashMap<(String, String), u64>>,
    /// The size of the smallest condensed request in bytes, after it was read from the store.
    smallest_condensed_bytes: OnceCell<AtomicU64>,
    /// When the store last failed to return that size. Prevents all requests from waiting for a store that hangs.
    last_store_timeout: Mutex<Option<Instant>>,
    pub(super) token_counts: TokenCounts,
    /// The results of the newest failed attempts, by owner and first turn.
    failed_attempts: Mutex<HashMap<(String, String), FailedAttempts>>,
}

/// The failed attempts to condense a conversation, and its number of turns at the last attempt.
#[derive(Debug, Clone)]
struct FailedAttempts {
    turns: usize,
    sha256: String,
    progress: HashMap<CompactionMode, CompactionProgress>,
}

impl SummaryMemory {
    /// Returns the size of the smallest condensed request in bytes. The store contains no summary of smaller requests.
    pub(super) async fn smallest_condensed_bytes(&self, subject: &ShapingContext<'_>) -> u64 {
        let lately = |at: &Instant| at.elapsed() < STORE_RETRY_DELAY;
        let last_timeout = || self.last_store_timeout.lock().unwrap_or_else(PoisonError::into_inner);
        if self.smallest_condensed_bytes.get().is_none() && last_timeout().as_ref().is_some_and(lately) {
            return u64::MAX;
        }
        let known = self.smallest_condensed_bytes.get_or_try_init(|| async {
            let least = subject.wait_for_store(subject.store.smallest_condensed_request_bytes()).await?;
            Ok::<_, StoreError>(AtomicU64::new(least.unwrap_or(u64::MAX)))
        });
        match known.await {
            Ok(least) => least.load(Ordering::Relaxed),
            Err(error) => {
                tracing::error!(request = subject.id, %error, "the store cannot be read: earlier summaries are unknown");
                *last_timeout() = Some(Instant::now());
                u64::MAX
            }
        }
    }

    /// Updates the size of the smallest condensed request.
    pub(super) fn note_condensed_bytes(&self, bytes: u64) {
        if let Some(least) = self.smallest_condensed_bytes.get() {
            least.fetch_min(bytes, Ordering::Relaxed);
        }
    }

    /// Returns the results of earlier attempts, when this conversation was shorter.
    pub(super) fn progress(
        &self,
        subject: &ShapingContext<'_>,
        known: &HashedTurns,
    ) -> HashMap<CompactionMode, CompactionProgress> {
        let failed_attempts = self.failed_attempts.lock().unwrap_or_else(PoisonError::into_inner);
        let found =
            known.digests.first().and_then(|first| failed_attempts.get(&(subject.owner(), first.clone())));
        // Another conversation may begin with the same turn.
        let same = |found: &&FailedAttempts| known.digests.get(found.turns - 1) == Some(&found.sha256);
        found.filter(same).map(|found| found.progress.clone()).unwrap_or_default()
    }

    pub(super) fn note_progress(
        &self,
        subject: &ShapingContext<'_>,
        known: &HashedTurns,
        progress: HashMap<CompactionMode, CompactionProgress>,
    ) {
        let (Some(first), Some(last)) = (known.digests.first(), known.digests.last()) else { return };
        let key = (subject.owner(), first.clone());
        let mut in_vain = self.failed_attempts.lock().unwrap_or_else(PoisonError::into_inner);
        if progress.values().all(|progress| *progress == CompactionProgress::default()) {
            in_vain.remove(&key);
            return;
        }
        // A forgotten attempt is merely repeated, at most three times.
        if in_vain.len() >= MAX_FAILED_CONVERSATIONS {
            in_vain.clear();
        }
        in_vain.insert(key, FailedAttempts { turns: known.turns, sha256: last.clone(), progress });
    }

    pub(super) fn note_rejection(&self, upstream: &str, model: &str, tokens: u64) {
        let mut refused = self.lock();
        if refused.len() < MAX_LEARNED_LIMITS {
            let least = refused.entry((upstream.to_owned(), model.to_owned())).or_insert(tokens);
            *least = tokens.min(*least);
        }
    }

    pub(super) fn learned_limit(&self, upstream: &str, model: &str) -> Option<u64> {
        self.lock().get(&(upstream.to_owned(), model.to_owned())).copied()
    }

    pub(super) fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(String, String), u64>> {
        // The map is consistent after each operation, so a panic elsewhere cannot have corrupted it.
        self.learned_limits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
