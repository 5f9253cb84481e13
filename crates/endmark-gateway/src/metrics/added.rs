//! The latency that the gateway adds, for a page: percentiles of the same observations that Prometheus reads as a
//! histogram.

use std::sync::atomic::{AtomicU64, Ordering};

use super::ADDED;

/// The latency that the gateway added to requests since it started.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AddedLatency {
    /// The median, in milliseconds.
    pub p50_ms: f64,
    /// The 95th percentile, in milliseconds.
    pub p95_ms: f64,
    /// The number of measured requests.
    pub requests: u64,
}

/// Observations by bucket. The last bucket has those above all bounds.
#[derive(Default)]
pub(super) struct AddedCounts([AtomicU64; ADDED.len() + 1]);

impl AddedCounts {
    pub(super) fn observe(&self, seconds: f64) {
        let bucket = ADDED.iter().position(|bound| seconds <= *bound).unwrap_or(ADDED.len());
        if let Some(count) = self.0.get(bucket) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the percentiles, or `None` before the first request.
    pub(super) fn latency(&self) -> Option<AddedLatency> {
        let counts = self.0.each_ref().map(|count| count.load(Ordering::Relaxed));
        let requests = counts.iter().sum();
        (requests > 0).then(|| AddedLatency {
            p50_ms: percentile(&counts, requests, 0.5) * 1_000.0,
            p95_ms: percentile(&counts, requests, 0.95) * 1_000.0,
            requests,
        })
    }
}

/// Interpolates within a bucket, as Prometheus does.
#[expect(clippy::cast_precision_loss, reason = "a percentile of 2^53 requests may be a little off")]
fn percentile(counts: &[u64], requests: u64, share: f64) -> f64 {
    let rank = share * requests as f64;
    let (mut below, mut from) = (0.0, 0.0);
    for (count, to) in counts.iter().zip(ADDED) {
        let within = *count as f64;
        if within > 0.0 && below + within >= rank {
            return from + (to - from) * (rank - below) / within;
        }
        (below, from) = (below + within, to);
    }
    from
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_interpolated_within_their_bucket() {
        let added = AddedCounts::default();
        assert_eq!(added.latency(), None);
        for _ in 0..90 {
            added.observe(0.000_2);
        }
        for _ in 0..10 {
            added.observe(0.002);
        }
        let latency = added.latency().unwrap();
        assert!((latency.p50_ms - 0.183).abs() < 0.001, "{latency:?}");
        assert!((latency.p95_ms - 1.75).abs() < 0.001, "{latency:?}");
        added.observe(30.0);
        assert_eq!(added.latency().unwrap().requests, 101);
    }
}
