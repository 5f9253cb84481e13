//! `/endmark/metrics`: its format, read by a strict parser, and the numbers after traffic.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use endmark_gateway::MetricsAccess;
use testkit::{Answer, Fault, ModelFormat, PrefillBehaviour, Request, Script, ScriptedModel, chat_stream};

use crate::support::raw::{answer, parse_refusal};
use crate::support::wire_replies::{End, ReplyPart, Wire};
use crate::support::{Endmark, read_stream, request, stream_request};

const TEXT: &str = "one two three four five six seven eight nine ten";

/// Returns every sample by its name and labels. Panics if a line violates the text format.
fn parse_samples(text: &str) -> BTreeMap<String, f64> {
    let mut samples = BTreeMap::new();
    let mut families = BTreeSet::new();
    let body = text.strip_suffix("# EOF\n").unwrap_or_else(|| panic!("it does not end: {text}"));
    for line in body.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let (word, rest) = comment.split_once(' ').unwrap();
            let (family, said) = rest.split_once(' ').unwrap();
            assert!(matches!(word, "HELP" | "TYPE" | "UNIT") && !said.is_empty(), "{line}");
            if word == "TYPE" {
                assert!(matches!(said, "counter" | "gauge" | "histogram"), "{line}");
                assert!(families.insert(family.to_owned()), "{family} comes twice");
            }
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        let name = series.split('{').next().unwrap();
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{line}");
        assert!(families.iter().any(|family| name.starts_with(family.as_str())), "{line} is of no family");
        if let Some(labels) = series.strip_prefix(name).filter(|labels| !labels.is_empty()) {
            let labels = labels.strip_prefix('{').unwrap().strip_suffix('}').unwrap();
            assert!(labels.split(',').all(|label| label.contains("=\"") && label.ends_with('"')), "{line}");
        }
        assert!(samples.insert(series.to_owned(), value.parse().unwrap()).is_none(), "{line} comes twice");
    }
    samples
}

async fn scrape(endmark: &Endmark) -> BTreeMap<String, f64> {
    let reply = Request::get(endmark.address, "/endmark/metrics").send().await.read().await;
    assert_eq!(reply.status, 200);
    assert!(reply.header("content-type").unwrap().starts_with("application/openmetrics-text"));
    parse_samples(&reply.text())
}

