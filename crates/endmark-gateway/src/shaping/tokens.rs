//! Estimates the tokens of texts for a model. A message that occurs in all requests of a conversation is counted once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use endmark_context::compact::{PartSizes, TokenCounter, turn_sizes};
use endmark_context::count::Family;
use endmark_wire::conversation::Dialogue;
use ring::digest::{Context, SHA256};

use crate::work;

/// Maximum entries in each of the cache's two generations, which together use about 20 MB. When the newer one
/// is full, the older one is dropped.
const MAX_CACHED_ENTRIES: usize = 1 << 16;

/// Returns the function that counts tokens for this model.
pub(super) fn token_counter(model: &str) -> TokenCounter {
    match Family::of(model) {
        Family::O200k | Family::LaterOpenAi => |text| count_tokens(Family::O200k, text),
        Family::Cl100k => |text| count_tokens(Family::Cl100k, text),
        Family::Claude3 => |text| count_tokens(Family::Claude3, text),
        Family::Claude47 => |text| count_tokens(Family::Claude47, text),
        Family::Claude48 => |text| count_tokens(Family::Claude48, text),
        Family::Gemini => |text| count_tokens(Family::Gemini, text),
        Family::Other => |text| count_tokens(Family::Other, text),
    }
}

/// Counts the tokens of a text, unless the caller has stopped waiting.
fn count_tokens(family: Family, text: &str) -> u64 {
    family.count(text, work::is_stopped).tokens
}

/// Earlier counts, by the hash of the text and the model family.
#[derive(Default)]
pub(super) struct TokenCounts(Mutex<TokenCache>);

#[derive(Default)]
struct TokenCache {
    newer: HashMap<[u8; 32], Arc<[u64]>>,
    older: HashMap<[u8; 32], Arc<[u64]>>,
    /// How many entries the newer generation contains.
    size: usize,
}

impl TokenCounts {
    /// Returns the sizes of a conversation's messages in this format. Only new messages are counted.
    pub(super) fn sizes(
        &self,
        dialogue: &Dialogue<'_>,
        format: &str,
        family: Family,
        count: TokenCounter,
    ) -> PartSizes {
        PartSizes::from_known(dialogue.conversation(), |position, turn| {
            // Cache marks move from message to message, and do not change the size.
            let item = dialogue.item_without_cache_markers(position).unwrap_or_default();
            self.get_or_count([format, family.name(), &item], || turn_sizes(turn, count))
        })
    }

    /// Returns the tokens of a text.
    pub(super) fn tokens(&self, text: &str, family: Family, count: TokenCounter) -> u64 {
        self.get_or_count(["", family.name(), text], || [count(text)].into()).iter().sum()
    }

    fn get_or_count(&self, name: [&str; 3], count: impl FnOnce() -> Arc<[u64]>) -> Arc<[u64]> {
        let mut context = Context::new(&SHA256);
        for part in name {
            context.update(&part.len().to_le_bytes());
            context.update(part.as_bytes());
        }
        let mut key = [0; 32];
        key.copy_from_slice(context.finish().as_ref());
        if let Some(sizes) = self.lock().get(&key) {
            return sizes;
        }
        let sizes = count();
        // Do not remember the result of a count that was aborted.
        if !work::is_stopped() {
            self.lock().remember(key, Arc::clone(&sizes));
        }
        sizes
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, TokenCache> {
        // The memory is consistent after each operation, so a panic elsewhere cannot have corrupted it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TokenCache {
    fn get(&mut self, key: &[u8; 32]) -> Option<Arc<[u64]>> {
        if let Some(sizes) = self.newer.get(key) {
            return Some(Arc::clone(sizes));
        }
        let sizes = Arc::clone(self.older.get(key)?);
        self.remember(*key, Arc::clone(&sizes));
        Some(sizes)
    }

    fn remember(&mut self, key: [u8; 32], sizes: Arc<[u64]>) {
        if self.size >= MAX_CACHED_ENTRIES {
            self.older = std::mem::take(&mut self.newer);
            self.size = 0;
        }
        self.size += 1 + sizes.len();
        self.newer.insert(key, sizes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_texts_stay_cached_and_others_are_evicted() {
        let counted = TokenCounts::default();
        let counts = |text: &str| {
            let mut is_counted = false;
            counted.get_or_count(["", "", text], || {
                is_counted = true;
                [1].into()
            });
            is_counted
        };
        assert!(counts("often") && counts("once"));
        for number in 0..MAX_CACHED_ENTRIES {
            counts(&number.to_string());
            if number % 1_000 == 0 {
                assert!(!counts("often"), "{number}");
            }
        }
        assert!(counts("once"));
        let remembered = counted.lock();
        assert!(remembered.newer.len() + remembered.older.len() <= MAX_CACHED_ENTRIES + 2);
    }
}
