//! The report as text.

use std::fmt::Write as _;

use endmark_console::reports::cuts::CutsReport;

use crate::view::paint::Paint;
use crate::view::table::{Cell, Column, Layout};

/// Maximum number of days in the text; `--json` lists all.
const MAX_DAYS: usize = 30;

const CUT_COLUMNS: [Column<'static>; 5] = [
    Column::number("CUT"),
    Column::text("KIND"),
    Column::text("OUTCOME"),
    Column::text("UPSTREAM"),
    Column::text("MODEL"),
];

const DAY_COLUMNS: [Column<'static>; 5] = [
    Column::fixed("DAY (UTC)"),
    Column::number("REPLIES"),
    Column::number("CUT"),
    Column::text("UPSTREAM"),
    Column::text("MODEL"),
];

/// Adds one line; writing to a string cannot fail.
macro_rules! add {
    ($text:expr, $($format:tt)*) => {{ let _ = writeln!($text, $($format)*); }};
}

pub(super) fn render_text(report: &CutsReport<'_>, layout: Layout) -> String {
    let painter = layout.painter;
    let mut text = String::new();
    if report.requests == 0 {
        add!(text, "No request was recorded in the last {}.", report.since);
        add!(
            text,
            "Connect a client to `endmark serve`; with `resume.mode=warn` the gateway resumes no reply. `--since 30d` covers a longer period."
        );
        return text;
    }
    let strong = |words: &str| painter.paint(Paint::Strong, words);
    let heading =
        format!("Last {}: {} requests, {} replies checked", report.since, report.requests, report.replies);
    add!(text, "{}", strong(&heading));
    let share = share(report.cut, report.replies);
    let paint = if report.cut == 0 { Paint::Good } else { Paint::Doubt };
    add!(text, "{}", painter.paint(paint, &format!("{} were cut{share}", report.cut)));
    if report.interrupted > 0 {
        add!(
            text,
            "{} calls were interrupted: the gateway was stopped or killed meanwhile",
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
                cut.model.to_owned(),
            ]
            .map(Cell::from)
        });
        add!(text, "{}", layout.lines(CUT_COLUMNS, rows).join("\n"));
    }
    add!(text, "");
    let rows = report.days.iter().take(MAX_DAYS).map(|day| {
        [
            day.day.to_owned(),
            day.replies.to_string(),
            day.cut.to_string(),
            day.upstream.to_owned(),
            day.model.to_owned(),
        ]
        .map(Cell::from)
    });
    add!(text, "{}", layout.lines(DAY_COLUMNS, rows).join("\n"));
    if report.days.len() > MAX_DAYS {
        add!(text, "… {} more lines; `--json` lists all", report.days.len() - MAX_DAYS);
    }
    add_costs(&mut text, report);
    text
}

fn add_costs(text: &mut String, report: &CutsReport<'_>) {
    let (spent, would) = (&report.spent, &report.would_cost);
    add!(text, "");
    if spent.calls > 0 {
        let unreported = match spent.calls_unreported {
            0 => String::new(),
            calls => format!("; {calls} of them reported no tokens and are estimated"),
        };
        add!(
            text,
            "Spent on recovery: {} prompt and {} output tokens in {} calls{unreported}. In US dollars: {}.",
            spent.prompt_tokens,
            spent.output_tokens,
            spent.calls,
            spent.dollars
        );
    } else {
        add!(text, "Nothing was spent on recovery.");
    }
    if would.replies > 0 {
        add!(
            text,
            "Resuming the other {} cut replies would have cost about {} prompt and at most {} output tokens.",
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
