//! What was left out of requests: compactions, and a reader for what was kept of them and of capped results.

use endmark_store::{Handle, KeptOutput, LOCAL_USER, Store, StoreError};
use maud::{Markup, html};

use super::ROWS;
use super::layout::{self, encoded, excerpt, further, hash, moment, number};
use crate::answer::Failure;
use crate::console::Console;
use crate::query::Query;
use crate::reading;

/// The address of the list of compactions.
const PLACE: &str = "/endmark/compactions";

/// Bytes of a page of the reader.
const PAGE_BYTES: u64 = 32 * 1024;
/// Lines that a search shows at most.
const MAX_FOUND: usize = 200;
/// Characters of a found line that are shown.
const LINE_CHARS: usize = 400;
/// A search reads at most so much; more is said to be unread.
const SEARCHED_BYTES: u64 = 64 * 1024 * 1024;

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
        @if rows.is_empty() { p { "No conversation was condensed." } }
        @else { div.wide tabindex="0" { table {
            thead { tr {
                th scope="col" { "Time" } th scope="col" { "Mode" } th.number scope="col" { "Turns" }
                th.number scope="col" { "Tokens before" } th.number scope="col" { "Tokens after" }
                th scope="col" { "Client" } th scope="col" { "The whole request" }
            } }
            tbody { @for row in &rows { tr {
                td { (moment(&row.created_at)) } td { (row.mode) } (number(row.turns))
                (number(row.tokens_before)) (number(row.tokens_after))
                td { (hash(&row.client)) }
                td { @match &row.handle {
                    Some(handle) => a href={ "/endmark/outputs/" (encoded(handle)) } { bdi.hash { (handle) } },
                    None => span.faint { "not kept" },
                } }
            } } }
        } } }
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

/// What a page of the reader shows.
struct Shown {
    format: String,
    bytes: u64,
    lines: u64,
    text: String,
    pages: u64,
    found: Option<Found>,
}

/// What a search came to.
struct Found {
    lines: Vec<(u64, String)>,
    is_all: bool,
}

/// A kept output, in pages, or the lines of it that hold a text.
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
    let number = query.number::<u64>("page")?.unwrap_or(1).max(1);
    let search = query.owned("search");
    let (asked, wanted) = (handle.clone(), search.clone());
    let read = store.read(move |reader| {
        let output = match reader.output(&asked, LOCAL_USER) {
            Err(StoreError::NoOutput { .. }) => reader.output_of_a_client(&asked),
            own => own,
        }?;
        shown(&output, number, wanted.as_deref())
    });
    let shown = match read.await {
        Err(StoreError::NoOutput { .. }) => return Err(unknown()),
        Err(error @ StoreError::ExpiredOutput { .. }) => return Err(Failure::NotFound(error.to_string())),
        read => read?,
    };
    if number > shown.pages {
        return Err(Failure::NotFound(format!("the output has {} pages and no page {number}", shown.pages)));
    }
    let place = format!("/endmark/outputs/{}", encoded(handle.as_str()));
    let content = html! {
        dl {
            dt { "Format" } dd { bdi { (shown.format) } }
            dt { "Length" } dd { (shown.bytes) " bytes in " (shown.lines) " lines" }
        }
        form.filters method="get" action=(place) {
            div { label for="search" { "Lines with" } input id="search" name="search" value=[search.as_deref()]; }
            button { "Search" }
            a href=(place) { "Read all" }
        }
        @match &shown.found {
            Some(found) => {
                p role="status" { (found.lines.len()) @if found.is_all { " lines" } @else { " lines, and more behind them" } }
                pre tabindex="0" { @for (number, line) in &found.lines { (number) ": " bdi { (line) } "\n" } }
            }
            None => {
                p { "Page " (number) " of " (shown.pages) }
                (excerpt(&shown.text))
                p {
                    @if number > 1 { a rel="prev" href={ (place) "?page=" (number - 1) } { "Page before" } " " }
                    @if number < shown.pages { a rel="next" href={ (place) "?page=" (number + 1) } { "Next page" } }
                }
            }
        }
    };
    Ok(layout::page(console, PLACE, "Kept output", &content))
}

fn shown(output: &KeptOutput<'_>, number: u64, search: Option<&str>) -> Result<Shown, StoreError> {
    let pages = output.bytes.div_ceil(PAGE_BYTES).max(1);
    let (mut text, mut found) = (String::new(), None);
    if let Some(search) = search {
        found = Some(self::found(output, search)?);
    } else {
        let begin = (number - 1).saturating_mul(PAGE_BYTES).min(output.bytes);
        let bytes = output.read(begin..begin.saturating_add(PAGE_BYTES).min(output.bytes))?;
        text = String::from_utf8_lossy(&bytes).into_owned();
    }
    Ok(Shown { format: output.format.clone(), bytes: output.bytes, lines: output.lines, text, pages, found })
}

fn found(output: &KeptOutput<'_>, search: &str) -> Result<Found, StoreError> {
    let bytes = output.read(0..output.bytes.min(SEARCHED_BYTES))?;
    let text = String::from_utf8_lossy(&bytes);
    let matching = text.lines().zip(1_u64..).filter(|(line, _)| line.contains(search));
    let mut lines: Vec<(u64, String)> = matching
        .take(MAX_FOUND + 1)
        .map(|(line, number)| (number, line.chars().take(LINE_CHARS).collect()))
        .collect();
    let is_all = lines.len() <= MAX_FOUND && output.bytes <= SEARCHED_BYTES;
    lines.truncate(MAX_FOUND);
    Ok(Found { lines, is_all })
}
