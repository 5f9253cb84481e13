//! Loads a vocabulary when it is needed, and drops it when it is no longer used, because it needs megabytes
//! of memory.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Loads and holds one vocabulary.
pub(super) struct VocabularyCache<T> {
    read: fn() -> T,
    vocabulary: RwLock<Option<Arc<T>>>,
    /// Whether the vocabulary was used since the last call of [`drop_unused`](Self::drop_unused).
    is_used: AtomicBool,
}

impl<T> VocabularyCache<T> {
    pub(super) const fn new(read: fn() -> T) -> Self {
        Self { read, vocabulary: RwLock::new(None), is_used: AtomicBool::new(false) }
    }

    /// Returns the vocabulary. Loads it if it is not in memory.
    pub(super) fn get(&self) -> Arc<T> {
        self.is_used.store(true, Ordering::Relaxed);
        // The vocabulary is only replaced as a whole, so a panic in another thread cannot have corrupted it.
        if let Some(held) = &*self.vocabulary.read().unwrap_or_else(PoisonError::into_inner) {
            return Arc::clone(held);
        }
        let mut held = self.vocabulary.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(held.get_or_insert_with(|| Arc::new((self.read)())))
    }

    /// Whether the vocabulary is in memory.
    pub(super) fn is_loaded(&self) -> bool {
        self.vocabulary.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Drops the vocabulary if it was not used since the last call.
    pub(super) fn drop_unused(&self) {
        if !self.is_used.swap(false, Ordering::Relaxed) {
            *self.vocabulary.write().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vocabulary_in_regular_use_stays_in_memory() {
        let shelf = VocabularyCache::new(|| 7);
        assert!(!shelf.is_loaded());
        assert_eq!(*shelf.get(), 7);
        shelf.drop_unused();
        assert!(shelf.is_loaded());
        let used = shelf.get();
        shelf.drop_unused();
        assert!(shelf.is_loaded());
        shelf.drop_unused();
        assert!(!shelf.is_loaded());
        // A count in progress keeps its vocabulary.
        assert_eq!(*used, 7);
        assert_eq!(*shelf.get(), 7);
    }
}
