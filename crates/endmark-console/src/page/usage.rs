//! Usage: tokens and dollars by session, model, key, upstream, day or purpose.

use endmark_store::Store;
use maud::{Markup, html};

use super::layout::{self, hash, number};
use crate::answer::Failure;
use crate::console::Console;
use crate::query::Query;
use crate::reading;
use crate::reports::usage::{Report, Row, Total, UsageKey};

/// The address of the page.
const PLACE: &str = "/endmark/usage";

/// Rows that are shown; the JSON route has all.
const MAX_ROWS: usize = 200;

/// The sums.
pub(super) async fn page(console: &Console, store: &Store, query: Option<&str>) -> Result<Markup, Failure> {
    let query = Query::parse(query, &reading::USAGE)?;
    let (report, by) = reading::usage(console, store, &query).await?;
    let value = |name: &str| query.text(name).unwrap_or_default();
    let content = html! {
        form.filters method="get" action=(PLACE) {
            div { label for="by" { "By" } select id="by" name="by" {
                @for key in UsageKey::ALL { option value=(key.name()) selected[key == by] { (key.name()) } }
            } }
            @for (name, label) in [("since", "Since (a day, or 7d)"), ("until", "Until")] {
                div { label for=(name) { (label) } input id=(name) name=(name) value=(value(name)) size="12"; }
            }
            button { "Show" }
        }
        (table(&report, by))
        p.faint { "Prices as of " (report.prices_as_of) ". Calls of models without a price are in no sum of dollars." }
    };
    Ok(layout::page(console, PLACE, "Usage", &content))
}

/// Sums as a table.
pub(super) fn table(report: &Report, by: UsageKey) -> Markup {
    let days = by == UsageKey::Day;
    html! {
        div.wide tabindex="0" { table data-plot[days] {
            caption { "Calls by " (report.by) }
            thead { tr {
                th scope="col" { (report.by) }
                th.number scope="col" { "Calls" }
                th.number scope="col" data-series[days] { "Prompt tokens" }
                th.number scope="col" { "Cached" }
                th.number scope="col" data-series[days] { "Completion tokens" }
                th.number scope="col" { "Reasoning" }
                th.number scope="col" { "Estimated calls" }
                th.number scope="col" { "USD" }
            } }
            tbody { @for row in report.rows.iter().take(MAX_ROWS) { (line(row)) } }
            tfoot { tr { th scope="row" { "Total" } (sums(&report.total)) } }
        } }
        @if report.rows.len() > MAX_ROWS { p.notice { "Of " (report.rows.len()) " rows " (MAX_ROWS) " are shown." } }
    }
}

fn line(row: &Row) -> Markup {
    html! { tr {
        @match row.by {
            UsageKey::Session => td { (layout::session(&row.key)) },
            UsageKey::Key => td { (hash(&row.key)) },
            UsageKey::Day => td data-value=(row.key) { (row.key) },
            _ => td { bdi { (row.key) } },
        }
        (sums(&row.total))
    } }
}

fn sums(total: &Total) -> Markup {
    html! {
        (number(total.calls)) (number(total.prompt_tokens)) (number(total.cached_tokens)) (number(total.completion_tokens))
        (number(total.reasoning_tokens)) (number(total.estimated_calls))
        (number(total.dollars_in_words(9)))
    }
}
