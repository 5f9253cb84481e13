//! The upstream calls of a request, from the ledger.

use std::fmt::Write;

use endmark_store::UsageRow;
use serde::Serialize;

use crate::terminal::{Paint, Painter, in_one_line};

/// One upstream call, under the names of its columns.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(in crate::commands) struct CallReport<'a> {
    request_id: &'a str,
    call: u32,
    purpose: &'a str,
    upstream: &'a str,
    format: &'a str,
    model: &'a str,
    answered_model: Option<&'a str>,
    streamed: bool,
    started_at: &'a str,
    ended_at: Option<&'a str>,
    http_status: Option<u16>,
    ending: &'a str,
    stop: Option<&'a str>,
    verdict: Option<&'a str>,
    cut_kind: Option<&'a str>,
    prompt_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cached_tokens: Option<u64>,
    reasoning_tokens: Option<u64>,
    total_tokens: Option<u64>,
    sent_bytes: u64,
    received_bytes: Option<u64>,
    first_byte_ms: Option<f64>,
    total_ms: Option<f64>,
}

impl<'a> CallReport<'a> {
    pub(super) fn of(call: &'a UsageRow) -> Self {
        Self {
            request_id: &call.request_id,
            call: call.call,
            purpose: &call.purpose,
            upstream: &call.upstream,
            format: &call.format,
            model: &call.model,
            answered_model: call.answered_model.as_deref(),
            streamed: call.streamed,
            started_at: &call.started_at,
            ended_at: call.ended_at.as_deref(),
            http_status: call.http_status,
            ending: &call.ending,
            stop: call.stop.as_deref(),
            verdict: call.verdict.as_deref(),
            cut_kind: call.cut_kind.as_deref(),
            prompt_tokens: call.tokens.prompt,
            output_tokens: call.tokens.output,
            cached_tokens: call.tokens.cached,
            reasoning_tokens: call.tokens.reasoning,
            total_tokens: call.tokens.total,
            sent_bytes: call.sent_bytes,
            received_bytes: call.received_bytes,
            first_byte_ms: call.first_byte_ms,
            total_ms: call.total_ms,
        }
    }
}

/// The calls for people, a line each.
pub(super) fn text(calls: &[UsageRow], painter: Painter) -> String {
    let mut text = String::new();
    for call in calls {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", line(call, painter));
    }
    text
}

fn line(call: &UsageRow, painter: Painter) -> String {
    let title = painter.paint(Paint::Strong, &format!("call {}", call.call));
    let status = call.http_status.map_or("no answer".to_owned(), |status| format!("status {status}"));
    let stop = call.stop.as_deref().map(|stop| format!(", stopped by {stop}")).unwrap_or_default();
    let judged = match (call.verdict.as_deref(), call.cut_kind.as_deref()) {
        (Some(verdict), Some(kind)) => format!("; {verdict} ({kind})"),
        (Some(verdict), None) => format!("; {verdict}"),
        (None, _) => String::new(),
    };
    let tokens = match (call.tokens.prompt, call.tokens.output) {
        (None, None) => String::new(),
        (prompt, output) => {
            format!("; {} prompt and {} output tokens", prompt.unwrap_or(0), output.unwrap_or(0))
        }
    };
    let took = call.total_ms.map(|took| format!("; {took:.0} ms")).unwrap_or_default();
    let rest = format!(
        "{}, {} at {}: {status}, ended {}{stop}{judged}{tokens}{took}",
        call.purpose, call.model, call.upstream, call.ending
    );
    format!("{title}  {}", in_one_line(&rest))
}
