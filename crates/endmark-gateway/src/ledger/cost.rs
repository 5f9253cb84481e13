//! What the calls of a request did cost.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use endmark_context::Tokens;
use endmark_context::budget::BYTES_PER_TOKEN;
use endmark_wire::reply::Usage;

/// A sum that is only told where nothing is missing in it.
#[derive(Debug, Default)]
pub(super) struct Cost {
    nano_usd: AtomicU64,
    has_any: AtomicBool,
    lacks_some: AtomicBool,
}

impl Cost {
    /// Adds a call that is over; `counted` says whether its provider reported what it took.
    pub(super) fn add(&self, nano_usd: Option<u64>, counted: bool) {
        match nano_usd {
            Some(cost) => {
                self.nano_usd.fetch_add(cost, Ordering::Relaxed);
                self.has_any.store(true, Ordering::Relaxed);
            }
            None if counted => self.lacks_some.store(true, Ordering::Relaxed),
            None => {}
        }
    }

    pub(super) fn nano_usd(&self) -> Option<u64> {
        let is_known = self.has_any.load(Ordering::Relaxed) && !self.lacks_some.load(Ordering::Relaxed);
        is_known.then(|| self.nano_usd.load(Ordering::Relaxed))
    }
}

/// Tokens as they are priced.
pub(super) fn tokens(usage: &Usage) -> Tokens {
    let written_1h = usage.cache_writes_for_an_hour().unwrap_or(0);
    Tokens {
        prompt: usage.prompt,
        cached: usage.cached.unwrap_or(0),
        cache_write: usage.cache_writes().unwrap_or(0).saturating_sub(written_1h),
        cache_write_1h: written_1h,
        completion: usage.completion,
        reasoning: usage.reasoning.unwrap_or(0),
        ..Tokens::default()
    }
}

/// What a call is taken for that may be billed, and whose upstream reported nothing.
pub(super) fn estimate(sent_bytes: u64, answer_bytes: u64) -> Tokens {
    Tokens {
        prompt: sent_bytes.div_ceil(BYTES_PER_TOKEN),
        completion: answer_bytes.div_ceil(BYTES_PER_TOKEN),
        ..Tokens::default()
    }
}
