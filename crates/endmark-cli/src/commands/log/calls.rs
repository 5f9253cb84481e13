//! The upstream calls of a request, from the ledger.

use std::fmt::Write;

use endmark_failure::to_single_line;
use endmark_store::UsageRow;

use crate::view::paint::{Paint, Painter};

/// Returns the calls as readable text, one per line.
pub(super) fn render_text(calls: &[UsageRow], painter: Painter) -> String {
    let mut text = String::new();
    for call in calls {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", line(call, painter));
    }
    text
}

fn line(call: &UsageRow, painter: Painter) -> String {
    let title = painter.paint(Paint::Strong, &format!("call {}", call.call));
    let status = call.http_status.map_or("no response".to_owned(), |status| format!("status {status}"));
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
    format!("{title}  {}", to_single_line(&rest))
}
