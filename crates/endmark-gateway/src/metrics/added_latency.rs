//! Computes percentiles of the latency that the gateway adds, for the console. Prometheus gets the same observations
//! as a histogram.

use std::sync::atomic::{AtomicU64, Ordering};

use super::ADDED_LATENCY_BUCKETS;

/// The number of observations in each bucket. The last bucket contains those above all bounds.
#[derive(Default)]
pub(super) struct AddedLatencyCounts([AtomicU64; ADDED_LATENCY_BUCKETS.len() + 1]);

impl AddedLatencyCounts {
    pub(super) fn observe(&self, seconds: f64) {
        let bucket = ADDED_LATENCY_BUCKETS
            .iter()
            .position(|bound| seconds <= *bound)
            .unwrap_or(ADDED_LATENCY_BUCKETS.len());
        if let Some(count) = self.0.get(bucket) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the median and the 95th percentile in milliseconds. Returns `None` before the first request.
    pub(super) fn percentiles_ms(&self) -> Option<(f64, f64)> {
        let counts = self.0.each_ref().map(|count| count.load(Ordering::Relaxed));
        let requests = counts.iter().sum();
        let percentile = |share| percentile(&counts, requests, share) * 1_000.0;
        (requests > 0).then(|| (percentile(0.5), percentile(0.95)))
    }
}

/// Returns a percentile in seconds. It is interpolated within its bucket, as in Prometheus.
#[expect(clippy::cast_precision_loss, reason = "a percentile of 2^53 requests may be a little off")]
fn percentile(counts: &[u64], requests: u64, share: f64) -> f64 {
    let rank = share * requests as f64;
    let (mut below, mut from) = (0.0, 0.0);
    for (count, to) in counts.iter().zip(ADDED_LATENCY_BUCKETS) {
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
        let added = AddedLatencyCounts::default();
        assert_eq!(added.percentiles_ms(), None);
        for _ in 0..90 {
            added.observe(0.000_2);
        }
        for _ in 0..10 {
            added.observe(0.002);
        }
        let (p50, p95) = added.percentiles_ms().unwrap();
        assert!((p50 - 0.183).abs() < 0.001, "{p50}");
        assert!((p95 - 1.75).abs() < 0.001, "{p95}");
    }
}
