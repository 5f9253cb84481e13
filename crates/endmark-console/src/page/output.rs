//! What was left out of requests: compactions, and a reader for what was kept of them and of capped results.

use endmark_context::cap::{Limits, Unit};
use endmark_context::read::{Excerpt, ExcerptError, Part, PartError, Place};
use endmark_store::{Handle, KeptOutput, LOCAL_USER, ReadError, Store, StoreError};
use maud::{Markup, html};

use super::ROWS;
use super::layout::{self, encoded, excerpt, further, hash, moment, number};
use crate::answer::Failure;
use crate::console::Console;
use crate::query::Query;
use crate::reading;
use crate::reports::compactions;

/// The address of the list of compactions.
const PLACE: &str = "/endmark/compactions";

/// Bytes that the reader shows at once.
const PAGE_BYTES: usize = 32 * 1024;

/// The list, the newest first.
pub(super) async fn compactions(
    console: &Console,
    store: &Store,
    query: Option<&str>,
) -> Result<Markup, Failure> {
    let query = Query::parse(query, &reading::COMPACTIONS)?;
    let (rows, next) = reading::compactions(store, &query, ROWS).await?;
    let content = html! {
        p { "What the beginnings of conversations were condensed to, so that they fit into their model's window." }
        @if rows.is_empty() { p { "No conversation was condensed." } } @else { (table(&rows)) }
        (further(PLACE, &[], "before", next.as_deref()))
        h2 { "Read a kept output" }
        p { "A marker in a shortened result names the handle of its full value." }
        form.filters method="get" action="/endmark/outputs" {
            div { label for="handle" { "Handle" } input id="handle" name="handle" size="30" required; }
            button { "Read" }
        }
    };
    Ok(layout::page(console, PLACE, "Compactions", &content))
}

/// Compactions as a table.
pub(super) fn table(rows: &[compactions::Row]) -> Markup {
    html! {
        div.wide tabindex="0" { table {
            thead { tr {
                th scope="col" { "Time" } th scope="col" { "Mode" } th.number scope="col" { "Turns" }
                th.number scope="col" { "Tokens before" } th.number scope="col" { "Tokens after" }
                th scope="col" { "No longer in full" } th scope="col" { "Client" } th scope="col" { "Session" }
                th scope="col" { "The whole request" }
            } }
            tbody { @for row in rows { tr {
                td { (moment(&row.created_at)) } td { (row.mode) } (number(row.turns))
                (number(row.tokens_before)) (number(row.tokens_after))
                td { (dropped(row)) }
                td { (hash(&row.client)) }
                td { (layout::session(row.session.as_deref().unwrap_or_default())) }
                td { @match &row.handle {
                    Some(handle) => (link(handle)),
                    None => span.faint { "not kept" },
                } }
            } } }
        } }
    }
}

/// The way to a kept output.
pub(super) fn link(handle: &str) -> Markup {
    html! { a href={ "/endmark/outputs/" (encoded(handle)) } { bdi.hash { (handle) } } }
}

fn dropped(row: &compactions::Row) -> String {
    let counts: Vec<String> = row.dropped.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    if counts.is_empty() { "unknown".to_owned() } else { counts.join(", ") }
}

/// What a page of the reader shows.
struct Shown {
    format: String,
    bytes: u64,
    lines: u64,
    text: String,
    place: Place,
}

/// A kept output, in pages, or the lines of it that match a pattern.
pub(super) async fn page(
    console: &Console,
    store: &Store,
    query: Option<&str>,
    handle: &str,
) -> Result<Markup, Failure> {
    let query = Query::parse(query, &["page", "search", "handle"])?;
    let typed = query.owned("handle").unwrap_or_else(|| handle.to_owned());
    let unknown = || Failure::NotFound(format!("no kept output has the handle `{typed}`"));
    let handle = Handle::parse(typed.trim()).ok_or_else(unknown)?;
    let number = query.number::<u64>("page")?.unwrap_or(1);
    let search = query.owned("search").filter(|search| !search.is_empty());
    let (asked, part) = (handle.clone(), search.clone().map_or(Part::Page(number), Part::Grep));
    let read = store.read(move |reader| {
        let output = match reader.output(&asked, LOCAL_USER) {
            Err(StoreError::NoOutput { .. }) => reader.output_of_a_client(&asked),
            own => own,
        }?;
        Ok(shown(&output, &part))
    });
    let shown = match read.await {
        Err(StoreError::NoOutput { .. }) => return Err(unknown()),
        Err(error @ (StoreError::ExpiredOutput { .. } | StoreError::RemovedOutput { .. })) => {
            return Err(Failure::NotFound(error.to_string()));
        }
        read => read?,
    };
    let shown = shown.map_err(|error| match error {
        ReadError::Store(error) => error.into(),
        ReadError::Excerpt(error @ ExcerptError::Part(PartError::NoPage { .. })) => {
            Failure::NotFound(error.to_string())
        }
        ReadError::Excerpt(error) => Failure::BadRequest(error.to_string()),
    })?;
    let place = format!("/endmark/outputs/{}", encoded(handle.as_str()));
    let content = html! {
        dl {
            dt { "Format" } dd { bdi { (shown.format) } }
            dt { "Length" } dd { (shown.bytes) " bytes in " (shown.lines) " lines" }
        }
        form.filters method="get" action=(place) {
            div { label for="search" { "Lines that match" } input id="search" name="search" value=[search.as_deref()]; }
            button { "Search" }
            a href=(place) { "Read all" }
        }
        @match shown.place {
            Place::Page { page, pages, .. } => {
                p { "Page " (page) " of " (pages) }
                (excerpt(&shown.text))
                p {
                    @if page > 1 { a rel="prev" href={ (place) "?page=" (page - 1) } { "Page before" } " " }
                    @if page < pages { a rel="next" href={ (place) "?page=" (page + 1) } { "Next page" } }
                }
            }
            Place::Matches(lines) => {
                p role="status" { (lines) " lines" }
                (excerpt(&shown.text))
            }
            Place::Bytes(_) | Place::Lines(_) | Place::Value => (excerpt(&shown.text)),
        }
    };
    Ok(layout::page(console, PLACE, "Kept output", &content))
}

fn shown(output: &KeptOutput<'_>, part: &Part) -> Result<Shown, ReadError> {
    let limits = Limits { most: PAGE_BYTES, unit: Unit::Bytes, ..Limits::default() };
    let excerpt = output.part(part, &limits)?;
    let text = excerpt.text(&limits)?;
    let Excerpt { place, .. } = excerpt;
    Ok(Shown { format: output.format.clone(), bytes: output.bytes, lines: output.lines, text, place })
}
