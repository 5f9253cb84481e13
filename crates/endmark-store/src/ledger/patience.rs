//! Decides when to pause the slate, because a hanging disk must not delay every request.

use std::time::{Duration, Instant};

/// A write to the slate that takes longer than this was not only a write to memory.
const SLOW_WRITE: Duration = Duration::from_millis(50);

/// Number of consecutive slow writes that indicate a hanging disk. A single slow write may mean that the
/// thread was not scheduled.
const SLOW_IN_A_ROW: u32 = 2;

/// How long the slate is paused after slow writes.
const PAUSE_AFTER_SLOW_WRITES: Duration = Duration::from_secs(2);

/// Observes the duration of writes to the slate.
#[derive(Debug, Default)]
pub(super) struct Patience {
    /// When the last slow write ended.
    slow_until: Option<Instant>,
    slow_in_a_row: u32,
    resting_until: Option<Instant>,
}

impl Patience {
    /// Records a write. Returns whether the slate must be paused.
    ///
    /// Overlapping writes waited for the same reason, so they count once.
    pub(super) fn record_write(&mut self, began: Instant, ended: Instant) -> bool {
        if ended.saturating_duration_since(began) <= SLOW_WRITE {
            self.slow_in_a_row = 0;
            return false;
        }
        let is_another = self.slow_until.is_none_or(|until| began >= until);
        self.slow_until = Some(self.slow_until.map_or(ended, |until| until.max(ended)));
        self.slow_in_a_row = self.slow_in_a_row.saturating_add(u32::from(is_another));
        if self.slow_in_a_row < SLOW_IN_A_ROW || self.rests(ended) {
            return false;
        }
        self.resting_until = Some(ended + PAUSE_AFTER_SLOW_WRITES);
        true
    }

    /// Whether the slate is currently paused.
    pub(super) fn rests(&self, now: Instant) -> bool {
        self.resting_until.is_some_and(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates writes with these start and end times in milliseconds. Returns after which writes the slate was paused.
    fn rests_after(writes: &[(u64, u64)]) -> Vec<u64> {
        let origin = Instant::now();
        let at = |milliseconds| origin + Duration::from_millis(milliseconds);
        let mut patience = Patience::default();
        let mut rests = Vec::new();
        for (began, ended) in writes {
            if patience.record_write(at(*began), at(*ended)) {
                assert!(patience.rests(at(*ended)) && !patience.rests(at(*ended) + PAUSE_AFTER_SLOW_WRITES));
                rests.push(*ended);
            }
        }
        rests
    }

    #[test]
    fn simultaneous_delays_count_as_one() {
        assert!(rests_after(&[(0, 60)]).is_empty());
        assert!(rests_after(&[(0, 90), (10, 91), (20, 92), (91, 160)]).is_empty());
    }

    #[test]
    fn two_delays_in_a_row_indicate_a_slow_disk() {
        assert_eq!(rests_after(&[(0, 60), (60, 120)]), [120]);
        assert_eq!(rests_after(&[(0, 60), (5, 61), (70, 130), (71, 131)]), [130]);
        // As long as the disk hangs, the next try pauses the slate again.
        assert_eq!(rests_after(&[(0, 60), (60, 120), (2_120, 2_190)]), [120, 2_190]);
    }

    #[test]
    fn a_write_in_time_resets_the_count() {
        assert!(rests_after(&[(0, 60), (61, 62), (63, 130), (131, 132)]).is_empty());
        assert_eq!(rests_after(&[(0, 60), (61, 111), (112, 163), (163, 214)]), [214]);
    }
}
