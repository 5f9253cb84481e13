//! Shows supervised runs: all runs as cards, and one run with its timeline (CG-6).

use endmark_runs::{AgentRun, RunEventReport};
use endmark_store::Store;
use maud::{Markup, html};

use super::layout::{PageFrame, card, chip, next_page_link, percent_encode, scroll};
use super::plot::Bar;
use super::{ROWS_PER_PAGE, display};
use crate::answer::ConsoleError;
use crate::console::Console;
use crate::query::Query;
use crate::reading;

/// The address of the list.
const LIST_PATH: &str = "/endmark/runs";

/// Percentage from which a context is nearly full, if the run's own threshold is unknown.
const NEARLY_FULL_PERCENT: f64 = 80.0;

/// Interval in seconds at which the runs of other machines are read, because those send no events to this
/// gateway.
const REFRESH_SECONDS: u32 = 5;

/// Maximum attempts that are drawn as squares.
const MAX_SQUARES: u32 = 8;

/// Lists all runs, newest first. Each event refreshes the page.
pub(super) async fn list_page(
    console: &Console,
    store: &Store,
    query: Option<&str>,
) -> Result<Markup, ConsoleError> {
    let query = Query::parse(query, &reading::RUN_PARAMETERS)?;
    let ((all, next), is_alone) = reading::load_runs(store, &query, ROWS_PER_PAGE).await?;
    let (ended, active): (Vec<&AgentRun>, Vec<&AgentRun>) = all.iter().partition(|run| run.has_ended());
    let content = html! {
        (summary_line(&all))
        @if is_alone { p.muted { "The database cannot be read now. These are the runs of this machine alone." } }
        @if all.is_empty() { section.card { p.muted {
            "No run is recorded. " code { "endmark run --template T --artifact FILE -- AGENT" } " supervises an agent until its work is finished."
        } } }
        @if !active.is_empty() { h2 { "Active" } (cards(active)) }
        @if !ended.is_empty() { h2 { "Ended" } (cards(ended)) }
        (next_page_link(LIST_PATH, &[], "before", next.as_deref()))
    };
    let frame = PageFrame {
        current_address: LIST_PATH,
        title: "Fleet",
        json: Some("/endmark/api/runs".to_owned()),
        refresh_events: Some("/endmark/api/runs/events".to_owned()),
        refresh_seconds: store.location().postgres().map(|_| REFRESH_SECONDS),
    };
    Ok(frame.page(console, &content))
}

fn summary_line(runs: &[AgentRun]) -> Markup {
    let count = |of: fn(&AgentRun) -> bool| runs.iter().filter(|run| of(run)).count() as u64;
    let (active, at_risk) = (count(|run| !run.has_ended()), count(is_at_risk));
    let (succeeded, ended) = (count(|run| run.state == "succeeded"), count(AgentRun::has_ended));
    html! { div.lead { h1.state {
        @if runs.is_empty() { "No run yet." }
        @else {
            b { (active) } " of " (display::count_with_noun(runs.len() as u64, "run", "runs")) @if active == 1 { " is active" } @else { " are active" }
            @if at_risk > 0 { ", and " b.bad { (at_risk) @if at_risk == 1 { " is at risk" } @else { " are at risk" } } }
            ". " @if ended > 0 { b.good { (succeeded) } " succeeded, " (ended - succeeded) " did not." }
        }
    } } }
}

/// Whether a run needs attention, because its context is nearly full or its supervisor died.
pub(super) fn is_at_risk(run: &AgentRun) -> bool {
    !run.has_ended() && (run.context_exhaustion_risk || !run.is_supervised)
}

/// Returns the name of a run, or its artifact if it has no name.
pub(super) fn name(run: &AgentRun) -> Markup {
    display::name(run.name.as_deref().unwrap_or(&run.artifact))
}

/// Returns the share of the context that the largest call filled, in percent.
pub(super) fn context_percent(run: &AgentRun) -> Option<f64> {
    let (largest, limit) = run.largest_call_tokens.zip(run.limit_tokens.filter(|limit| *limit > 0))?;
    Some(display::share(largest, limit))
}

