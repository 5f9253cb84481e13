//! Recoveries: the list with its filters, and one in full.

use endmark_store::{LogRow, Store};
use maud::{Markup, html};

use super::ROWS;
use super::layout::{self, encoded, excerpt, further, moment, number, word};
use crate::answer::Failure;
use crate::console::Console;
use crate::query::Query;
use crate::reading;
use crate::reports::calls::CallReport;
use crate::reports::recoveries::{self, PieceReport, Row};

/// The address of the list.
const PLACE: &str = "/endmark/recoveries";

/// What can be filtered by: the parameter, and what it is called.
const FILTERS: [(&str, &str); 5] = [
    ("model", "Model"),
    ("provider", "Upstream"),
    ("cut_kind", "Kind of cut"),
    ("task", "Task"),
    ("request", "Request"),
];

/// The list, the newest first.
pub(super) async fn list(console: &Console, store: &Store, query: Option<&str>) -> Result<Markup, Failure> {
    let query = Query::parse(query, &reading::RECOVERIES)?;
    let (rows, next) = reading::recoveries(store, &query, ROWS).await?;
    let value = |name: &str| query.text(name).unwrap_or_default();
    let mut given: Vec<(&str, &str)> = FILTERS.iter().map(|(name, _)| (*name, value(name))).collect();
    given.push(("status", value("status")));
    let content = html! {
        form.filters method="get" action=(PLACE) {
            div {
                label for="status" { "Status" }
                select id="status" name="status" {
                    @for (word, name) in [("", "any"), ("resolved", "resolved"), ("exhausted", "exhausted")] {
                        option value=(word) selected[value("status") == word] { (name) }
                    }
                }
            }
            @for (name, label) in FILTERS {
                div { label for=(name) { (label) } input id=(name) name=(name) value=(value(name)) size="14"; }
            }
            button { "Filter" }
            a href=(PLACE) { "All" }
        }
        div id="rows" data-seconds=[value("before").is_empty().then_some("3")] {
            (table(&rows))
            (further(PLACE, &given, "before", next.as_deref()))
        }
    };
    Ok(layout::page(console, PLACE, "Recoveries", &content))
}

/// Recoveries as a table.
pub(super) fn table(rows: &[LogRow]) -> Markup {
    if rows.is_empty() {
        return html! { p { "There is no such recovery: no reply was cut." } };
    }
    html! {
        div.wide tabindex="0" { table {
            thead { tr {
                th scope="col" { "Id" } th scope="col" { "Time" } th scope="col" { "Outcome" } th scope="col" { "Cut by" }
                th scope="col" { "Model" } th.number scope="col" { "Calls" } th.number scope="col" { "Extra tokens" }
                th scope="col" { "Request" }
            } }
            tbody { @for row in rows { tr {
                td { a href={ (PLACE) "/" (row.id) } { (row.id) } }
                td { (moment(&row.timestamp)) }
                td { (word(&row.outcome)) }
                td { bdi { (row.cut_kind) } }
                td { bdi { (row.model) } }
                (number(row.resume_attempts))
                (number(row.extra_prompt_tokens + row.extra_output_tokens))
                td { a href={ (PLACE) "/" (encoded(&row.request_id)) } { bdi.hash { (row.request_id) } } }
            } } }
        } }
    }
}

/// One recovery, or all of a request.
pub(super) async fn one(
    console: &Console,
    store: &Store,
    query: Option<&str>,
    id: &str,
) -> Result<Markup, Failure> {
    Query::parse(query, &[])?;
    let (found, calls) = reading::recovery(store, id).await?;
    let report = recoveries::in_full(found.as_ref(), &calls);
    let content = html! {
        @for row in &report.rows { (in_full(row)) }
        @if report.rows.is_empty() { p { "No part of its reply was cut." } }
        @if let Some(calls) = &report.calls { h2 { "Upstream calls" } (calls_table(calls)) }
    };
    let title =
        if report.rows.len() == 1 { format!("Recovery {}", report.rows[0].id) } else { "Request".to_owned() };
    Ok(layout::page(console, PLACE, &title, &content))
}

