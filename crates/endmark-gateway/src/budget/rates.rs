//! Rate limits of keys (CX-7): the number of parallel requests, and the response headers for all rate limits.

use std::time::Duration;

use endmark_context::Moment;
use endmark_context::budget::{
    BudgetRule, Period, RemainingRate, Scope, Unit, Zone, rate_period, rate_retry_seconds,
};
use endmark_store::{Hold, HoldOutcome, Recorder};
use endmark_wire::format::WireFormat;
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::time::Instant;

use super::estimate::PromptEstimate;
use super::{BudgetHold, Budgets, NotAdmitted, PlannedCall};

/// How long a request waits until another request of its key ends. A client that sends requests one after another may
/// read the end of a response before its slot is free.
const SLOT_TIMEOUT: Duration = Duration::from_secs(1);

/// Pause between two attempts to get a slot.
const SLOT_RETRY_PAUSE: Duration = Duration::from_millis(20);

/// Converts a rate limit to a rule.
pub(super) fn rate_rule(unit: Unit, limit: u64) -> BudgetRule {
    BudgetRule { scope: Scope::Rate, unit, period: rate_period(unit), limit }
}

impl Budgets {
    /// Reserves a slot for one of the parallel requests of a key. Returns `None` if they are unlimited.
    /// Dropping the result frees the slot. The slot is held as call 0, which has no row.
    pub(crate) async fn reserve_slot(
        &self,
        recorder: &Recorder,
        planned: &PlannedCall<'_>,
    ) -> Result<Option<BudgetHold>, NotAdmitted> {
        let Some(limit) = self.rate_limits(planned.limits).parallel else { return Ok(None) };
        let request_id = planned.request_id.to_owned();
        let claim = self.claim(&rate_rule(Unit::Parallel, limit), planned, self.now(), (1, 1));
        let hold = Hold { request_id: request_id.clone(), call: 0, claims: vec![claim], may_close: false };
        // Dropping this value also releases a hold that the store makes only after the timeout.
        let reserved = BudgetHold::new(recorder.clone(), request_id, 0, PromptEstimate::default());
        let since = Instant::now();
        loop {
            match self.hold(recorder, hold.clone()).await? {
                Some(HoldOutcome::Exhausted(used_up)) if since.elapsed() > SLOT_TIMEOUT => {
                    return Err(NotAdmitted::from_used_up(
                        used_up,
                        planned.limits,
                        &self.settings.zone,
                        self.now(),
                    ));
                }
                Some(HoldOutcome::Exhausted(_)) => tokio::time::sleep(SLOT_RETRY_PAUSE).await,
                _ => return Ok(Some(reserved)),
            }
        }
    }

    /// Writes rate limits as response headers, unless the upstream reports a smaller remaining amount.
    pub(crate) fn write_rate_headers(
        &self,
        rates: &[RemainingRate],
        format: &dyn WireFormat,
        headers: &mut HeaderMap,
    ) {
        for rate in rates {
            write_headers(rate, self.now(), format, headers);
        }
    }
}

/// Writes one rate limit with the header names of the client's provider.
pub(super) fn write_headers(
    rate: &RemainingRate,
    at: Moment,
    format: &dyn WireFormat,
    headers: &mut HeaderMap,
) {
    let dialect = format.provider().rate_headers;
    let [limit, remaining, reset] = match rate.unit {
        Unit::Requests => dialect.requests,
        Unit::Tokens => dialect.tokens,
        Unit::NanoUsd | Unit::Parallel => return,
    };
    let upstream_remaining = headers.get(remaining).and_then(|left| left.to_str().ok()?.trim().parse().ok());
    if upstream_remaining.is_some_and(|left: u64| left <= rate.remaining) {
        return;
    }
    let seconds = rate_retry_seconds(rate.unit, at);
    let reset_at = if dialect.reset_is_timestamp {
        let end = Moment::from_unix_seconds(at.unix_seconds() + seconds);
        format!("{}:00Z", Period::Minute.window(end, &Zone::default()))
    } else {
        format!("{seconds}s")
    };
    let values =
        [(limit, rate.limit.to_string()), (remaining, rate.remaining.to_string()), (reset, reset_at)];
    for (name, value) in values {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
}
