//! Budgets: how they stand, and more of one for a session.

use endmark_context::budget::Unit;
use endmark_context::{dollars, rate_from_dollars};
use endmark_store::Store;
use http::Response;
use maud::{Markup, html};

use super::layout::{self, further, hash, number};
use super::{ROWS, login};
use crate::answer::{ConsoleBody, Failure};
use crate::console::{Console, Visit};
use crate::query::Query;
use crate::reading;
use crate::reports::budgets::Row;

/// The address of the page.
const PLACE: &str = "/endmark/budgets";

/// The list.
pub(super) async fn page(console: &Console, store: &Store, query: Option<&str>) -> Result<Markup, Failure> {
    let query = Query::parse(query, &reading::BUDGETS)?;
    let (rows, next) = reading::budgets(console, store, &query, ROWS).await?;
    let content = html! {
        @if rows.is_empty() {
            p { "No call was counted in a budget. Set one under " code { "[budget]" } ", as in " code { "session_tokens = 850_000" } "." }
        } @else { (table(console, &rows, true)) }
        (further(PLACE, &[], "after", next.as_deref()))
    };
    Ok(layout::page(console, PLACE, "Budgets", &content))
}

/// Budgets as a table, with or without what raises them.
pub(super) fn table(console: &Console, rows: &[Row], with_forms: bool) -> Markup {
    html! {
        div.wide tabindex="0" { table {
            thead { tr {
                th scope="col" { "Whose" } th scope="col" { "Subject" } th scope="col" { "Window" }
                th.number scope="col" { "Spent" } th.number scope="col" { "Held" } th.number scope="col" { "Limit" }
                th scope="col" { "Used" }
                @if with_forms { th scope="col" { "Raise" } }
            } }
            tbody { @for row in rows { tr {
                td { (row.scope) }
                td { @if row.scope == "model" { bdi { (row.subject) } } @else { (hash(&row.subject)) } }
                td { (row.window) }
                (number(amount(row, row.spent)))
                (number(amount(row, row.held)))
                (number(limit(row).map_or_else(|| "none any more".to_owned(), |limit| amount(row, limit))))
                td {
                    @if let Some(percent) = percent(row) {
                        meter min="0" max="100" low="80" high="95" optimum="0" value=(percent.min(100))
                            aria-label={ "used of the budget of " (row.scope) " in " (row.window) } { (percent) "%" }
                        " " (percent) " %"
                    }
                    @if row.closed { " " span.bad { "used up" } }
                }
                @if with_forms { td { @if row.scope == "session" { (raise_form(console, row)) } } }
            } } }
        } }
    }
}

fn raise_form(console: &Console, row: &Row) -> Markup {
    let unit = if row.unit == Unit::NanoUsd.name() { "dollars" } else { "tokens" };
    html! {
        form method="post" action="/endmark/budgets/raise" {
            input type="hidden" name="token" value=(console.access.form_token());
            input type="hidden" name="session" value=(row.subject);
            input type="hidden" name="unit" value=(row.unit);
            input name="by" size="8" required inputmode="decimal" aria-label={ "Raise by so many " (unit) };
            button { "Add " (unit) }
        }
    }
}

/// Adds to a session's budget, as `endmark budget raise`.
pub(super) async fn raise(console: &Console, visit: &Visit) -> Result<Response<ConsoleBody>, Failure> {
    let form = login::form_of(&visit.body, &["token", "session", "unit", "by"])?;
    console.access.check_form(form.text("token"))?;
    let (session, by) = (form.text("session").unwrap_or_default(), form.text("by").unwrap_or_default());
    let number = by.trim().trim_start_matches('+').replace(['_', ','], "");
    let (unit, amount) = match form.text("unit") {
        Some("nano_usd") => {
            (Unit::NanoUsd, number.parse().ok().and_then(|dollars| rate_from_dollars(dollars).ok()))
        }
        Some("tokens") => (Unit::Tokens, number.parse().ok()),
        _ => return Err(Failure::BadRequest("a budget is in tokens or in nano_usd".to_owned())),
    };
    let amount = amount.filter(|amount| *amount > 0);
    let amount = amount
        .ok_or_else(|| Failure::BadRequest(format!("`{by}` is nothing that can be added to a budget")))?;
    if !visit.store.raise_budget(session, unit, amount).await? {
        return Err(Failure::NotFound(format!("no budget of the session `{session}` is known")));
    }
    Ok(login::go_to(PLACE))
}

/// What there is to spend, where it is configured.
fn limit(row: &Row) -> Option<u64> {
    row.limit.map(|limit| limit.saturating_add(row.extra))
}

/// How much of it is spent or held, in percent.
pub(super) fn percent(row: &Row) -> Option<u64> {
    let limit = limit(row).filter(|limit| *limit > 0)?;
    let used = u128::from(row.spent.saturating_add(row.held)) * 100 / u128::from(limit);
    Some(u64::try_from(used).unwrap_or(u64::MAX))
}

fn amount(row: &Row, amount: u64) -> String {
    if row.unit == Unit::NanoUsd.name() { format!("${}", dollars(amount)) } else { amount.to_string() }
}