/// Shows runs as cards.
pub(super) fn cards<'a>(runs: impl IntoIterator<Item = &'a AgentRun>) -> Markup {
    html! { ul.runs { @for run in runs { li class={ "card run" @if is_at_risk(run) { " at-risk" } } {
        header {
            div {
                h3 { a href={ (LIST_PATH) "/" (percent_encode(&run.id)) } { (name(run)) } }
                p.sub { (display::name(&run.agent)) @if run.has_ended() { " wrote " } @else { " writes " } (display::name(&run.artifact)) @if let Some(machine) = &run.machine { " on " (display::name(&machine.name)) } }
            }
            (run_chip(run))
        }
        (summary(run))
        @if let Some(reason) = &run.reason { div.missing {
            h4 { "Why" }
            ul { li { bdi { (reason) } } @for evidence in run.evidence.iter().take(3) { li { bdi { (evidence) } } } }
        } }
    } } } }
}

fn run_chip(run: &AgentRun) -> Markup {
    if run.has_ended() || run.is_supervised {
        return html! { @if is_at_risk(run) { span.chip.bad { bdi { (run.state) } ", at risk" } } @else { (chip(&run.state)) } };
    }
    html! { @match run.last_known_at() {
        Some(at) => { span.chip.bad { "silent; " bdi { (run.state) } " as last known " (display::time_ago(display::unix_now(), at)) } },
        None => { span.chip.bad { "supervisor gone" } },
    } }
}

/// Shows the context as a bar, and the figures of a run.
fn summary(run: &AgentRun) -> Markup {
    let squares = |state: &str| match state {
        _ if run.max_attempts > MAX_SQUARES => 0,
        _ => run.max_attempts,
    };
    html! {
        (format_context(run))
        dl {
            div { dt { "Attempt" } dd {
                span.tries aria-hidden="true" { @for at in 1..=squares(&run.state) {
                    i class=[if at < run.attempt || (at == run.attempt && run.has_ended()) { Some("done") } else if at == run.attempt { Some("now") } else { None }] {}
                } }
                (run.attempt) " of " (run.max_attempts)
            } }
            div { dt { "Tokens" } dd { @if run.token_usage.total == 0 { "unknown" } @else { (display::tokens(run.token_usage.total)) } } }
            div { dt { "Cost" } dd { @match dollars(run) { Some(cost) => (cost), None => "unknown" } } }
            div { dt { "Time" } dd { @match duration_seconds(run) { Some(took) => (display::seconds(took)), None => "unknown" } } }
        }
    }
}

fn dollars(run: &AgentRun) -> Option<Markup> {
    let exact = run.cost_usd.as_deref()?;
    let nano = exact.parse().ok().and_then(|dollars| endmark_context::rate_from_dollars(dollars).ok())?;
    Some(html! { span title={ "$" (exact) } { (display::money(nano)) } })
}

/// Returns the duration of a run in seconds, until its end or its last report.
fn duration_seconds(run: &AgentRun) -> Option<u64> {
    let began = display::parse_seconds(run.started_at.as_deref()?)?;
    let ended = run.ended_at.as_deref().or(run.last_known_at());
    let ended = ended.and_then(display::parse_seconds).unwrap_or_else(display::unix_now);
    Some(ended.saturating_sub(began))
}

/// Shows the tokens of the largest call compared with the model's limit.
fn format_context(run: &AgentRun) -> Markup {
    let Some((percent, limit)) = context_percent(run).zip(run.limit_tokens) else {
        return html! { div.context { p { span { "Context" } span { "not reported by this agent" } } } };
    };
    let is_full = run.context_exhaustion_risk || percent >= NEARLY_FULL_PERCENT;
    let class = if is_full { "bad" } else { "history" };
    html! { div.context {
        p { span { "Context " b class=[is_full.then_some("bad")] { (format!("{percent:.0}")) "%" } " of " (display::tokens(limit)) } @if run.context_exhaustion_risk { span { "nearly full" } } }
        (Bar { class, spent: percent, height: 10, ..Bar::default() }.draw(&format!("largest call at {percent:.0} percent of the context")))
    } }
}

/// Shows one run.
pub(super) async fn run_page(
    console: &Console,
    store: &Store,
    query: Option<&str>,
    id: &str,
) -> Result<Markup, ConsoleError> {
    Query::parse(query, &[])?;
    let (run, events) = reading::load_run(store, id).await?;
    let content = html! {
        div.lead { div {
            p.crumb { a href=(LIST_PATH) { "Fleet" } " / " bdi.id { (run.id) } }
            h1 { (name(&run)) " " (run_chip(&run)) }
            p.muted { (display::name(&run.agent)) ", " (display::name(&run.artifact)) @if let Some(reason) = &run.reason { ": " bdi { (reason) } } }
        } }
        section.card.run aria-label="Progress" { (summary(&run)) }
        (card("timeline", &html! { "Timeline" }, &html! {}, &scroll("Events", &timeline(&events))))
        (card("facts", &html! { "Facts" }, &html! {}, &facts(&run)))
    };
    let frame = PageFrame {
        current_address: LIST_PATH,
        title: "A run",
        json: Some(format!("/endmark/api/runs/{}", percent_encode(&run.id))),
        refresh_events: Some(format!("/endmark/api/runs/events?run={}", percent_encode(&run.id))),
        refresh_seconds: store.location().postgres().map(|_| REFRESH_SECONDS),
    };
    Ok(frame.page(console, &content))
}

