//! Shows usage: tokens and dollars by session, model, key, upstream, day or purpose.

use endmark_store::Store;
use maud::{Markup, html};

use super::display;
use super::layout::{self, PageFrame, lead, number, scroll};
use super::plot::{Column, ColumnPlot, Segment};
use crate::answer::ConsoleError;
use crate::console::Console;
use crate::query::Query;
use crate::reading;
use crate::reports::usage::{Total, UsageKey, UsageReport, UsageSum};

/// The address of the page.
const PAGE_PATH: &str = "/endmark/usage";

/// Maximum number of rows that are shown. The JSON route returns all rows.
const MAX_ROWS: usize = 200;

/// Maximum number of days that are drawn.
const MAX_DAYS: usize = 60;

/// Shows the usage page.
pub(super) async fn page(
    console: &Console,
    store: &Store,
    query: Option<&str>,
) -> Result<Markup, ConsoleError> {
    let query = Query::parse(query, &reading::USAGE_PARAMETERS)?;
    let (report, by) = reading::load_usage(console, store, &query).await?;
    let value = |name: &str| query.text(name).unwrap_or_default();
    let content = html! {
        (lead(&html! { "Usage" }, &html! { p.muted { "Tokens and dollars. Calls of models without a price are in no sum of dollars." } }))
        form.filters method="get" action=(PAGE_PATH) {
            div { label for="by" { "By" } select id="by" name="by" {
                @for key in UsageKey::ALL { option value=(key.name()) selected[key == by] { (key.name()) } }
            } }
            @for (name, label) in [("since", "Since (a day, or 7d)"), ("until", "Until")] {
                div { label for=(name) { (label) } input id=(name) name=(name) value=(value(name)) size="12"; }
            }
            div.do { button.primary { "Show" } }
        }
        @if by == UsageKey::Day && !report.rows.is_empty() { (draw_daily_tokens(&report)) }
        section.card aria-label="Usage" { (table(&report)) }
    };
    let json = format!("/endmark/api/usage?by={}", by.name());
    Ok(PageFrame { current_address: PAGE_PATH, title: "Usage", json: Some(json), ..PageFrame::default() }
        .page(console, &content))
}

/// Plots the tokens of each day as columns.
fn draw_daily_tokens(report: &UsageReport) -> Markup {
    let newest = report.rows.iter().rev().take(MAX_DAYS).rev();
    let columns: Vec<Column> = newest
        .map(|row| {
            let (prompt, completion) = (row.total.prompt_tokens, row.total.completion_tokens);
            Column {
                label: display::weekday(&row.key).into(),
                title: format!(
                    "{}: {} in, {} out, {}",
                    row.key,
                    display::count(prompt),
                    display::count(completion),
                    row.total.dollars_in_words(2)
                ),
                segments: vec![
                    Segment { class: "history", amount: prompt },
                    Segment { class: "output", amount: completion },
                ],
                total: display::money(row.total.nano_usd),
                ..Column::default()
            }
        })
        .collect();
    let columns = if columns.len() > 8 { without_overlapping_labels(columns) } else { columns };
    let label = "Tokens by day. The table below has every number.";
    let plot =
        ColumnPlot { label, columns: &columns, height: 192.0, format_tick: display::tokens, min_axis_end: 0 };
    let legend = html! { ul.legend { li.output { "completion tokens" } li.history { "prompt tokens" } } };
    layout::card("by-day", &html! { "Tokens by day, with their cost" }, &legend, &plot.draw(&html! {}))
}

/// Removes labels that would overlap.
fn without_overlapping_labels(mut columns: Vec<Column>) -> Vec<Column> {
    let every = columns.len().div_ceil(8);
    for (at, column) in columns.iter_mut().rev().enumerate() {
        column.total.clear();
        if !at.is_multiple_of(every) {
            column.label = <[String; 2]>::default();
        }
    }
    columns
}

/// Shows sums as a table.
pub(super) fn table(report: &UsageReport) -> Markup {
    let rows = html! {
        table {
            thead { tr {
                th scope="col" { (report.by) }
                th.num scope="col" { "Calls" }
                th.num scope="col" { "Prompt tokens" }
                th.num scope="col" { "Cached" }
                th.num scope="col" { "Completion tokens" }
                th.num scope="col" { "Reasoning" }
                th.num scope="col" { "Estimated calls" }
                th.num scope="col" { "USD" }
            } }
            tbody { @for row in report.rows.iter().take(MAX_ROWS) { (sum_row(row)) } }
            tfoot { tr { th scope="row" { "Total" } (sum_cells(&report.total)) } }
        }
    };
    html! {
        @if report.this_gateway_alone { p.muted { "These are the calls of this gateway alone." } }
        (scroll(&format!("Calls by {}", report.by), &rows))
        @if report.rows.len() > MAX_ROWS { p.muted.small { "Of " (report.rows.len()) " rows " (MAX_ROWS) " are shown." } }
    }
}

fn sum_row(row: &UsageSum) -> Markup {
    html! { tr {
        @match row.by {
            UsageKey::Session => td { (layout::session(&row.key)) },
            UsageKey::Key => td { (layout::client(&row.key)) },
            UsageKey::Day => td.nowrap { (row.key) },
            _ => td { (display::name(&row.key)) },
        }
        (sum_cells(&row.total))
    } }
}

fn sum_cells(total: &Total) -> Markup {
    html! {
        @for amount in [total.calls, total.prompt_tokens, total.cached_tokens, total.completion_tokens, total.reasoning_tokens, total.estimated_calls] {
            (number(display::count(amount)))
        }
        td.num { (display::cost(total)) }
    }
}
