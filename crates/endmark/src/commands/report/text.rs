//! The report for people.

use std::fmt::Write as _;

use endmark_console::reports::cuts::Report;

use crate::terminal::{Paint, Painter, in_lines};

/// Days that are shown; `--json` has all.
const MAX_DAYS: usize = 30;

/// Adds one line; writing to a string cannot fail.
macro_rules! add {
    ($text:expr, $($format:tt)*) => {{ let _ = writeln!($text, $($format)*); }};
}

pub(super) fn text(report: &Report<'_>, painter: Painter) -> String {
    let mut text = String::new();
    if report.requests == 0 {
        add!(text, "No request was recorded in the last {}.", report.since);
        add!(
            text,
            "Point a client at `endmark serve`; with `resume.mode=warn` it only watches. `--since 30d` looks further back."
        );
        return text;
    }
    let strong = |words: &str| painter.paint(Paint::Strong, words);
    let heading =
        format!("Last {}: {} requests, {} replies looked at", report.since, report.requests, report.replies);
    add!(text, "{}", strong(&heading));
    let share = share(report.cut, report.replies);
    let paint = if report.cut == 0 { Paint::Good } else { Paint::Doubt };
    add!(text, "{}", painter.paint(paint, &format!("{} were cut{share}", report.cut)));
    if report.interrupted > 0 {
        add!(
            text,
            "{} calls were interrupted: the gateway was stopped or killed under them",
            report.interrupted
        );
    }
    if !report.cuts.is_empty() {
        add!(text, "");
        let rows = report.cuts.iter().map(|cut| {
            [
                cut.replies.to_string(),
                cut.kind.to_owned(),
                cut.outcome.to_owned(),
                cut.upstream.to_owned(),
                in_lines(cut.model).replace('\n', " "),
            ]
        });
        table(&mut text, ["CUT", "KIND", "OUTCOME", "UPSTREAM", "MODEL"], rows, painter);
    }
    add!(text, "");
    let rows = report.days.iter().take(MAX_DAYS).map(|day| {
        [
            day.day.to_owned(),
            day.replies.to_string(),
            day.cut.to_string(),
            day.upstream.to_owned(),
            in_lines(day.model).replace('\n', " "),
        ]
    });
    table(&mut text, ["DAY (UTC)", "REPLIES", "CUT", "UPSTREAM", "MODEL"], rows, painter);
    if report.days.len() > MAX_DAYS {
        add!(text, "… {} more lines; `--json` has all", report.days.len() - MAX_DAYS);
    }
    costs(&mut text, report);
    text
}

fn costs(text: &mut String, report: &Report<'_>) {
    let (spent, would) = (&report.spent, &report.would_cost);
    add!(text, "");
    if spent.calls > 0 {
        let unreported = match spent.calls_unreported {
            0 => String::new(),
            calls => format!("; {calls} of them reported no tokens"),
        };
        add!(
            text,
            "Spent on recovery: {} prompt and {} output tokens in {} calls{unreported}.",
            spent.prompt_tokens,
            spent.output_tokens,
            spent.calls
        );
    } else {
        add!(text, "Nothing was spent on recovery.");
    }
    if would.replies > 0 {
        add!(
            text,
            "Resuming the {} replies that were left cut would have cost about {} prompt and at most {} output tokens.",
            would.replies,
            would.prompt_tokens,
            would.output_tokens_at_most
        );
        add!(text, "(Estimated: {}.)", would.method);
    }
}

fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return String::new();
    }
    let permille = u128::from(part) * 1_000 / u128::from(whole);
    format!(" ({}.{} %)", permille / 10, permille % 10)
}

/// Rows under their headings, each cell but the last filled up to its column's width.
fn table(text: &mut String, headings: [&str; 5], rows: impl Iterator<Item = [String; 5]>, painter: Painter) {
    let rows: Vec<[String; 5]> = rows.collect();
    let widths: Vec<usize> = headings
        .iter()
        .enumerate()
        .map(|(column, heading)| {
            let widest = rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
            widest.max(heading.chars().count())
        })
        .collect();
    let line = |cells: &[String; 5]| {
        let filled = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        filled.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    add!(text, "{}", painter.paint(Paint::Strong, &line(&headings.map(str::to_owned))));
    for row in &rows {
        add!(text, "{}", line(row));
    }
}