fn timeline(events: &[RunEventReport]) -> Markup {
    let now = display::unix_now();
    html! { table {
        thead { tr { th scope="col" { "State" } th scope="col" { "What happened" } th scope="col" { "Attempt" } th.when scope="col" { "When" } } }
        tbody { @for event in events { tr {
            td { (chip(&event.state)) }
            td.what { bdi { (event.message) } span.sub { bdi { (event.event) } @if let Some(reason) = &event.reason { ": " bdi { (reason) } } } }
            td { (event.attempt) }
            td.when { @if let Some(at) = &event.at { (display::time_ago(now, at)) } }
        } } }
    } }
}

fn facts(run: &AgentRun) -> Markup {
    let unknown = "unknown";
    html! { dl.facts {
        div { dt { "Command" } dd { code { bdi { (run.command.join(" ")) } } } }
        div { dt { "Folder" } dd.id { bdi { (run.folder) } } }
        @if let Some(machine) = &run.machine {
            div { dt { "Machine" } dd { (display::name(&machine.name)) } }
            div { dt { "Instance" } dd.id { bdi { (machine.instance) } } }
        }
        div { dt { "Template" } dd { bdi { (run.template.as_deref().unwrap_or("none")) } } }
        div { dt { "Session" } dd { bdi { (run.session.as_deref().unwrap_or(unknown)) } } }
        div { dt { "Model" } dd { (display::name(run.model.as_deref().unwrap_or(unknown))) } }
        div { dt { "Tokens" } dd { (display::count(run.token_usage.input)) " in, " (display::count(run.token_usage.output)) " out, " (display::count(run.token_usage.total)) " in all" } }
        div { dt { "Largest call" } dd { @match (run.largest_call_tokens, run.limit_tokens) {
            (Some(largest), Some(limit)) => { (display::count(largest)) " of " (display::count(limit)) " tokens" },
            (Some(largest), None) => { (display::count(largest)) " tokens; the limit of the model is unknown" },
            (None, _) => { "calls are not reported" },
        } } }
        div { dt { "Verdict" } dd { bdi { (run.verdict.as_deref().unwrap_or("none yet")) } } }
        div { dt { "Findings" } dd { @match run.findings { Some(findings) => (findings), None => "not judged yet" } } }
        @for evidence in &run.evidence { div { dt { "Evidence" } dd { bdi { (evidence) } } } }
    } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(state: &str) -> AgentRun {
        AgentRun {
            id: "run_1".to_owned(),
            name: Some("<script>".to_owned()),
            state: state.to_owned(),
            reason: Some("<b>\u{202e}".to_owned()),
            agent: "claude".to_owned(),
            command: Vec::new(),
            folder: "/".to_owned(),
            artifact: "a.md".to_owned(),
            template: None,
            attempt: 2,
            max_attempts: 3,
            process: None,
            session: None,
            model: None,
            token_usage: endmark_runs::TokenUsage::default(),
            largest_call_tokens: Some(174_000),
            limit_tokens: Some(200_000),
            context_exhaustion_risk: true,
            cost_usd: Some("2.41".to_owned()),
            verdict: None,
            evidence: vec!["<u>".to_owned()],
            findings: None,
            started_at: Some("2026-11-26 10:00:00".to_owned()),
            updated_at: None,
            ended_at: Some("2026-11-26 11:12:00".to_owned()),
            is_supervised: true,
            machine: None,
        }
    }

    #[test]
    fn a_card_reports_run_progress_and_escapes_foreign_text() {
        let shown = cards([&run("running")]).into_string();
        for part in ["at risk", "87%", "of 200k", "2 of 3", "$2.41", "1 h 12 min"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(
            !shown.contains("<script>") && !shown.contains("<b>\u{202e}") && !shown.contains("<u>"),
            "{shown}"
        );
        assert_eq!(shown.matches("class=\"done\"").count(), 1);
        assert_eq!(cards([&run("succeeded")]).into_string().matches("class=\"done\"").count(), 2);
    }
}
