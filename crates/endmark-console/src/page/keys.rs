//! Lists the gateway's own keys, with a form to revoke one. Secrets cannot be shown, because only their hashes are
//! stored. (CX-7)

use std::time::{SystemTime, UNIX_EPOCH};

use endmark_context::budget::{Period, RateLimits, Unit};
use endmark_store::{Key, KeyBudget, KeyError, KeyState, Reader, Store, utc};
use http::Response;
use maud::{Markup, html};

use super::layout::{Frame, chip, lead, scroll};
use super::{login, words};
use crate::answer::{ConsoleBody, Failure};
use crate::console::{Console, Visit};
use crate::query::Query;

/// The address of the page.
const PAGE_PATH: &str = "/endmark/keys";

/// Lists the keys by name.
pub(super) async fn page(console: &Console, store: &Store, query: Option<&str>) -> Result<Markup, Failure> {
    Query::parse(query, &[])?;
    let keys = store.read(Reader::keys).await?;
    let content = html! {
        (lead(&html! { "Keys" }, &html! { p.muted { "The gateway’s own keys. " a href="/endmark/usage?by=key" { "What was spent with each" } } }))
        section.card aria-label="Keys" {
            @if keys.is_empty() { p.muted { "The gateway has no keys of its own. " code { "endmark keys add NAME" } " makes one, and shows its secret once." } }
            @else { (scroll("List of keys", &table(console, &keys))) }
        }
    };
    Ok(Frame { place: PAGE_PATH, title: "Keys", ..Frame::default() }.page(console, &content))
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
                td { (words::name(&key.name)) }
                td { @match key.state(now) {
                    KeyState::Valid => (chip("valid")),
                    KeyState::Expired => (chip("ended")),
                    KeyState::Revoked => (chip("revoked")),
                } }
                td { @if key.models.is_empty() { "all" } @else { bdi { (key.models.join(", ")) } } }
                td {
                    @match key.budget { Some(budget) => (allowance(budget)), None => span.muted { "none" } }
                    (rates(key.rates))
                }
                td { @match key.ends_at {
                    Some(ends_at) => (words::time(now, &utc(ends_at.saturating_mul(1_000)))),
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

fn allowance(budget: KeyBudget) -> Markup {
    let limit = match budget.unit {
        Unit::NanoUsd => words::money(budget.limit),
        unit => format!("{} {}", words::count(budget.limit), unit.name()),
    };
    html! { (limit) @if budget.period == Period::Ever { " in all" } @else { " per " (budget.period.name()) } }
}

fn rates(rates: RateLimits) -> Markup {
    let limits = [
        (rates.requests_per_minute, " requests per minute"),
        (rates.tokens_per_minute, " tokens per minute"),
        (rates.parallel, " requests at once"),
    ];
    html! { @for (limit, unit) in limits { @if let Some(limit) = limit { br; (words::count(limit)) (unit) } } }
}

/// Revokes a key, like `endmark keys revoke`.
pub(super) async fn revoke(console: &Console, visit: &Visit) -> Result<Response<ConsoleBody>, Failure> {
    let form = login::parse_form(&visit.body, &["token", "name"])?;
    console.access.check_form(form.text("token"))?;
    match visit.store.revoke_key(form.text("name").unwrap_or_default()).await {
        Ok(()) => Ok(login::redirect(PAGE_PATH)),
        Err(KeyError::Store(error)) => Err(error.into()),
        Err(error) => Err(Failure::NotFound(error.to_string())),
    }
}
