//! Lists requests with filters, newest first, and draws tables of requests for other pages.

use std::collections::BTreeSet;

use endmark_store::{
    REASON_CLIENT_LIMIT, REASON_CLOSING_LIMIT, REASON_WARN_MODE, RecoveryRow, RequestFilterOptions,
    RequestRow, Store,
};
use maud::{Markup, html};

use super::layout::{self, PageFrame, chip, next_page_link, percent_encode};
use super::{ROWS_PER_PAGE, display};
use crate::answer::ConsoleError;
use crate::console::Console;
use crate::query::Query;
use crate::reading;
use crate::reports::requests::{is_recovery, total_usage};

/// The address of the list.
pub(super) const LIST_PATH: &str = "/endmark/requests";

/// Filter parameters other than the outcome.
const FILTER_PARAMETERS: [&str; 5] = ["model", "upstream", "key", "session", "since"];

/// Determines the columns of a table of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TableColumns {
    /// All columns, for the list of requests.
    Requests,
    /// The columns for the overview page.
    Recoveries,
}

/// Lists requests, newest first.
pub(super) async fn list(
    console: &Console,
    store: &Store,
    query: Option<&str>,
) -> Result<Markup, ConsoleError> {
    let query = Query::parse(query, &reading::REQUEST_PARAMETERS)?;
    let (page, is_alone) = reading::load_requests(store, &query, ROWS_PER_PAGE).await?;
    let choices = store.read(endmark_store::Reader::request_filter_options).await?;
    let value = |name: &str| query.text(name).unwrap_or_default();
    let given = |outcome: &str| -> String {
        let pairs =
            [("outcome", outcome)].into_iter().chain(FILTER_PARAMETERS.map(|name| (name, value(name))));
        let pairs: Vec<String> = pairs
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| format!("{name}={}", percent_encode(value)))
            .collect();
        if pairs.is_empty() { LIST_PATH.to_owned() } else { format!("{LIST_PATH}?{}", pairs.join("&")) }
    };
    let next = reading::next_requests(&page);
    let is_first = value("before").is_empty();
    let parameters: Vec<(&str, &str)> = [("outcome", value("outcome"))]
        .into_iter()
        .chain(FILTER_PARAMETERS.map(|name| (name, value(name))))
        .collect();
    let content = html! {
        div.lead {
            div {
                h1 { "Requests" }
                p.muted {
                    @if value("since").is_empty() { "Every request, the newest first." } @else { "Requests of the last " (value("since")) ", the newest first." }
                    " Those that the gateway refused itself are listed since its start."
                }
                (layout::gateway_alone_note(is_alone))
            }
            @if is_first { p.live { "Live: new requests appear at the top" } }
            @else { p { a href=(given(value("outcome"))) { "To the newest" } } }
        }
        nav aria-label="Outcome" { ul.outcomes {
            @for outcome in [""].into_iter().chain(reading::FILTER_OUTCOMES) {
                li { a href=(given(outcome)) class=[layout::outcome_class(outcome)]
                    aria-current=[(value("outcome") == outcome).then_some("true")] { (describe_outcome(outcome)) } }
            }
        } }
        (filters(&query, &choices, &page.rows))
        section.card id="rows" aria-label="Requests" data-seconds=[is_first.then_some("3")] {
            @if page.rows.is_empty() {
                p.muted {
                    @if next.is_some() { "No request matches in this part of the records. Older ones may." }
                    @else if FILTER_PARAMETERS.iter().chain(&["outcome"]).any(|name| !value(name).is_empty()) { "No request matches. " a href=(LIST_PATH) { "Show all" } }
                    @else { "No request has come through yet. " a href="/endmark/" { "Point a client here" } }
                }
            } @else { (table(console, &page.rows, TableColumns::Requests)) }
            (next_page_link(LIST_PATH, &parameters, "before", next.as_deref()))
        }
    };
    let json = given(value("outcome")).replace(LIST_PATH, "/endmark/api/requests");
    Ok(PageFrame { current_address: LIST_PATH, title: "Requests", json: Some(json), ..PageFrame::default() }
        .page(console, &content))
}