/// Returns the metrics when no request is in progress, because a request is counted after its last byte.
async fn wait_for_settled_metrics(endmark: &Endmark) -> BTreeMap<String, f64> {
    for _ in 0..100 {
        let samples = scrape(endmark).await;
        if samples.get("endmark_requests_open") == Some(&0.0) {
            return samples;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("a request stays open");
}

#[tokio::test]
async fn traffic_is_counted_by_upstream_purpose_and_outcome() {
    let endmark = Endmark::start_resuming(ScriptedModel::new(TEXT).prefill(PrefillBehaviour::Echoes)).await;
    endmark.ask(&request(500)).await;
    endmark.ask(&request(4)).await;
    endmark.ask(&stream_request(500)).await;
    endmark.chat(&request(4)).body("{").send().await.read().await;
    let calls = endmark.calls();
    let samples = wait_for_settled_metrics(&endmark).await;
    let of = |series: &str| samples.get(series).copied();
    let requests = |outcome: &str| {
        of(&format!(
            "endmark_requests_total{{upstream=\"scripted\",format=\"openai_chat\",outcome=\"{outcome}\"}}"
        ))
    };
    assert_eq!((requests("whole"), requests("resumed")), (Some(2.0), Some(1.0)), "{samples:?}");
    let made = |purpose: &str| {
        of(&format!(
            "endmark_upstream_calls_total{{upstream=\"scripted\",purpose=\"{purpose}\",status=\"200\"}}"
        ))
        .unwrap_or(0.0)
    };
    assert_eq!(Some(made("reply")), Some(3.0));
    let all = Some(made("reply") + made("resume"));
    assert_eq!(all, Some(f64::from(u32::try_from(calls).unwrap())));
    assert_eq!(
        of("endmark_cut_replies_total{upstream=\"scripted\",kind=\"limit\",outcome=\"resumed\"}"),
        Some(1.0)
    );
    assert!(of("endmark_tokens_total{upstream=\"scripted\",purpose=\"resume\",kind=\"output\"}") > Some(0.0));
    let generative =
        "gen_ai_operation_name=\"chat\",gen_ai_provider_name=\"openai\",gen_ai_request_model=\"_other\"";
    let duration = "gen_ai_client_operation_duration_seconds_count";
    assert_eq!(of(&format!("{duration}{{{generative},error_type=\"\"}}")), all, "{samples:?}");
    let tokens = |kind: &str| {
        let of_kind = format!("{generative},gen_ai_token_type=\"{kind}\"");
        of(&format!("gen_ai_client_token_usage_sum{{{of_kind}}}")).unwrap()
    };
    let reported = |kind: &str| -> f64 {
        let of_kind = |series: &&String| {
            series.starts_with("endmark_tokens_total") && series.contains(&format!("kind=\"{kind}\""))
        };
        samples.keys().filter(of_kind).map(|series| samples[series]).sum()
    };
    assert!(tokens("input") > 0.0 && tokens("output") > 0.0);
    assert_eq!((tokens("input"), tokens("output")), (reported("prompt"), reported("output")));
    assert_eq!(of("endmark_refusals_total{kind=\"endmark_bad_request\"}"), Some(1.0));
    assert_eq!(of("endmark_request_duration_seconds_count{upstream=\"scripted\"}"), Some(3.0));
    assert_eq!(of("endmark_added_seconds_count"), Some(2.0), "only of requests with one call");
    assert_eq!(of("endmark_upstream_down{upstream=\"scripted\"}"), Some(0.0));
    assert_eq!((of("endmark_store_degraded"), of("endmark_store_rows_lost_total")), (Some(0.0), Some(0.0)));
}

/// Covers errors before a request is admitted, before it is routed, and later.
#[tokio::test]
async fn every_gateway_error_is_counted_once() {
    let page = Script::new().default_answer(Answer::new(200, "text/html", "<html>"));
    let endmark = Endmark::start_with(page, |settings| settings.limits.body_bytes = 10_000).await;
    let chat = || endmark.chat(&request(50));
    for (request, status) in [
        (chat().header("origin", "https://evil.example"), 403),
        (chat().header("upgrade", "websocket"), 501),
        (Request::get(endmark.address, "/endmark/nowhere"), 404),
        (chat().body("{"), 400),
        (chat().body("x".repeat(20_000)), 413),
        (chat(), 502),
    ] {
        assert_eq!(request.send().await.read().await.status, status);
    }
    let samples = wait_for_settled_metrics(&endmark).await;
    let counted: BTreeMap<&str, f64> = samples
        .iter()
        .filter_map(|(series, count)| {
            Some((series.strip_prefix("endmark_refusals_total{kind=\"endmark_")?, *count))
        })
        .collect();
    let kinds = [
        "bad_request\"}",
        "body_too_large\"}",
        "no_upgrade\"}",
        "not_found\"}",
        "origin_not_allowed\"}",
        "upstream_not_an_api\"}",
    ];
    assert_eq!(counted, kinds.map(|kind| (kind, 1.0)).into());
}

/// Covers clients whose bytes are not a valid request.
#[tokio::test]
async fn requests_refused_at_the_edge_are_counted() {
    let script = Script::new().default_answer(Answer::new(200, "text/plain", "reached"));
    let endmark = Endmark::start_with(script, |settings| {
        settings.limits.header = Duration::from_millis(200);
    })
    .await;
    let head = |lines: &str| format!("GET /v1/files HTTP/1.1\r\nhost: localhost\r\n{lines}\r\n");
    for (bytes, status) in [
        (head("transfer-encoding : chunked\r\n"), 400),
        (head(&format!("x: {}\r\n", "x".repeat(200_000))), 431),
        ("GET / HTTP/1.1\r\n".to_owned(), 408),
    ] {
        assert_eq!(parse_refusal(&answer(endmark.address, bytes).await).0, status);
    }
    let samples = wait_for_settled_metrics(&endmark).await;
    for kind in ["bad_request", "head_too_large", "head_late"] {
        let series = format!("endmark_refusals_total{{kind=\"endmark_{kind}\"}}");
        assert_eq!(samples.get(&series), Some(&1.0), "{series}: {samples:?}");
    }
}

#[tokio::test]
async fn a_stream_with_a_late_continuation_is_not_counted_as_whole() {
    let script = Script::new()
        .then(Answer::sse(chat_stream(&["one two", " three"], "length")))
        .default_answer(Answer::json(200, &serde_json::json!({})).wait(Duration::from_secs(30)));
    let endmark = Endmark::start_with(script, |settings| {
        settings.limits.total = Duration::from_secs(1);
        settings.resume.mode = endmark_gateway::ResumeMode::On;
    })
    .await;
    assert!(read_stream(&endmark.ask(&stream_request(500)).await).error.is_some());
    let samples = wait_for_settled_metrics(&endmark).await;
    let of = |outcome: &str| {
        let series = "endmark_requests_total{upstream=\"scripted\",format=\"openai_chat\",outcome=";
        samples.get(&format!("{series}\"{outcome}\"}}")).copied()
    };
    assert_eq!((of("cut"), of("whole")), (Some(1.0), None), "{samples:?}");
}

#[tokio::test]
async fn names_from_requests_never_become_labels() {
    let endmark = Endmark::start(ScriptedModel::new(TEXT)).await;
    for number in 0..30 {
        let mut body = request(500);
        body["model"] = format!("outside-{number}").into();
        endmark.ask(&body).await;
        body["model"] = format!("claude-sonnet-5-202601{number:02}").into();
        endmark.ask(&body).await;
    }
    let samples = scrape(&endmark).await;
    assert!(samples.keys().all(|series| !series.contains("outside")));
    let answers = |model: &str| {
        let series = |name: &&String| {
            name.starts_with("gen_ai_client_operation_duration_seconds_count") && name.contains(model)
        };
        samples.keys().filter(series).map(|name| samples[name]).collect::<Vec<_>>()
    };
    assert_eq!(answers("gen_ai_request_model=\"_other\""), [30.0]);
    assert_eq!(answers("gen_ai_request_model=\"claude-sonnet-5\""), [30.0], "a model by the table's name");
    assert!(samples.len() < 200, "{}", samples.len());
}

/// If a stream breaks off after the end of its reply, the gateway adds the format's end event and counts
/// this.
#[tokio::test]
async fn a_lost_end_of_stream_is_counted() {
    let chat = Wire::Chat.frames(&[ReplyPart::Text(TEXT)], Some(End::Turn));
    let messages = Wire::Other(ModelFormat::Messages).frames(&[ReplyPart::Text(TEXT)], Some(End::Turn));
    for (wire, frames) in [(Wire::Chat, chat), (Wire::Other(ModelFormat::Messages), messages)] {
        let all = frames.concat();
        let without_last = all.len() - frames.last().unwrap().len();
        for (fault, lost) in [(Some(Fault::Reset), Some(1.0)), (None, None)] {
            let answer = Answer::sse(frames.clone());
            let answer = fault.map_or(answer.clone(), |fault| answer.fault(without_last, fault));
            let endmark = Endmark::start(Script::new().then(answer)).await;
            let reply = wire.ask_raw(&endmark, &wire.request(true), true).await;
            assert_eq!(reply.text(), all, "{wire:?}");
            let samples = wait_for_settled_metrics(&endmark).await;
            let counted = samples.get("endmark_lost_ends_total{upstream=\"scripted\"}").copied();
            assert_eq!(counted, lost, "{wire:?}: {samples:?}");
        }
    }
}

#[tokio::test]
async fn metrics_need_the_admin_key_if_keys_are_required() {
    let admin = Some(MetricsAccess::Admin);
    for (require_key, access, status) in
        [(false, None, 200), (true, None, 403), (true, Some(MetricsAccess::Open), 200), (false, admin, 403)]
    {
        let endmark = Endmark::start_with(Script::new(), |settings| {
            (settings.listener.require_key, settings.metrics.access) = (require_key, access);
        })
        .await;
        for key in ["", "Bearer", "Bearer em_sk_1", "Basic Og=="] {
            let request = Request::get(endmark.address, "/endmark/metrics").header("authorization", key);
            let reply = request.send().await.read().await;
            // An unknown gateway key always gets 401.
            let expected = if key.contains("em_sk_") { 401 } else { status };
            assert_eq!(reply.status, expected, "{require_key} {access:?} {key:?}: {}", reply.text());
            assert!(expected != 403 || reply.text().contains("set `admin_key`"), "{}", reply.text());
            assert_eq!(reply.header("cache-control"), Some("no-store"));
        }
        for path in ["/endmark/healthz", "/endmark/readyz"] {
            let reply = Request::get(endmark.address, path).send().await.read().await;
            assert_eq!(reply.status, 200, "{path}");
        }
        let kept = format!("/endmark/api/outputs/h{}", "0".repeat(32));
        let reply = Request::get(endmark.address, &kept).send().await.read().await;
        assert_eq!(reply.status, if require_key { 401 } else { 404 }, "{}", reply.text());
    }
}
