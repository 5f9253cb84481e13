use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::Ending;

const POLICY: RetryPolicy = RetryPolicy { max_retries: 2, max_wait: Duration::from_secs(10) };

fn refusal(status: u16) -> AttemptFailure {
    AttemptFailure::Refused { status, retry_after: None, should_retry: None }
}

#[test]
fn a_transient_failure_is_retried_before_the_fallback() {
    for failure in [
        AttemptFailure::Unreachable,
        AttemptFailure::EmptyStream(Ending::Dropped),
        refusal(429),
        refusal(500),
        refusal(503),
        refusal(529),
    ] {
        for has_fallback in [true, false] {
            let mut delivery = Delivery::new(POLICY, has_fallback);
            for _ in 0..POLICY.max_retries {
                assert!(matches!(delivery.next_after(failure, 7), NextStep::Retry(_)), "{failure:?}");
            }
            let last = if has_fallback { NextStep::FallBack } else { NextStep::GiveUp };
            assert_eq!(delivery.next_after(failure, 7), last, "{failure:?}");
        }
    }
}

#[test]
fn a_lasting_failure_goes_to_the_fallback_at_once() {
    for failure in [
        AttemptFailure::Silent,
        AttemptFailure::Unreadable,
        AttemptFailure::TooLong,
        AttemptFailure::QuotaExhausted,
    ] {
        assert_eq!(Delivery::new(POLICY, true).next_after(failure, 0), NextStep::FallBack);
        assert_eq!(Delivery::new(POLICY, false).next_after(failure, 0), NextStep::GiveUp);
    }
}

#[test]
fn a_final_refusal_is_passed_on() {
    for status in [400, 401, 403, 404, 409, 413, 422, 501] {
        assert_eq!(Delivery::new(POLICY, true).next_after(refusal(status), 0), NextStep::GiveUp, "{status}");
    }
}

#[test]
fn retry_after_is_honoured_unless_it_is_too_long() {
    let stated_wait = |seconds| AttemptFailure::Refused {
        status: 429,
        retry_after: Some(Duration::from_secs(seconds)),
        should_retry: None,
    };
    assert_eq!(
        Delivery::new(POLICY, true).next_after(stated_wait(10), 0),
        NextStep::Retry(Duration::from_secs(10))
    );
    assert_eq!(Delivery::new(POLICY, true).next_after(stated_wait(11), 0), NextStep::FallBack);
    assert_eq!(Delivery::new(POLICY, false).next_after(stated_wait(11), 0), NextStep::GiveUp);
}

#[test]
fn an_open_circuit_probes_once_in_a_cooldown_and_closes_on_success() {
    let mut circuit = Circuit::new(Duration::from_secs(5));
    let at = Duration::from_secs;
    (0..FAILURES_BEFORE_OPEN - 1).for_each(|_| circuit.note_failure(at(0)));
    assert_eq!(circuit.admit(at(0)), Admission::Serve);
    circuit.note_failure(at(0));
    let admitted: Vec<Admission> = (0..16).map(|second| circuit.admit(at(second))).collect();
    assert_eq!(admitted.iter().filter(|admission| **admission == Admission::Probe).count(), 3);
    assert_eq!(admitted.iter().filter(|admission| **admission == Admission::Serve).count(), 0);
    circuit.note_success();
    assert!(!circuit.is_open());
    circuit.note_failure(at(20));
    assert_eq!(circuit.admit(at(20)), Admission::Serve, "what was before a success does not count");
}

#[test]
fn the_ending_decides_which_upstream_completes_the_reply() {
    assert!(!UpstreamSwitch::default().should_switch(Ending::Clean));
    assert!(!UpstreamSwitch::default().should_switch(Ending::Dropped));
    assert!(UpstreamSwitch::default().should_switch(Ending::Stalled));
    assert!(UpstreamSwitch::default().should_switch(Ending::UpstreamError));
}

