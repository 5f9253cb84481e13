//! The public failover exam, taken by the gateway.

mod support;

use std::time::Duration;

use support::Endmark;
use testkit::Upstream;
use testkit::exam::{self, FALLBACK_KEY, FALLBACK_MODEL, Marks, Pace, Provider, Scenario, Verdict};

async fn sit(scenario: Scenario) -> Marks {
    let pace = Pace::QUICK;
    let fallback = Upstream::start(Provider::fallback(scenario.fallback_rejects_prefill)).await;
    let provider = Provider::new(scenario.failing, pace);
    let endmark = Endmark::with_fallback(provider, &fallback, (FALLBACK_KEY, FALLBACK_MODEL), |settings| {
        settings.limits.first_token = Duration::from_secs(1);
        settings.limits.idle = Duration::from_secs(1);
        settings.retry.cooldown = Duration::from_secs(1);
    })
    .await;
    exam::sit(&scenario, endmark.address, (&endmark.upstream, &fallback), pace).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_of_the_exam_is_passed() {
    let sittings: Vec<_> = exam::SCENARIOS.map(|scenario| tokio::spawn(sit(scenario))).into();
    let mut marks = Vec::new();
    for sitting in sittings {
        marks.push(sitting.await.unwrap());
    }
    for mark in &marks {
        println!("{mark}");
    }
    let failed: Vec<&str> =
        marks.iter().filter(|mark| mark.verdict != Verdict::Pass).map(|mark| mark.id).collect();
    assert!(failed.is_empty(), "not passed: {failed:?}");
}
