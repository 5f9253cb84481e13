//! Runs as lines of a table.

use endmark_runs::AgentRun;

use crate::terminal::{Paint, Painter, in_one_line};

/// How many signs the bar has.
const BAR: u64 = 10;
/// Where a run's own words begin.
const HEAD: &str = "run               state         try    context             tokens  reason";

/// The head, and a line for each run; each is at most `width` signs wide, where a width is given.
pub(in crate::commands) fn lines(runs: &[AgentRun], painter: Painter, width: Option<usize>) -> Vec<String> {
    let mut lines = vec![painter.paint(Paint::Faint, &clipped(HEAD, width))];
    lines.extend(runs.iter().map(|run| line(run, painter, width)));
    lines
}

fn line(run: &AgentRun, painter: Painter, width: Option<usize>) -> String {
    let paint = match run.state.as_str() {
        "succeeded" => Paint::Good,
        "failed" | "released" => Paint::Bad,
        "running" => Paint::Strong,
        _ => Paint::Doubt,
    };
    let risk = if run.context_exhaustion_risk { "!" } else { " " };
    let before = format!("{:<17} ", in_one_line(&run.id));
    let state = format!("{:<13}", run.state);
    let attempt = format!("{}/{}", run.attempt, run.max_attempts);
    let reason = run.reason.as_deref().unwrap_or("-");
    let called = run.name.as_ref().map(|name| format!(" ({})", in_one_line(name))).unwrap_or_default();
    let after = format!(
        " {attempt:<6} {}{risk} {:>8}  {:<18}  {}{called}",
        bar(run),
        run.token_usage.total,
        reason,
        in_one_line(&run.artifact)
    );
    // Colours have no width, so the parts are clipped before they are painted.
    let whole = clipped(&format!("{before}{state}{after}"), width);
    match whole.split_once(&state) {
        Some((before, after)) => format!("{before}{}{after}", painter.paint(paint, &state)),
        None => whole,
    }
}

/// The largest call against the model's limit, as a bar and a share: also readable without a picture.
fn bar(run: &AgentRun) -> String {
    let (Some(largest), Some(limit)) = (run.largest_call_tokens, run.limit_tokens.filter(|limit| *limit > 0))
    else {
        return format!("{:<17}", "unknown");
    };
    let percent = largest.saturating_mul(100) / limit;
    let full = (largest.saturating_mul(BAR) / limit).min(BAR);
    let sign = |count: u64, sign: &str| sign.repeat(usize::try_from(count).unwrap_or_default());
    format!("[{}{}] {percent:>3}%", sign(full, "#"), sign(BAR - full, "."))
}

fn clipped(text: &str, width: Option<usize>) -> String {
    match width {
        Some(width) => text.chars().take(width).collect(),
        None => text.to_owned(),
    }
}