proptest! {
    #[test]
    fn a_pause_is_randomised_around_its_mean(tries in 1_u32..40, random: u32) {
        let middle = (FIRST_PAUSE * 2_u32.pow((tries - 1).min(10))).min(LONGEST_PAUSE);
        let pause = pause(tries, random);
        prop_assert!(middle / 2 <= pause && pause <= middle / 2 * 3, "{pause:?}");
    }

    #[test]
    fn no_retry_precedes_its_retry_after(seconds in 0_u64..100_000, random: u32) {
        let stated_wait = Duration::from_secs(seconds);
        let wait = requested_wait(stated_wait, random);
        prop_assert!(stated_wait <= wait && wait <= stated_wait + stated_wait / 10, "{wait:?}");
    }

    #[test]
    fn attempts_are_always_bounded(
        failures in prop::collection::vec((0_u16..600, prop::option::of(0_u64..100)), 1..50),
        max_retries in 0_u32..5,
        has_fallback: bool,
    ) {
        let mut delivery = Delivery::new(RetryPolicy { max_retries, ..POLICY }, has_fallback);
        let mut again = 0;
        for (status, seconds) in failures {
            let failure = match status {
                0 => AttemptFailure::Unreachable,
                1 => AttemptFailure::Silent,
                status => AttemptFailure::Refused { status, retry_after: seconds.map(Duration::from_secs), should_retry: None },
            };
            match delivery.next_after(failure, 9) {
                NextStep::Retry(wait) => {
                    again += 1;
                    prop_assert!(wait <= POLICY.max_wait + POLICY.max_wait / 10);
                }
                NextStep::FallBack => prop_assert!(has_fallback),
                NextStep::GiveUp => prop_assert!(!has_fallback || !failure.has_remedy()),
            }
        }
        prop_assert!(again <= max_retries);
    }

    /// Retries never exceed the share of the requests plus the minimum, within each window and in total.
    #[test]
    fn many_retries_stay_within_the_budget(
        traffic in prop::collection::vec((0_u64..40, 0_u64..60), 1..60),
        share in 0_u32..100,
        floor in 0_u32..5,
    ) {
        let mut budget = RetryBudget::new(share, floor);
        let mut counted: Vec<(u64, u64)> = Vec::new();
        for (second, (requests, wanted)) in traffic.iter().enumerate() {
            let now = Duration::from_secs(second as u64) + Duration::from_millis(3);
            (0..*requests).for_each(|_| budget.note_request(now));
            let granted = (0..*wanted).filter(|_| budget.try_retry(now)).count() as u64;
            counted.push((*requests, granted));
        }
        let within = |seconds: &[(u64, u64)], windows: u64| {
            let requests: u64 = seconds.iter().map(|(requests, _)| requests).sum();
            let retries: u64 = seconds.iter().map(|(_, retries)| retries).sum();
            retries <= requests * u64::from(share) / 100 + u64::from(floor) * BUDGET_WINDOW_SECONDS * windows
        };
        for (last, _) in counted.iter().enumerate().filter(|(_, (_, granted))| *granted > 0) {
            prop_assert!(within(&counted[last.saturating_sub(9)..=last], 1), "{counted:?}");
        }
        let windows = (counted.len() as u64).div_ceil(BUDGET_WINDOW_SECONDS);
        prop_assert!(within(&counted, windows), "{counted:?}");
    }

    /// The minimum number of retries per second is always available.
    #[test]
    fn the_minimum_retry_rate_is_always_granted(floor in 1_u32..5, second in 0_u64..1_000) {
        let mut budget = RetryBudget::new(0, floor);
        let granted = (0..1_000).filter(|_| budget.try_retry(Duration::from_secs(second))).count();
        prop_assert_eq!(granted as u64, u64::from(floor) * BUDGET_WINDOW_SECONDS);
    }
}

#[test]
fn an_explicit_retry_instruction_overrides_the_status() {
    let failure = |status, should_retry| AttemptFailure::Refused { status, retry_after: None, should_retry };
    let next = |status, word, has_fallback| {
        let policy = RetryPolicy { max_retries: 1, max_wait: Duration::from_secs(10) };
        Delivery::new(policy, has_fallback).next_after(failure(status, word), 0)
    };
    assert!(matches!(next(409, Some(true), false), NextStep::Retry(_)));
    assert!(matches!(next(503, None, false), NextStep::Retry(_)));
    assert_eq!(next(503, Some(false), false), NextStep::GiveUp);
    assert_eq!(next(503, Some(false), true), NextStep::FallBack);
    assert_eq!(next(400, Some(false), true), NextStep::GiveUp);
}
