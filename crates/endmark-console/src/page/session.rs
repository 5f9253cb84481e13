//! One session: its usage, what of it was condensed or shortened, and its runs.

use endmark_store::Store;
use maud::{Markup, html};

use super::layout::{self, hash, moment, number};
use super::{output, runs, usage};
use crate::answer::Failure;
use crate::console::Console;
use crate::query::Query;
use crate::reading;
use crate::reports::usage::UsageKey;

/// The page that it belongs to.
const PLACE: &str = "/endmark/usage";

/// The page.
pub(super) async fn page(
    console: &Console,
    store: &Store,
    query: Option<&str>,
    id: &str,
) -> Result<Markup, Failure> {
    Query::parse(query, &[])?;
    let report = reading::session(console, store, id).await?;
    let content = html! {
        p { "Session " (hash(&report.session)) }
        (usage::table(&report.usage, UsageKey::Model))
        h2 { "Compactions" }
        @if report.compactions.is_empty() { p { "None of it was condensed." } } @else { (output::table(&report.compactions)) }
        h2 { "Shortened outputs" }
        @if report.outputs.is_empty() { p { "No result of a tool was shortened in it first." } }
        @else { div.wide tabindex="0" { table id="outputs" {
            thead { tr {
                th scope="col" { "Time" } th scope="col" { "Format" } th.number scope="col" { "Bytes" } th.number scope="col" { "Lines" }
                th scope="col" { "The whole output" }
            } }
            tbody { @for kept in &report.outputs { tr {
                td { (moment(&kept.created_at)) } td { bdi { (kept.format) } } (number(kept.bytes)) (number(kept.lines))
                td { (output::link(&kept.handle)) }
            } } }
        } } }
        h2 { "Runs" }
        @if report.runs.is_empty() { p { "No supervised run made its calls." } } @else { (runs::table(&report.runs)) }
    };
    Ok(layout::page(console, PLACE, "Session", &content))
}
