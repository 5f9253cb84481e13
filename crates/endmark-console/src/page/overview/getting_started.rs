//! The overview page of a new installation: how to connect a client, the first replies, and the next steps.

use endmark_store::RequestRow;
use http::HeaderMap;
use http::header::HOST;
use maud::{Markup, html};

use crate::console::Console;
use crate::page::display;
use crate::page::layout::{card, outcome_class, percent_encode};

/// Maximum number of replies that are shown as squares.
const MAX_SQUARES: usize = 10;

/// Returns the page before the first request, which explains how to send one.
pub(super) fn welcome_page(headers: &HeaderMap, refused: u64) -> Markup {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("127.0.0.1:4141");
    let origin = format!("http://{host}");
    html! {
        div.lead {
            div {
                h1.state { b { "Nothing has come through yet." } " " span { "Point a client here with one line." } }
                @if refused > 0 { p { a href="/endmark/requests?outcome=refused" { (display::count_with_noun(refused, "request was", "requests were")) " refused" } " before any upstream call." } }
                p.muted { "This page shows the first request as soon as it arrives. A click selects a whole line." }
            }
            div.waiting {
                ol.squares aria-label="Places of the first ten replies" { @for _ in 0..MAX_SQUARES { li.vacant {} } }
                p.live { "Waiting for the first request" }
            }
        }
        (card("clients", &html! { "Your application" }, &html! { span.muted.small { "Your client keeps its own key" } }, &html! { ul.ways {
            (connection_option("OpenAI", "and compatible clients", &format!("export OPENAI_BASE_URL={origin}/v1")))
            (connection_option("Anthropic", "Messages API", &format!("export ANTHROPIC_BASE_URL={origin}")))
            (connection_option("Gemini", "generateContent API", &format!("export GOOGLE_GEMINI_BASE_URL={origin}")))
        } }))
        (card("agents", &html! { "A coding agent" }, &html! { span.muted.small { code { "--undo" } " reverts it" } }, &html! { ul.ways {
            (connection_option("Claude Code", "writes its settings", &format!("endmark setup claude --url {origin} --write")))
            (connection_option("Codex, Gemini CLI, opencode", "codex, gemini or opencode", &format!("endmark setup codex --url {origin} --write")))
        } }))
        (card("try", &html! { "Or see it first" }, &html! {}, &html! { ul.ways {
            (connection_option("A demo", "no account, no network", "endmark demo"))
            (connection_option("One request", "through this gateway", &format!(
                "curl {origin}/v1/chat/completions -H \"Authorization: Bearer $OPENAI_API_KEY\" -H \"Content-Type: application/json\" \
                 -d '{{\"model\":\"gpt-5-mini\", \"messages\":[{{\"role\":\"user\", \"content\":\"Count to ten.\"}}]}}'"
            )))
        } }))
    }
}

fn connection_option(name: &str, about: &str, line: &str) -> Markup {
    html! { li {
        div { h3 { (name) } p { (about) } }
        div.copy { code tabindex="0" { (line) } button type="button" hidden data-copy { "Copy" } }
    } }
}

/// Shows the newest of the first replies as squares, oldest first.
pub(super) fn squares(first: &[RequestRow]) -> Markup {
    let newest = first.get(first.len().saturating_sub(MAX_SQUARES)..).unwrap_or_default();
    let mut words: Vec<&str> = newest.iter().map(|row| row.outcome.as_str()).collect();
    words.sort_unstable();
    words.dedup();
    let legend = html! { ul.legend { @for word in words { li class=(square_class(word)) { (word) } } } };
    card(
        "first",
        &html! { "Your first requests" },
        &legend,
        &html! { ol.squares {
            @for row in newest {
                @let label = format!("A request: {}", row.outcome);
                @let id = row.calls.first().map_or("", |call| &call.request_id);
                li { a href={ "/endmark/requests/" (percent_encode(id)) } class=(square_class(&row.outcome)) aria-label=(label) title=(label) { i.square {} } }
            }
            @for _ in newest.len()..MAX_SQUARES { li.vacant {} }
        } },
    )
}

fn square_class(outcome: &str) -> &str {
    outcome_class(outcome).unwrap_or("other")
}

/// Suggests the next steps to a new user.
pub(super) fn next_steps(console: &Console) -> Markup {
    card(
        "next",
        &html! { "Next steps" },
        &html! {},
        &html! { ul.items {
            @if !console.keep_text { (next_step("/endmark/requests?outcome=any-cut", "Keep the texts of cut replies",
                &html! { "Set " code { "keep_text = true" } " under " code { "[store_policy]" } ". A request then shows where its parts were joined." })) }
            @if console.rules.is_empty() { (next_step("/endmark/budgets", "Set a budget for a day",
                &html! { "Calls beyond it are refused before they are made." })) }
            (next_step("/endmark/keys", "Give each client a key", &html! { "Costs and cuts are then shown by client." }))
        } },
    )
}

fn next_step(address: &str, name: &str, about: &Markup) -> Markup {
    html! { li { span.point.other {} div { a href=(address) { (name) } p { (about) } } } }
}
