//! Lists the gateway's own keys, with a form to revoke a key (CX-7). Secrets cannot be shown, because only
//! their hashes are stored.

use std::time::{SystemTime, UNIX_EPOCH};

use endmark_context::budget::{Period, RateLimits, Unit};
use endmark_store::{Key, KeyBudget, KeyError, KeyState, Reader, Store, utc};
use http::Response;
use maud::{Markup, html};

use super::layout::{PageFrame, chip, lead, scroll};
use super::{display, login};
use crate::answer::{ConsoleBody, ConsoleError};
use crate::console::{Console, ConsoleRequest};
use crate::query::Query;

/// The address of the page.
const PAGE_PATH: &str = "/endmark/keys";

/// Lists the keys by name.
pub(super) async fn page(
    console: &Console,
    store: &Store,
    query: Option<&str>,
) -> Result<Markup, ConsoleError> {
    Query::parse(query, &[])?;
    let keys = store.read(Reader::keys).await?;
    let content = html! {
        (lead(&html! { "Keys" }, &html! { p.muted { "The gateway’s own keys. " a href="/endmark/usage?by=key" { "What was spent with each" } } }))
        section.card aria-label="Keys" {
            @if keys.is_empty() { p.muted { "The gateway has no keys of its own. " code { "endmark keys add NAME" } " makes one, and shows its secret once." } }
            @else { (scroll("List of keys", &table(console, &keys))) }
        }
    };
    Ok(PageFrame { current_address: PAGE_PATH, title: "Keys", ..PageFrame::default() }
        .page(console, &content))
}

fn table(console: &Console, keys: &[Key]) -> Markup {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    html! {
        table {
            thead { tr {
                th scope="col" { "Name" } th scope="col" { "State" } th scope="col" { "Models" } th scope="col" { "Budget" }
                th scope="col" { "Ends" } th scope="col" { "Revoke" }
            } }
            tbody { @for key in keys { tr {
                td { (display::name(&key.name)) }
                td { @match key.state(now) {
                    KeyState::Valid => (chip("valid")),
                    KeyState::Expired => (chip("ended")),
                    KeyState::Revoked => (chip("revoked")),
                } }
                td { @if key.models.is_empty() { "all" } @else { bdi { (key.models.join(", ")) } } }
                td {
                    @match key.budget { Some(budget) => (format_budget(budget)), None => span.muted { "none" } }
                    (format_rates(key.rates))
                }
                td { @match key.ends_at {
                    Some(ends_at) => (display::time_ago(now, &utc(ends_at.saturating_mul(1_000)))),
                    None => "never",
                } }
                td { @if key.state(now) == KeyState::Valid {
                    form method="post" action="/endmark/keys/revoke" {
                        input type="hidden" name="token" value=(console.access.form_token());
                        input type="hidden" name="name" value=(key.name);
                        button aria-label={ "Revoke " (key.name) } { "Revoke" }
                    }
                } }
            } } }
        }
    }
}

fn format_budget(budget: KeyBudget) -> Markup {
    let limit = match budget.unit {
        Unit::NanoUsd => display::money(budget.limit),
        unit => format!("{} {}", display::count(budget.limit), unit.name()),
    };
    html! { (limit) @if budget.period == Period::Ever { " in all" } @else { " per " (budget.period.name()) } }
}

fn format_rates(rates: RateLimits) -> Markup {
    let limits = [
        (rates.requests_per_minute, " requests per minute"),
        (rates.tokens_per_minute, " tokens per minute"),
        (rates.parallel, " requests at once"),
    ];
    html! { @for (limit, unit) in limits { @if let Some(limit) = limit { br; (display::count(limit)) (unit) } } }
}

/// Revokes a key, like `endmark keys revoke`.
pub(super) async fn revoke(
    console: &Console,
    visit: &ConsoleRequest,
) -> Result<Response<ConsoleBody>, ConsoleError> {
    let form = login::parse_form(&visit.body, &["token", "name"])?;
    console.access.check_form(form.text("token"))?;
    match visit.store.revoke_key(form.text("name").unwrap_or_default()).await {
        Ok(()) => Ok(login::redirect(PAGE_PATH)),
        Err(KeyError::Store(error)) => Err(error.into()),
        Err(error) => Err(ConsoleError::NotFound(error.to_string())),
    }
}
