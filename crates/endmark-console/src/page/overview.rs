//! The overview: is anything being cut off, was it recovered, what does it cost, which budget or run is in danger?

use http::header::HOST;
use maud::{Markup, html};

use super::layout::{self, number, word};
use super::{ROWS, budgets, recoveries, runs, usage};
use crate::answer::Failure;
use crate::console::{Console, Visit};
use crate::query::Query;
use crate::reading;
use crate::reports::budgets::Row;
use crate::reports::cuts::Report;
use crate::reports::usage::Report as Sums;

/// The address of the page.
const PLACE: &str = "/endmark/";

/// The span that it looks back.
const SINCE: &str = "7d";

/// The newest recoveries that are shown.
const NEWEST: u32 = 8;

/// From how many percent on a budget is near its end.
const NEAR_PERCENT: u64 = 80;

/// The page.
pub(super) async fn page(console: &Console, visit: &Visit) -> Result<Markup, Failure> {
    let store = &visit.store;
    Query::parse(visit.head.uri.query(), &[])?;
    let read = reading::report(console, store, SINCE).await?;
    let report = Report::of(&read, SINCE, console.continuation_tokens);
    if report.requests == 0 {
        return Ok(layout::page(console, PLACE, "Overview", &first_run(visit)));
    }
    let asked = |text: &str, known: &[&str]| Query::parse(Some(text), known);
    let (sums, by) = reading::usage(console, store, &asked("by=day&since=7d", &reading::USAGE)?).await?;
    let (newest, _) = reading::recoveries(store, &asked("", &reading::RECOVERIES)?, NEWEST).await?;
    let (all_budgets, _) = reading::budgets(console, store, &asked("", &reading::BUDGETS)?, 1_000).await?;
    let near: Vec<Row> = all_budgets
        .into_iter()
        .filter(|row| budgets::percent(row).is_some_and(|percent| percent >= NEAR_PERCENT))
        .collect();
    let (all_runs, _) = reading::runs(store, &asked("", &reading::RUNS)?, ROWS).await?;
    let at_risk: Vec<_> = all_runs
        .into_iter()
        .filter(|run| !run.is_over() && (run.context_exhaustion_risk || !run.is_supervised))
        .collect();
    let recovered: u64 = report
        .cuts
        .iter()
        .filter(|cut| ["resumed", "restarted", "corrected"].contains(&cut.outcome))
        .map(|cut| cut.replies)
        .sum();
    let content = html! {
        div id="now" data-seconds="5" {
            p { "The last seven days." }
            ul.figures {
                li { b id="requests" { (report.requests) } "requests" }
                li { b id="replies" { (report.replies) } "replies looked at" }
                li { b id="cut" { (report.cut) } "replies cut" }
                li { b id="recovered" { (recovered) } "of them recovered" }
                li { b id="interrupted" { (report.interrupted) } "calls interrupted" }
                li { b id="usd" { (sums.total.dollars_in_words(9)) } "US dollars" }
                li { b id="spent" { (report.spent.prompt_tokens + report.spent.output_tokens) } "tokens for recovery" }
                li { b id="spent-usd" { (report.spent.dollars) } "US dollars for recovery" }
            }
            h2 { "Cut replies by kind" }
            @if report.cuts.is_empty() { p { "No reply was cut." } } @else { (cuts(&report)) }
            h2 { "Newest recoveries" }
            (recoveries::table(&newest))
            h2 { "Budgets near their end" }
            @if near.is_empty() { p { "None." } } @else { (budgets::table(console, &near, false)) }
            h2 { "Runs at risk" }
            @if at_risk.is_empty() { p { "None." } } @else { (runs::table(&at_risk)) }
        }
        h2 { "Dollars by day" }
        (dollars(&sums))
        h2 { "Tokens by day" }
        (usage::table(&sums, by))
        h2 { "Replies by day" }
        (days(&report))
    };
    Ok(layout::page(console, PLACE, "Overview", &content))
}

fn cuts(report: &Report<'_>) -> Markup {
    html! {
        div.wide tabindex="0" { table {
            thead { tr {
                th scope="col" { "Kind" } th scope="col" { "Outcome" } th scope="col" { "Model" } th scope="col" { "Upstream" }
                th.number scope="col" { "Replies" }
            } }
            tbody { @for cut in &report.cuts { tr {
                td { bdi { (cut.kind) } } td { (word(cut.outcome)) } td { bdi { (cut.model) } } td { bdi { (cut.upstream) } }
                (number(cut.replies))
            } } }
        } }
    }
}

/// What each day came to. A day with calls that have no price is drawn by what the others cost, and says so.
fn dollars(sums: &Sums) -> Markup {
    html! {
        div.wide tabindex="0" { table data-plot id="dollars" {
            thead { tr {
                th scope="col" { "Day" } th.number scope="col" data-series { "USD" } th.number scope="col" { "Calls without a price" }
            } }
            tbody { @for row in &sums.rows { tr {
                td data-value=(row.key) { (row.key) }
                td.number data-value=(row.total.usd_at_least) {
                    @if row.total.usd.is_none() { "at least " } (row.total.usd_at_least)
                }
                (number(row.total.unpriced_calls))
            } } }
        } }
    }
}

/// Replies by day, over all upstreams and models, the oldest first.
fn days(report: &Report<'_>) -> Markup {
    let mut days: std::collections::BTreeMap<&str, (u64, u64, u64)> = std::collections::BTreeMap::new();
    for day in &report.days {
        let sum = days.entry(day.day).or_default();
        *sum = (sum.0 + day.calls, sum.1 + day.replies, sum.2 + day.cut);
    }
    html! {
        div.wide tabindex="0" { table data-plot {
            thead { tr {
                th scope="col" { "Day" } th.number scope="col" { "Calls" } th.number scope="col" data-series { "Replies" }
                th.number scope="col" data-series { "Cut" }
            } }
            tbody { @for (day, (calls, replies, cut)) in &days { tr {
                td data-value=(day) { (day) } (number(calls)) (number(replies)) (number(cut))
            } } }
        } }
    }
}

/// What there is to do before there is anything to see.
fn first_run(visit: &Visit) -> Markup {
    let host = visit.head.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("127.0.0.1:4141");
    html! {
        p { "No request came through this gateway in the last seven days. Point a client at it:" }
        pre tabindex="0" { "export OPENAI_BASE_URL=http://" (host) "/v1" }
        p { "For Anthropic it is " code { "ANTHROPIC_BASE_URL=http://" (host) } ", for Gemini "
            code { "GOOGLE_GEMINI_BASE_URL=http://" (host) } "." }
    }
}
