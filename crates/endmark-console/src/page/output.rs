//! Shows content that was omitted from requests: lists compactions, and shows the kept originals and capped
//! results.

use endmark_context::cap::{Limits, Unit};
use endmark_context::read::{Excerpt, ExcerptError, Part, PartError, PartLocation};
use endmark_store::{ExcerptReadError, Handle, KeptOutput, LOCAL_USER, Store, StoreError};
use maud::{Markup, html};

use super::ROWS_PER_PAGE;
use super::display;
use super::layout::{self, PageFrame, excerpt, lead, next_page_link, number, percent_encode, scroll};
use crate::answer::ConsoleError;
use crate::console::Console;
use crate::query::Query;
use crate::reading;
use crate::reports::compactions;

/// The address of the list of compactions.
const LIST_PATH: &str = "/endmark/compactions";

/// Number of bytes of an output that one page shows.
const OUTPUT_PAGE_BYTES: usize = 32 * 1024;

/// Lists compactions, newest first.
pub(super) async fn compactions(
    console: &Console,
    store: &Store,
    query: Option<&str>,
) -> Result<Markup, ConsoleError> {
    let query = Query::parse(query, &reading::COMPACTION_PARAMETERS)?;
    let (rows, next) = reading::load_compactions(store, &query, ROWS_PER_PAGE).await?;
    let content = html! {
        (lead(&html! { "Compactions" }, &html! { p.muted { "What the beginnings of conversations were condensed to, so that they fit into the window of their model." } }))
        section.card aria-label="Compactions" {
            @if rows.is_empty() { p.muted { "No conversation was condensed. Set " code { "mode = \"auto\"" } " under " code { "[compact]" } " to have long ones condensed." } }
            @else { (table(&rows)) (next_page_link(LIST_PATH, &[], "before", next.as_deref())) }
        }
        section.card aria-labelledby="reader" {
        header { h2 id="reader" { "Read a kept output" } span.muted.small { "A marker in a shortened result names the handle of its full value" } }
        form.filters method="get" action="/endmark/outputs" {
            div { label for="handle" { "Handle" } input id="handle" name="handle" size="30" required; }
            div.do { button.primary { "Read" } }
        }
        }
    };
    let json = Some("/endmark/api/compactions".to_owned());
    Ok(PageFrame { current_address: LIST_PATH, title: "Compactions", json, ..PageFrame::default() }
        .page(console, &content))
}

/// Shows compactions as a table.
pub(super) fn table(rows: &[compactions::CompactionEntry]) -> Markup {
    let now = display::unix_now();
    let table = html! {
        table {
            thead { tr {
                th scope="col" { "Time" } th scope="col" { "Mode" } th.num scope="col" { "Turns" }
                th.num scope="col" { "Tokens" }
                th scope="col" { "No longer in full" } th scope="col" { "Client" } th scope="col" { "Session" }
                th scope="col" { "The whole request" }
            } }
            tbody { @for row in rows { tr {
                td.nowrap { (display::time_ago(now, &row.created_at)) } td { (row.mode) } (number(row.turns))
                td.num { (display::count(row.tokens_before)) " → " (display::count(row.tokens_after)) }
                td { (describe_dropped(row)) }
                td { (layout::client(&row.client)) }
                td { (layout::session(row.session.as_deref().unwrap_or_default())) }
                td { @match &row.handle {
                    Some(handle) => (link(handle)),
                    None => span.muted { "not kept" },
                } }
            } } }
        }
    };
    scroll("List of compactions", &table)
}

/// Returns the link to a kept output.
pub(super) fn link(handle: &str) -> Markup {
    html! { a href={ "/endmark/outputs/" (percent_encode(handle)) } { bdi.id { (handle) } } }
}

/// Describes how many items a compaction left out or shortened, by kind.
pub(super) fn describe_dropped(row: &compactions::CompactionEntry) -> String {
    let counts: Vec<String> = row.dropped.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    if counts.is_empty() { "unknown".to_owned() } else { counts.join(", ") }
}