/// Shows the filters. Their choices include the selected values and the values of the listed rows.
fn filters(query: &Query, choices: &RequestFilterOptions, rows: &[RequestRow]) -> Markup {
    let of_rows = |of: fn(&RequestRow) -> &str| rows.iter().map(move |row| of(row).to_owned());
    let with =
        |known: &[String], of_rows: &mut dyn Iterator<Item = String>, name: &str| -> BTreeSet<String> {
            known
                .iter()
                .cloned()
                .chain(of_rows)
                .chain(query.owned_text(name))
                .filter(|value| !value.is_empty())
                .collect()
        };
    let models = with(&choices.models, &mut of_rows(RequestRow::model), "model");
    let upstreams = with(&choices.upstreams, &mut of_rows(RequestRow::upstream), "upstream");
    let keys = with(&choices.credentials, &mut of_rows(RequestRow::credential), "key");
    let sessions = with(&[], &mut of_rows(RequestRow::session), "session");
    let chosen = |name: &str, value: &str| query.text(name) == Some(value);
    html! {
        form.filters method="get" action=(LIST_PATH) aria-label="Filter" {
            @for name in ["outcome", "since"] { @if let Some(value) = query.text(name) { input type="hidden" name=(name) value=(value); } }
            @for (name, label, values) in [("model", "Model", &models), ("upstream", "Upstream", &upstreams), ("key", "Key", &keys), ("session", "Session", &sessions)] {
                div {
                    label for=(name) { (label) }
                    select id=(name) name=(name) {
                        option value="" { "Any" }
                        @for value in values { option value=(value) selected[chosen(name, value)] { (filter_label(name, value)) } }
                    }
                }
            }
            div.do { button.primary { "Filter" } a href=(LIST_PATH) { "Clear" } }
        }
    }
}

/// Returns the label of an outcome in the filter.
fn describe_outcome(outcome: &str) -> &str {
    match outcome {
        "" => "All",
        "look" => "worth a look",
        "any-cut" => "every cut",
        outcome => outcome,
    }
}

/// Returns the label of a value in a filter.
fn filter_label(name: &str, value: &str) -> String {
    let short = |length: usize| value.chars().take(length).collect::<String>();
    match (name, value.strip_prefix("key:")) {
        ("key", Some(key)) => key.to_owned(),
        ("key", None) => format!("client {}", short(8)),
        ("session", _) => short(8),
        _ => short(60),
    }
}

/// Shows requests as a table.
pub(super) fn table(console: &Console, rows: &[RequestRow], list: TableColumns) -> Markup {
    let now = display::unix_now();
    let all = list == TableColumns::Requests;
    html! {
        table.rows {
            thead { tr {
                th scope="col" { "Outcome" } th scope="col" { "What happened" } th scope="col" { "Model" }
                @if all { th scope="col" { "Session" } th.num scope="col" { "Tokens in → out" } th.num scope="col" { "Cost" } th.num scope="col" { "Took" } }
                @else { th.num scope="col" { "Extra cost" } }
                th.when scope="col" { "When" }
            } }
            tbody { @for row in rows { tr {
                @let (what, more) = describe_request(row);
                @let (address, plain) = (format!("{LIST_PATH}/{}", percent_encode(row.request_id())), row.outcome == "whole");
                td.first { (chip(&row.outcome)) }
                td class=(if plain { "what plain" } else { "what" }) {
                    // A refused request made no call, so it has no page.
                    @if row.refusal.is_some() { (what) } @else { a href=(address) { (what) } }
                    @if let Some(more) = more { span.sub { bdi { (more) } } }
                }
                td { (display::name(row.model())) span.sub { (display::name(row.upstream())) " · " (layout::client(row.credential())) } }
                @if all { (format_tokens_and_cost(console, row)) } @else { (extra_cost(console, row)) }
                td.when { (display::time_ago(now, row.started_at())) }
            } } }
        }
    }
}

fn format_tokens_and_cost(console: &Console, row: &RequestRow) -> Markup {
    let all = total_usage(&row.calls, &console.models);
    html! {
        td { @if row.refusal.is_some() { (layout::hash(row.session())) } @else { (layout::session(row.session())) } }
        td.num data-name="tokens" {
            @if all.prompt_tokens + all.completion_tokens == 0 { "none" }
            @else { (display::count(all.prompt_tokens)) " → " (display::count(all.completion_tokens)) }
        }
        td.num data-name="cost" { @if all.prompt_tokens + all.completion_tokens == 0 { "none" } @else { (display::cost(&all)) } }
        td.num data-name="took" { @match duration_ms(row) { Some(took) => (display::duration(took)), None => "unknown" } }
    }
}

fn extra_cost(console: &Console, row: &RequestRow) -> Markup {
    let extra = total_usage(row.calls.iter().filter(|call| is_recovery(call)), &console.models);
    html! { td.num data-name="extra" { @if extra.calls == 0 { "none" } @else { (display::cost(&extra)) } } }
}

