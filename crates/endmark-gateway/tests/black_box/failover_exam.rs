//! The public failover exam, taken by the gateway in every format.

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
use testkit::exam::{self, FALLBACK_KEY, FALLBACK_MODEL, Format, Marks, Pace, Provider, Scenario, Verdict};

use crate::support::Endmark;

async fn sit(scenario: Scenario, format: Format) -> Marks {
    let pace = Pace::SHORT_WAITS;
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
    exam::sit(&scenario, format, endmark.address, (&endmark.upstream, &fallback), pace).await
}

/// The provider whose formats the upstream supports.
fn provider_for(format: Format) -> &'static endmark_wire::provider::Provider {
    match format {
        Format::Chat | Format::Responses => &OPENAI,
        Format::Messages => &ANTHROPIC,
        Format::Gemini => &GEMINI,
    }
}

async fn pass_every_fault(format: Format) {
    let sittings: Vec<_> = exam::SCENARIOS.map(|scenario| tokio::spawn(sit(scenario, format))).into();
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
    pass_every_fault(Format::Chat).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_survive_every_fault_of_the_exam() {
    pass_every_fault(Format::Responses).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_survive_every_fault_of_the_exam() {
    pass_every_fault(Format::Messages).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gemini_survives_every_fault_of_the_exam() {
    pass_every_fault(Format::Gemini).await;
}

/// That the exam can be failed, in any format.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_gateway_every_fault_of_the_exam_fails() {
    let pace = Pace::SHORT_WAITS;
    for format in Format::ALL {
        for id in ["S03", "S08", "S10", "S14", "S16"] {
            let scenario = exam::SCENARIOS.into_iter().find(|scenario| scenario.id == id).unwrap();
            let provider = Upstream::start(Provider::new(format, scenario.failing, pace)).await;
            let fallback = Upstream::start(Provider::fallback(format, false)).await;
            let marks = exam::sit(&scenario, format, provider.address(), (&provider, &fallback), pace).await;
            assert_ne!(marks.verdict, Verdict::Pass, "{marks}");
        }
    }
}