/// The part of an output that one page shows.
struct ShownPart {
    format: String,
    bytes: u64,
    lines: u64,
    text: String,
    place: PartLocation,
}

/// Shows a kept output page by page, or only the lines that match a pattern.
pub(super) async fn page(
    console: &Console,
    store: &Store,
    query: Option<&str>,
    handle: &str,
) -> Result<Markup, ConsoleError> {
    let query = Query::parse(query, &["page", "search", "handle"])?;
    let typed = query.owned_text("handle").unwrap_or_else(|| handle.to_owned());
    let unknown = || ConsoleError::NotFound(format!("no kept output has the handle `{typed}`"));
    let handle = Handle::parse(typed.trim()).ok_or_else(unknown)?;
    let number = query.number::<u64>("page")?.unwrap_or(1);
    let search = query.owned_text("search").filter(|search| !search.is_empty());
    let (asked, part) = (handle.clone(), search.clone().map_or(Part::Page(number), Part::Grep));
    let read = store.read_output(&handle, move |reader| {
        let output = match reader.output(&asked, LOCAL_USER) {
            Err(StoreError::NoOutput { .. }) => reader.client_output(&asked),
            own => own,
        }?;
        Ok(read_part(&output, &part))
    });
    let shown = match read.await {
        Err(StoreError::NoOutput { .. }) => return Err(unknown()),
        Err(error @ (StoreError::ExpiredOutput { .. } | StoreError::RemovedOutput { .. })) => {
            return Err(ConsoleError::NotFound(error.to_string()));
        }
        read => read?,
    };
    let shown = shown.map_err(|error| match error {
        ExcerptReadError::Store(error) => error.into(),
        ExcerptReadError::Excerpt(error @ ExcerptError::Part(PartError::NoPage { .. })) => {
            ConsoleError::NotFound(error.to_string())
        }
        ExcerptReadError::Excerpt(error) => ConsoleError::BadRequest(error.to_string()),
    })?;
    let place = format!("/endmark/outputs/{}", percent_encode(handle.as_str()));
    let content = html! {
        div.lead { div {
            p.crumb { a href=(LIST_PATH) { "Compactions" } " / " bdi.id { (handle.as_str()) } }
            h1 { "A kept output" }
            p.muted { bdi { (shown.format) } ", " (display::count(shown.bytes)) " bytes in " (display::count_with_noun(shown.lines, "line", "lines")) }
        } }
        form.filters method="get" action=(place) {
            div { label for="search" { "Lines that match" } input id="search" name="search" value=[search.as_deref()]; }
            div.do { button.primary { "Search" } a href=(place) { "Read all" } }
        }
        section.card aria-label="Text" { @match shown.place {
            PartLocation::Page { page, pages, .. } => {
                (excerpt(&shown.text))
                div.older {
                    span { "Page " (page) " of " (pages) }
                    span {
                        @if page > 1 { a.button rel="prev" href={ (place) "?page=" (page - 1) } { "Page before" } " " }
                        @if page < pages { a.button rel="next" href={ (place) "?page=" (page + 1) } { "Next page" } }
                    }
                }
            }
            PartLocation::Matches(lines) => {
                p role="status" { (display::count_with_noun(lines, "line", "lines")) }
                (excerpt(&shown.text))
            }
            PartLocation::Bytes(_) | PartLocation::Lines(_) | PartLocation::Value => (excerpt(&shown.text)),
        } }
    };
    Ok(PageFrame { current_address: LIST_PATH, title: "A kept output", ..PageFrame::default() }
        .page(console, &content))
}

fn read_part(output: &KeptOutput<'_>, part: &Part) -> Result<ShownPart, ExcerptReadError> {
    let limits = Limits { most: OUTPUT_PAGE_BYTES, unit: Unit::Bytes, ..Limits::default() };
    let excerpt = output.part(part, &limits)?;
    let text = excerpt.text(&limits)?;
    let Excerpt { location: place, .. } = excerpt;
    Ok(ShownPart { format: output.format.clone(), bytes: output.bytes, lines: output.lines, text, place })
}