fn in_full(row: &Row<'_>) -> Markup {
    html! {
        section aria-labelledby={ "recovery-" (row.id) } {
            h2 id={ "recovery-" (row.id) } { "Recovery " (row.id) ": " (word(row.outcome)) }
            dl {
                dt { "Request" } dd { bdi.hash { (row.request_id) } }
                dt { "Time" } dd { (moment(row.timestamp)) }
                dt { "Task" } dd { bdi { (row.task_id) } ", turn " (row.turn_number) }
                dt { "Model" } dd { bdi { (row.model) } " at " bdi { (row.provider) } }
                dt { "Part" } dd { bdi { (row.slot) } }
                dt { "Cut by" } dd {
                    bdi { (row.cut_kind) }
                    @if let Some(length) = row.initial_chunk_length { ", after " (length) " bytes" }
                    @if let Some(index) = row.truncation_index { ", settled up to byte " (index) }
                }
                dt { "Verdict" } dd { (word(row.final_status)) ": " bdi { (row.reason) } }
                dt { "Attempts" } dd { (row.resume_attempts) }
                dt { "Cost" } dd { (row.extra_prompt_tokens) " prompt tokens and " (row.extra_output_tokens) " output tokens more" }
                @if let Some(not_asked) = &row.not_asked {
                    dt { "Not asked" } dd { (not_asked.because) "; to change that, " (not_asked.remedy) }
                }
            }
            @for piece in row.pieces.iter().flatten() { (self::piece(piece)) }
        }
    }
}

fn piece(piece: &PieceReport<'_>) -> Markup {
    html! {
        @if let Some(seam) = &piece.seam {
            p { mark { "Seam at byte " (seam.at) }
                @if let Some(style) = seam.style { ": " bdi { (style) } }
                ", " (seam.dropped_bytes) " bytes left out"
                @if let Some(confidence) = seam.confidence { ", confidence " (format!("{confidence:.2}")) }
            }
        }
        h3 { "Piece " (piece.ordinal) ": " bdi { (piece.strategy) } }
        p {
            (piece.received_bytes) " bytes, ended " bdi { (piece.ending) }
            @if let Some(stop) = piece.stop { "; the provider said " bdi { (stop) } }
            "; judged " (word(piece.judged)) ": " bdi { (piece.why) }
        }
        @match piece.text {
            Some(text) => (excerpt(text)),
            None => p.faint { "Its text was not kept: " code { "[store_policy] keep_text" } " is off. SHA-256 " bdi.hash { (piece.sha256) } },
        }
    }
}

fn calls_table(calls: &[CallReport<'_>]) -> Markup {
    let known =
        |value: Option<u64>| value.map_or_else(|| "not reported".to_owned(), |value| value.to_string());
    html! {
        div.wide tabindex="0" { table {
            thead { tr {
                th.number scope="col" { "Call" } th scope="col" { "Purpose" } th scope="col" { "Model" } th scope="col" { "Upstream" }
                th.number scope="col" { "Status" } th scope="col" { "Ended" } th.number scope="col" { "Prompt" }
                th.number scope="col" { "Output" } th.number scope="col" { "Milliseconds" }
            } }
            tbody { @for call in calls { tr {
                (number(call.call))
                td { bdi { (call.purpose) } }
                td { bdi { (call.model) } }
                td { bdi { (call.upstream) } }
                (number(call.http_status.map_or_else(|| "none".to_owned(), |status| status.to_string())))
                td { bdi { (call.ending) } }
                (number(known(call.prompt_tokens)))
                (number(known(call.output_tokens)))
                (number(call.total_ms.map_or_else(|| "unknown".to_owned(), |took| format!("{took:.0}"))))
            } } }
        } }
    }
}
