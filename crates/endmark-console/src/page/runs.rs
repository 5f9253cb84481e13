//! The fleet: every supervised run as it stands, and one with its timeline. (CG-6)

use endmark_runs::AgentRun;
use endmark_store::Store;
use maud::{Markup, html};

use super::ROWS;
use super::layout::{self, encoded, further, moment, number, word};
use crate::answer::Failure;
use crate::console::Console;
use crate::query::Query;
use crate::reading;

/// The address of the list.
const PLACE: &str = "/endmark/runs";

/// All runs, the newest first, drawn anew with each event.
pub(super) async fn list(console: &Console, store: &Store, query: Option<&str>) -> Result<Markup, Failure> {
    let query = Query::parse(query, &reading::RUNS)?;
    let (runs, next) = reading::runs(store, &query, ROWS).await?;
    let content = html! {
        div id="runs" data-events="/endmark/api/runs/events" {
            @if runs.is_empty() { p { "No run is recorded yet; " code { "endmark run" } " starts one." } }
            @else { (table(&runs)) }
            (further(PLACE, &[], "before", next.as_deref()))
        }
    };
    Ok(layout::page(console, PLACE, "Fleet", &content))
}

/// Runs as a table.
pub(super) fn table(runs: &[AgentRun]) -> Markup {
    html! {
        div.wide tabindex="0" { table {
            thead { tr {
                th scope="col" { "Run" } th scope="col" { "State" } th scope="col" { "Attempt" } th scope="col" { "Context" }
                th scope="col" { "Risk" } th.number scope="col" { "Tokens" } th scope="col" { "Reason" } th scope="col" { "Artifact" }
            } }
            tbody { @for run in runs { tr {
                td { a href={ (PLACE) "/" (encoded(&run.id)) } { bdi.hash { (run.id) } } }
                td { (word(&run.state)) @if !run.is_over() && !run.is_supervised { " " span.bad { "supervisor gone" } } }
                td { (run.attempt) "/" (run.max_attempts) }
                td { (context(run)) }
                td { (risk(run)) }
                (number(run.token_usage.total))
                td { bdi { (run.reason.as_deref().unwrap_or("none")) } }
                td { bdi { (run.artifact) } }
            } } }
        } }
    }
}

/// The largest call against the model's limit, as a bar and in words.
fn context(run: &AgentRun) -> Markup {
    let Some((largest, limit)) = run.largest_call_tokens.zip(run.limit_tokens.filter(|limit| *limit > 0))
    else {
        return html! { span.faint { "unknown" } };
    };
    let percent = u128::from(largest) * 100 / u128::from(limit);
    html! {
        meter min="0" max=(limit) value=(largest) aria-label={ "context of " (run.id) } { (percent) "%" }
        " " (percent) " %"
    }
}

fn risk(run: &AgentRun) -> Markup {
    html! { @if run.context_exhaustion_risk { span.bad { "! at risk" } } @else { "none seen" } }
}

/// One run.
pub(super) async fn one(
    console: &Console,
    store: &Store,
    query: Option<&str>,
    id: &str,
) -> Result<Markup, Failure> {
    Query::parse(query, &[])?;
    let (run, events) = reading::run(store, id).await?;
    let none = "unknown";
    let content = html! {
        div id="run" data-events={ "/endmark/api/runs/events?run=" (encoded(&run.id)) } {
            (table(std::slice::from_ref(&run)))
            dl {
                dt { "Command" } dd { code { bdi { (run.command.join(" ")) } } }
                dt { "Folder" } dd { bdi { (run.folder) } }
                dt { "Template" } dd { bdi { (run.template.as_deref().unwrap_or("none")) } }
                dt { "Agent" } dd { bdi { (run.agent) } }
                dt { "Session" } dd { bdi { (run.session.as_deref().unwrap_or(none)) } }
                dt { "Model" } dd { bdi { (run.model.as_deref().unwrap_or(none)) } }
                dt { "Tokens" } dd { (run.token_usage.input) " in, " (run.token_usage.output) " out, " (run.token_usage.total) " in all" }
                dt { "Largest call" } dd {
                    @match (run.largest_call_tokens, run.limit_tokens) {
                        (Some(largest), Some(limit)) => { (largest) " of " (limit) },
                        (Some(largest), None) => { (largest) "; the model's limit is unknown" },
                        (None, _) => { "calls are not reported" },
                    }
                }
                dt { "Cost" } dd { (run.cost_usd.as_deref().unwrap_or("not reported")) @if run.cost_usd.is_some() { " USD" } }
                dt { "Verdict" } dd { bdi { (run.verdict.as_deref().unwrap_or("none yet")) } }
                dt { "Findings" } dd { @match run.findings { Some(findings) => { (findings) }, None => { "not judged yet" } } }
                @for evidence in &run.evidence { dt { "Evidence" } dd { bdi { (evidence) } } }
            }
            h2 { "Timeline" }
            div.wide tabindex="0" { table {
                thead { tr {
                    th scope="col" { "Time" } th scope="col" { "Event" } th scope="col" { "Attempt" } th scope="col" { "State" }
                    th scope="col" { "Message" }
                } }
                tbody { @for event in &events { tr {
                    td { @if let Some(at) = &event.at { (moment(at)) } }
                    td { bdi { (event.event) } }
                    td { (event.attempt) }
                    td { (word(&event.state)) @if let Some(reason) = &event.reason { " " bdi { (reason) } } }
                    td { bdi { (event.message) } }
                } } }
            } }
        }
    };
    Ok(layout::page(console, PLACE, &format!("Run {}", run.id), &content))
}
