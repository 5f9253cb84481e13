//! Lists what needs attention: budgets near their limit, runs at risk, failing upstreams and refused
//! requests. The list may be empty.

use std::collections::BTreeMap;

use endmark_runs::AgentRun;
use endmark_store::{RefusedRequest, Store, UsageRow};
use maud::{Markup, html};

use super::OverviewData;
use crate::answer::ConsoleError;
use crate::console::Console;
use crate::page::plot::Bar;
use crate::page::{budgets, display, layout, runs};
use crate::query::Query;
use crate::reading;

/// Number of newest calls that are examined: of all upstreams together, and of each upstream.
pub(super) const MAX_EXAMINED_CALLS: u32 = 200;
const MAX_EXAMINED_CALLS_PER_UPSTREAM: usize = 40;

/// An upstream counts as failing if at least `MIN_FAILED_CALLS` of its newest calls failed, and at least
/// `MIN_FAILED_PERCENT` percent of them.
const MIN_FAILED_CALLS: usize = 3;
const MIN_FAILED_PERCENT: usize = 20;

/// Failures that are older than this number of seconds are ignored.
const RECENT_SECONDS: u64 = 3_600;

/// Maximum number of items on the page.
const MAX_ITEMS: usize = 6;

/// Returns the items that need attention, most urgent first.
pub(super) async fn items(
    console: &Console,
    store: &Store,
    seen: &OverviewData,
) -> Result<Vec<Markup>, ConsoleError> {
    let near = budgets::budgets_near_limit(console, store).await?;
    let ((runs, _), _) = reading::load_runs(store, &Query::parse(None, &[])?, 50).await?;
    let mut items: Vec<Markup> = near.iter().map(|row| budget_item(console, row, seen.now)).collect();
    items.extend(runs.iter().filter(|run| runs::is_at_risk(run)).map(run_item));
    items.extend(
        failing_upstreams(&seen.calls, seen.now)
            .into_iter()
            .map(|(name, failed, of, status)| upstream_item(name, failed, of, status)),
    );
    items.extend(refused_item(&store.refusals(), seen.now));
    items.truncate(MAX_ITEMS);
    Ok(items)
}

/// Returns the card with the items.
pub(super) fn card(items: &[Markup]) -> Markup {
    let heading = html! { "Needs attention " span.count { (items.len()) } };
    layout::card("attention", &heading, &html! {}, &html! { ul.items { @for item in items { (item) } } })
}

fn budget_item(console: &Console, row: &crate::reports::budgets::BudgetEntry, now: u64) -> Markup {
    let standing = budgets::BudgetState::new(row, &console.zone, now);
    html! { li {
        span class={ "point " (standing.css_class()) } {}
        div {
            a href="/endmark/budgets" { "Budget of " (budgets::owner_markup(row)) " is " @if standing.is_exhausted() { "used up" } @else { "near its end" } }
            (standing.draw_bar(8, &[]))
            p { (budgets::format_amount(row, row.spent)) " of " (budgets::format_limit(row)) " spent. " (standing.forecast_text()) }
        }
    } }
}

fn run_item(run: &AgentRun) -> Markup {
    let percent = runs::context_percent(run);
    html! { li {
        span.point.bad {}
        div {
            a href={ "/endmark/runs/" (layout::percent_encode(&run.id)) } { "Run " (runs::name(run)) @if run.is_supervised { " is at risk" } @else if run.last_known_at().is_some() { " is on a silent machine" } @else { " has lost its supervisor" } }
            @if let Some(percent) = percent {
                (Bar { class: "bad", spent: percent, height: 8, ..Bar::default() }.draw(&format!("{percent:.0} percent of the context")))
                p { "Its largest call filled " (format!("{percent:.0}")) "% of the context." }
            } @else { p { (display::tokens(run.token_usage.total)) " tokens used so far." } }
        }
    } }
}

fn upstream_item(name: &str, failed: usize, of: usize, status: Option<u16>) -> Markup {
    html! { li {
        span.point.warn {}
        div {
            a href={ "/endmark/requests?upstream=" (layout::percent_encode(name)) } { "Upstream " (display::name(name)) " is failing" }
            p { (failed) " of its last " (of) " calls failed" @if let Some(status) = status { ", most with " (status) } "." }
        }
    } }
}

/// Returns an item about recently refused requests, if there are any.
fn refused_item(refusals: &[RefusedRequest], now: u64) -> Option<Markup> {
    let is_late = |one: &&RefusedRequest| {
        display::parse_seconds(&one.refused_at).is_some_and(|at| at + RECENT_SECONDS > now)
    };
    let count = refusals.iter().filter(is_late).count() as u64;
    let last = refusals.last().filter(is_late)?;
    Some(html! { li {
        span.point.warn {}
        div {
            a href="/endmark/requests?outcome=refused&since=1h" { (display::count_with_noun(count, "request was", "requests were")) " refused in the last hour" }
            p { "The last one with " (last.status) ": " bdi { (last.message) } }
        }
    } })
}

/// Returns the failing upstreams: name, number of failed calls, number of examined calls, and most frequent
/// HTTP status.
fn failing_upstreams(calls: &[UsageRow], now: u64) -> Vec<(&str, usize, usize, Option<u16>)> {
    let mut upstreams: BTreeMap<&str, Vec<&UsageRow>> = BTreeMap::new();
    for call in calls
        .iter()
        .filter(|call| display::parse_seconds(&call.started_at).is_some_and(|at| at + RECENT_SECONDS > now))
    {
        let of_one = upstreams.entry(&call.upstream).or_default();
        if of_one.len() < MAX_EXAMINED_CALLS_PER_UPSTREAM {
            of_one.push(call);
        }
    }
    let judged = upstreams.into_iter().filter_map(|(name, calls)| {
        let failed: Vec<&UsageRow> = calls.iter().copied().filter(|call| is_upstream_failure(call)).collect();
        let mut statuses: BTreeMap<u16, usize> = BTreeMap::new();
        for status in failed.iter().filter_map(|call| call.http_status) {
            *statuses.entry(status).or_default() += 1;
        }
        let status = statuses.into_iter().max_by_key(|(_, calls)| *calls).map(|(status, _)| status);
        let is_failing =
            failed.len() >= MIN_FAILED_CALLS && failed.len() * 100 >= calls.len() * MIN_FAILED_PERCENT;
        is_failing.then_some((name, failed.len(), calls.len(), status))
    });
    judged.collect()
}

/// Whether the upstream caused a failure. Disconnected clients and invalid requests do not count.
fn is_upstream_failure(call: &UsageRow) -> bool {
    match call.http_status {
        Some(status) => status == 429 || status >= 500,
        None => !["cancelled", "interrupted"].contains(&call.ending.as_str()),
    }
}
