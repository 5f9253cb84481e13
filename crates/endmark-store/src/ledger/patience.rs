//! Decides when to pause the slate, because a hanging disk must not delay every request.

use std::time::{Duration, Instant};

/// A longer write to the slate did not only write to memory.
const SLOW_WRITE_DURATION: Duration = Duration::from_millis(50);

/// Number of consecutive slow writes that indicate a hanging disk. A single slow write may only mean that the
/// thread was not scheduled.
const SLOW_WRITES_BEFORE_PAUSE: u32 = 2;

/// How long the slate is paused after slow writes.
const PAUSE_AFTER_SLOW_WRITES: Duration = Duration::from_secs(2);

/// Observes the duration of writes to the slate.
#[derive(Debug, Default)]
pub(super) struct SlowWriteDetector {
    /// The time at which the last slow write ended.
    slow_until: Option<Instant>,
    consecutive_slow_writes: u32,
    paused_until: Option<Instant>,
}

impl SlowWriteDetector {
    /// Records a write. Returns whether the slate must be paused.
    ///
    /// Overlapping slow writes have the same cause, so they count once.
    pub(super) fn record_write(&mut self, began: Instant, ended: Instant) -> bool {
        if ended.saturating_duration_since(began) <= SLOW_WRITE_DURATION {
            self.consecutive_slow_writes = 0;
            return false;
        }
        let is_another = self.slow_until.is_none_or(|until| began >= until);
        self.slow_until = Some(self.slow_until.map_or(ended, |until| until.max(ended)));
        self.consecutive_slow_writes = self.consecutive_slow_writes.saturating_add(u32::from(is_another));
        if self.consecutive_slow_writes < SLOW_WRITES_BEFORE_PAUSE || self.is_paused(ended) {
            return false;
        }
        self.paused_until = Some(ended + PAUSE_AFTER_SLOW_WRITES);
        true
    }

    /// Whether the slate is currently paused.
    pub(super) fn is_paused(&self, now: Instant) -> bool {
        self.paused_until.is_some_and(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates writes with these start and end times in milliseconds. Returns the end times of the writes
    /// after which the slate was paused.
    fn pauses_after(writes: &[(u64, u64)]) -> Vec<u64> {
        let origin = Instant::now();
        let at = |milliseconds| origin + Duration::from_millis(milliseconds);
        let mut patience = SlowWriteDetector::default();
        let mut rests = Vec::new();
        for (began, ended) in writes {
            if patience.record_write(at(*began), at(*ended)) {
                assert!(
                    patience.is_paused(at(*ended))
                        && !patience.is_paused(at(*ended) + PAUSE_AFTER_SLOW_WRITES)
                );
                rests.push(*ended);
            }
        }
        rests
    }

    #[test]
    fn overlapping_slow_writes_count_once() {
        assert!(pauses_after(&[(0, 60)]).is_empty());
        assert!(pauses_after(&[(0, 90), (10, 91), (20, 92), (91, 160)]).is_empty());
    }

    #[test]
    fn two_consecutive_slow_writes_pause_the_slate() {
        assert_eq!(pauses_after(&[(0, 60), (60, 120)]), [120]);
        assert_eq!(pauses_after(&[(0, 60), (5, 61), (70, 130), (71, 131)]), [130]);
        // While the disk hangs, each retry pauses the slate again.
        assert_eq!(pauses_after(&[(0, 60), (60, 120), (2_120, 2_190)]), [120, 2_190]);
    }

    #[test]
    fn a_fast_write_resets_the_count() {
        assert!(pauses_after(&[(0, 60), (61, 62), (63, 130), (131, 132)]).is_empty());
        assert_eq!(pauses_after(&[(0, 60), (61, 111), (112, 163), (163, 214)]), [214]);
    }
}