/// Returns the milliseconds from the start of a request's first call to the end of its last call.
pub(super) fn duration_ms(row: &RequestRow) -> Option<f64> {
    let began = parse_milliseconds(&row.calls.first()?.started_at)?;
    let ends =
        row.calls.iter().filter_map(|call| Some(parse_milliseconds(&call.started_at)? + call.total_ms?));
    ends.reduce(f64::max).map(|end| (end - began).max(0.0))
}

/// Converts a time in the store's format to milliseconds since 1970.
#[expect(clippy::cast_precision_loss, reason = "2^53 milliseconds are longer than the calendar")]
pub(super) fn parse_milliseconds(at: &str) -> Option<f64> {
    let fraction = at.get(20..23).and_then(|digits| digits.parse::<u64>().ok()).unwrap_or(0);
    Some((display::parse_seconds(at)? * 1_000 + fraction) as f64)
}

/// Describes briefly what happened to a request, and what the gateway did.
pub(super) fn describe_request(row: &RequestRow) -> (String, Option<String>) {
    if let Some(refusal) = &row.refusal {
        return (format!("Refused by the gateway with {}", refusal.status), Some(refusal.message.clone()));
    }
    let failed =
        row.calls.iter().filter(|call| call.http_status.is_none_or(|status| status >= 400)).count() as u64;
    match (row.cuts.first(), row.outcome.as_str()) {
        (Some(cut), _) => (describe_cut(row, cut), Some(describe_result(cut, &row.outcome))),
        (None, "whole") if row.calls.len() > 1 && failed > 0 => (
            format!("Passed after {}", display::count_with_noun(failed, "failed call", "failed calls")),
            None,
        ),
        (None, "whole") => ("Passed unchanged".to_owned(), None),
        (None, "cut") => ("Cut, and passed as it came".to_owned(), None),
        (None, "recovering") => ("Cut; the rest is being asked for".to_owned(), None),
        (None, "cancelled") => ("The client disconnected".to_owned(), None),
        (None, "interrupted") => ("The gateway ended before the reply did".to_owned(), None),
        (None, "failed") => match row.calls.last().and_then(|call| call.http_status) {
            Some(status) => (format!("The upstream answered {status}"), None),
            None => ("No upstream answered".to_owned(), row.calls.last().map(|call| call.ending.clone())),
        },
        (None, _) => ("Passed without being read".to_owned(), None),
    }
}

fn describe_cut(row: &RequestRow, cut: &RecoveryRow) -> String {
    let call =
        row.calls.iter().find(|call| call.verdict.as_deref() == Some("cut")).or_else(|| row.calls.first());
    let after = match (call.and_then(|call| call.tokens.output), cut.initial_chunk_length) {
        (Some(tokens), _) => format!(" after {}", display::count_with_noun(tokens, "token", "tokens")),
        (None, Some(bytes)) => format!(" after {bytes} bytes"),
        (None, None) => String::new(),
    };
    match cut.cut_kind.as_str() {
        "limit" => format!("Cut by the limit{after}"),
        "dropped" => format!("The stream broke off{after}"),
        "format" => format!("The format was left open{after}"),
        "marker" => format!("The end marker was missing{after}"),
        "empty" => "The model returned no text".to_owned(),
        "window" => format!("The context window was full{after}"),
        _ => format!("The reply was cut{after}"),
    }
}

fn describe_result(cut: &RecoveryRow, outcome: &str) -> String {
    match (outcome, cut.reason.as_str()) {
        ("resumed", _) => describe_seam(cut.seam_style.as_deref()).to_owned(),
        ("restarted", _) => "generated again from the beginning".to_owned(),
        ("corrected", _) => "the form was corrected".to_owned(),
        ("cut", REASON_CLIENT_LIMIT) => "not resumed: the client set this limit".to_owned(),
        ("cut", REASON_WARN_MODE) => "not resumed: the mode is warn".to_owned(),
        ("cut", REASON_CLOSING_LIMIT) => "not resumed: the budget of the session is used up".to_owned(),
        (_, reason) => reason.to_owned(),
    }
}

/// Describes how two parts were joined.
pub(super) fn describe_seam(style: Option<&str>) -> &'static str {
    match style {
        Some("exact") => "joined at the cut",
        Some("token") => "joined after the last whole token",
        Some("overlap") => "joined where the text was repeated",
        Some("restart") => "joined inside a part that began again",
        Some("whitespace") => "joined at white space",
        Some("ellipsis") => "joined without dots of omission",
        Some("fence") => "joined without a code fence",
        Some("quotation") => "joined without quotation marks",
        Some("preamble") => "joined without an announcement",
        Some("remark") => "joined without a closing remark",
        Some("reasoning") => "joined without reasoning",
        Some("rewritten") => "joined instead of the last word",
        Some(_) | None => "joined",
    }
}
