//! Runs the public failover exam against the gateway, in every format.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "an exam shows its marks, and fails by panicking"
)]

use std::time::Duration;

use endmark_wire::anthropic_messages::ANTHROPIC;
use endmark_wire::gemini::GEMINI;
use endmark_wire::openai_chat::OPENAI;
use testkit::Upstream;
use testkit::exam::{
    self, ExamFormat, FALLBACK_KEY, FALLBACK_MODEL, FaultTiming, Provider, Scenario, ScenarioResult, Verdict,
};

use crate::support::Endmark;

async fn run_scenario(scenario: Scenario, format: ExamFormat) -> ScenarioResult {
    let pace = FaultTiming::SHORT_WAITS;
    let fallback = Upstream::start(Provider::fallback(format, scenario.fallback_rejects_prefill)).await;
    let provider = Provider::new(format, scenario.failing, pace);
    let endmark = Endmark::with_fallback(provider, &fallback, (FALLBACK_KEY, FALLBACK_MODEL), |settings| {
        for upstream in &mut settings.upstreams {
            upstream.provider = provider_for(format);
        }
        settings.limits.first_token = Duration::from_secs(1);
        settings.limits.idle = Duration::from_secs(1);
        settings.retry.cooldown = Duration::from_secs(1);
    })
    .await;
    exam::run_scenario(&scenario, format, endmark.address, (&endmark.upstream, &fallback), pace).await
}

/// The provider whose formats the upstream supports.
fn provider_for(format: ExamFormat) -> &'static endmark_wire::provider::Provider {
    match format {
        ExamFormat::Chat | ExamFormat::Responses => &OPENAI,
        ExamFormat::Messages => &ANTHROPIC,
        ExamFormat::Gemini => &GEMINI,
    }
}

async fn assert_every_fault_passes(format: ExamFormat) {
    let sittings: Vec<_> =
        exam::SCENARIOS.map(|scenario| tokio::spawn(run_scenario(scenario, format))).into();
    let mut marks = Vec::new();
    for sitting in sittings {
        marks.push(sitting.await.unwrap());
    }
    for mark in &marks {
        println!("{mark}");
    }
    let failed: Vec<&str> =
        marks.iter().filter(|mark| mark.verdict != Verdict::Pass).map(|mark| mark.id).collect();
    assert!(failed.is_empty(), "not passed in {}: {failed:?}", format.name());
}

#[tokio::test(flavor = "multi_thread")]
async fn chat_completions_survive_every_fault_of_the_exam() {
    assert_every_fault_passes(ExamFormat::Chat).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_survive_every_fault_of_the_exam() {
    assert_every_fault_passes(ExamFormat::Responses).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_survive_every_fault_of_the_exam() {
    assert_every_fault_passes(ExamFormat::Messages).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gemini_survives_every_fault_of_the_exam() {
    assert_every_fault_passes(ExamFormat::Gemini).await;
}

/// Shows that the exam detects failures in every format.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_gateway_every_fault_of_the_exam_fails() {
    let pace = FaultTiming::SHORT_WAITS;
    for format in ExamFormat::ALL {
        for id in ["S03", "S08", "S10", "S14", "S16"] {
            let scenario = exam::SCENARIOS.into_iter().find(|scenario| scenario.id == id).unwrap();
            let provider = Upstream::start(Provider::new(format, scenario.failing, pace)).await;
            let fallback = Upstream::start(Provider::fallback(format, false)).await;
            let marks =
                exam::run_scenario(&scenario, format, provider.address(), (&provider, &fallback), pace).await;
            assert_ne!(marks.verdict, Verdict::Pass, "{marks}");
        }
    }
}
