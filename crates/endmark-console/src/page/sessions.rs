//! Lists the newest sessions, and plots the context of one session.

use std::sync::Arc;

use endmark_context::Models;
use endmark_store::{Fleet, FleetRecords, SharedReader, Store, UsageRow};
use maud::{Markup, html};

use super::layout::{self, PageFrame, card, figure, percent_encode, scroll};
use super::plot::{Bar, Column, ColumnPlot, Segment, format_percent};
use super::{display, output, runs, usage};
use crate::answer::ConsoleError;
use crate::console::Console;
use crate::query::Query;
use crate::reading;
use crate::reports::requests::{is_recovery, total_usage};
use crate::reports::session::SessionReport;

/// The address of the list.
const LIST_PATH: &str = "/endmark/sessions";

/// Number of newest requests whose sessions are listed.
const MAX_SCANNED_REQUESTS: u32 = 5_000;

/// Maximum number of a session's calls that are drawn. Older calls are omitted.
const MAX_DRAWN_CALLS: u32 = 400;

/// Lists the newest sessions.
pub(super) async fn list_page(
    console: &Console,
    store: &Store,
    query: Option<&str>,
) -> Result<Markup, ConsoleError> {
    Query::parse(query, &[])?;
    let of_all = async |reader: SharedReader| reader.newest_sessions(MAX_SCANNED_REQUESTS).await;
    let fleet = Fleet::of(store);
    let read = fleet.read(of_all, |reader| reader.newest_sessions(MAX_SCANNED_REQUESTS));
    let FleetRecords { records: calls, failure } = read.await?;
    let now = display::unix_now();
    let content = html! {
        (layout::lead(&html! { "Sessions" }, &html! { p.muted { "The newest conversations, and how full their context is. "
            a href="/endmark/usage?by=session" { "What each one cost" } }
            (layout::gateway_alone_note(failure.is_some())) }))
        section.card aria-label="Sessions" {
            @if calls.is_empty() { p.muted { "No session is recorded. Requests of one conversation share one, by " code { "x-endmark-session" } " or by their first message." } }
            @else { table.rows {
                thead { tr { th scope="col" { "Session" } th scope="col" { "Context" } th scope="col" { "Model" } th.when scope="col" { "Last request" } } }
                tbody { @for call in &calls { tr {
                    td.first { (layout::session(&call.session)) }
                    td.what { (format_context(&console.models, call)) }
                    td { (display::name(&call.model)) span.sub { (display::name(&call.upstream)) " · " (layout::client(call.credential.as_deref().unwrap_or_default())) } }
                    td.when { (display::time_ago(now, &call.started_at)) }
                } } }
            } }
        }
    };
    Ok(PageFrame {
        current_address: LIST_PATH,
        title: "Sessions",
        refresh_seconds: Some(10),
        ..PageFrame::default()
    }
    .page(console, &content))
}

/// Shows the tokens of a call's prompt and reply, compared with its model's limit.
fn format_context(models: &Models, call: &UsageRow) -> Markup {
    let tokens = context_segments(call).iter().map(|segment| segment.amount).sum();
    let limit = context_limit(models, call);
    html! {
        @if let Some(limit) = limit {
            @let percent = display::share(tokens, limit);
            (Bar { class: if percent >= 80.0 { "bad" } else { "history" }, spent: percent, height: 8, ..Bar::default() }
                .draw(&format!("{percent:.0} percent of the context")))
        }
        span.sub { (display::tokens(tokens)) @if let Some(limit) = limit { " of " (display::tokens(limit)) } " tokens" }
    }
}

fn context_limit(models: &Models, call: &UsageRow) -> Option<u64> {
    models.find(&call.model).and_then(|model| model.context_tokens.or(model.max_input_tokens))
}

/// Returns the parts of a call's context: prompt tokens from the cache, the rest of the prompt, and the
/// output. Numbers that were not reported are estimated.
fn context_segments(call: &UsageRow) -> [Segment; 3] {
    let (_, sums) = endmark_store::classify(call);
    [
        Segment { class: "history", amount: sums.cached },
        Segment { class: "tools", amount: sums.prompt.saturating_sub(sums.cached) },
        Segment { class: "output", amount: sums.completion },
    ]
}

/// A turn of a session, represented by the first call of a request, which has the complete context.
struct Turn<'a> {
    call: &'a UsageRow,
    cut: bool,
}

/// Shows one session.
pub(super) async fn session_page(
    console: &Console,
    store: &Store,
    query: Option<&str>,
    id: &str,
) -> Result<Markup, ConsoleError> {
    Query::parse(query, &[])?;
    let (report, mut calls) = reading::load_session(console, store, id, MAX_DRAWN_CALLS).await?;
    let count = report.usage.total.calls;
    calls.reverse();
    let turns: Vec<Turn<'_>> = turns(&calls);
    let models = Arc::clone(&console.models);
    let content = html! {
        (head(&report, &turns, count, &models))
        (layout::gateway_alone_note(report.usage.this_gateway_alone))
        @if !report.of_this_gateway.is_empty() { p.muted { "Its compactions, capped outputs and runs are those of this gateway." } }
        (figures(&report, &calls, &turns, &models))
        @if !turns.is_empty() { (draw_context_plot(&report, &turns, count, &models)) }
        div.columns.loose {
            @if !report.outputs.is_empty() { (outputs(&report)) }
            @if !report.compactions.is_empty() { (compactions(&report, &turns)) }
        }
        (card("usage", &html! { "What it used" }, &html! { a.more href={ "/endmark/requests?session=" (percent_encode(&report.session)) } { "Its requests" } },
            &usage::table(&report.usage)))
        @if !report.runs.is_empty() { h2 { "Runs" } (runs::cards(&report.runs)) }
    };
    let json = Some(format!("/endmark/api/sessions/{}", percent_encode(&report.session)));
    Ok(PageFrame {
        current_address: LIST_PATH,
        title: "A session",
        json,
        refresh_seconds: Some(10),
        refresh_events: None,
    }
    .page(console, &content))
}

fn turns(calls: &[UsageRow]) -> Vec<Turn<'_>> {
    let replies = calls.iter().filter(|call| !is_recovery(call) && call.purpose != "summary");
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for call in replies {
        let cut = call.verdict.as_deref() == Some("cut");
        match turns.last_mut() {
            // A repeated call belongs to the same turn.
            Some(turn) if turn.call.request_id == call.request_id => {
                *turn = Turn { call, cut: cut || turn.cut }
            }
            _ => turns.push(Turn { call, cut }),
        }
    }
    turns
}

fn head(report: &SessionReport, turns: &[Turn<'_>], count: u64, models: &Models) -> Markup {
    let newest = turns.last().map(|turn| turn.call);
    let compacted = report.compactions.len() as u64;
    let cut = turns.iter().filter(|turn| turn.cut).count() as u64;
    let state = html! {
        @if let Some(call) = newest {
            b { (display::tokens(context_tokens(call))) }
            @if let Some(limit) = context_limit(models, call) { " of " (display::tokens(limit)) }
            " tokens are in use after " b { (display::count_with_noun(count, "call", "calls")) } ". "
        }
        @match compacted { 0 => {}, 1 => { "Compacted " b { "once" } "; " }, 2 => { "Compacted " b { "twice" } "; " }, times => { "Compacted " b { (times) } " times; " } }
        @match cut {
            0 => (if compacted == 0 { "Nothing was cut." } else { "nothing was cut." }),
            cut => { b { (display::count_with_noun(cut, "reply was", "replies were")) } " cut." },
        }
    };
    html! { div.lead { div {
        p.crumb { a href=(LIST_PATH) { "Sessions" } " / " (layout::hash(&report.session)) }
        h1.state { (state) }
        @if let Some(call) = newest { p.muted {
            (display::name(&call.model)) " at " (display::name(&call.upstream)) ", " (layout::client(call.credential.as_deref().unwrap_or_default()))
            @for run in &report.runs { ", run " a.nowrap href={ "/endmark/runs/" (percent_encode(&run.id)) } { (runs::name(run)) } }
            ", last request " (display::time_ago(display::unix_now(), &call.started_at))
        } }
    } } }
}

fn context_tokens(call: &UsageRow) -> u64 {
    context_segments(call).iter().map(|segment| segment.amount).sum()
}

fn figures(report: &SessionReport, calls: &[UsageRow], turns: &[Turn<'_>], models: &Models) -> Markup {
    let newest = turns.last().map(|turn| turn.call);
    let now = newest.map_or(0, context_tokens);
    let recoveries = total_usage(calls.iter().filter(|call| is_recovery(call)), models);
    let all = &report.usage.total;
    let kept: u64 = report.outputs.iter().map(|output| output.bytes).sum();
    html! { dl.figures {
        @match newest.and_then(|call| context_limit(models, call)) {
            Some(limit) => (figure("Context now", &html! { (display::percent(now, limit)) small { "%" } }, &html! {},
                &html! { (display::tokens(now)) " of the model’s " (display::tokens(limit)) })),
            None => (figure("Context now", &html! { (display::tokens(now)) }, &html! {}, &html! { "tokens; the limit of the model is unknown" })),
        }
        (figure("Cost", &display::cost(all), &html! {}, &html! {
            @if recoveries.calls == 0 { "nothing for recoveries" } @else { (display::cost(&recoveries)) " for recoveries" }
        }))
        (figure("Read from the cache", &html! { (display::percent(all.cached_tokens, all.prompt_tokens)) small { "%" } }, &html! {},
            &html! { "of " (display::tokens(all.prompt_tokens)) " prompt tokens" }))
        (figure("Kept out of the context", &html! { (display::bytes(kept)) }, &html! {},
            &html! { "in " (display::count_with_noun(report.outputs.len() as u64, "capped output", "capped outputs")) }))
    } }
}

/// Plots the tokens of each turn, the compactions, the capped results, and the model's limit as a line.
fn draw_context_plot(report: &SessionReport, turns: &[Turn<'_>], count: u64, models: &Models) -> Markup {
    let first_turn = count.saturating_sub(turns.len() as u64);
    let is_dense = turns.len() > 40;
    let every = if is_dense { 10 } else { 5 };
    let columns: Vec<Column> = turns
        .iter()
        .zip(1_u64..)
        .map(|(turn, number)| {
            let segments = context_segments(turn.call);
            let [cached, prompt, output] = segments.map(|segment| display::tokens(segment.amount));
            let cut = if turn.cut { " The reply was cut." } else { "" };
            Column {
                title: format!("Turn {number}: {cached} from the cache, {prompt} of other prompt, {output} of output.{cut}"),
                label: [if number == 1 || number.is_multiple_of(every) { number.to_string() } else { String::new() }, String::new()],
                segments: segments.to_vec(),
                ..Column::default()
            }
        })
        .collect();
    let limit = turns.last().and_then(|turn| context_limit(models, turn.call));
    let highest = turns.iter().map(|turn| context_tokens(turn.call)).max().unwrap_or(0);
    // Do not draw a much higher limit, because it would make the columns too flat.
    let shown_limit = limit.filter(|limit| *limit <= highest.saturating_mul(12));
    let label = format!(
        "Tokens of the context by turn: {} turns, {} now, {} at most.",
        turns.len(),
        display::tokens(turns.last().map_or(0, |turn| context_tokens(turn.call))),
        display::tokens(highest)
    );
    let plot = ColumnPlot {
        label: &label,
        columns: &columns,
        height: 222.0,
        format_tick: display::tokens,
        min_axis_end: shown_limit.unwrap_or(0),
    };
    let scale = plot.scale();
    let base = scale.y(0);
    let over = html! {
        @if let Some(limit) = shown_limit {
            line.limit-line x1="0" x2="100%" y1=(scale.y(limit)) y2=(scale.y(limit)) {}
        }
        @for compaction in &report.compactions {
            @let at = turn_after(&compaction.created_at, turns).saturating_sub(1);
            @let (centre, width) = plot.column_position(at);
            @let (x, y) = (format_percent(centre - width / 2.0), scale.y(compaction.tokens_before) - 10.0);
            line.event-line x1=(x) x2=(x) y1=(y + 8.0) y2=(base) {}
            svg x=(x) y=(y) overflow="visible" {
                path.event-mark d="M-5 0h10l-5 8z" {}
                text.event-text.wide x=(if centre > 50.0 { "-10" } else { "10" }) y="8" text-anchor=(if centre > 50.0 { "end" } else { "start" }) {
                    (display::tokens(compaction.tokens_before)) " → " (display::tokens(compaction.tokens_after))
                }
            }
        }
        @for output in &report.outputs {
            @let (centre, _) = plot.column_position(turn_after(&output.created_at, turns).saturating_sub(1));
            svg x=(format_percent(centre)) y=(base + 3.0) overflow="visible" { rect.capped x="-2.5" width="5" height="5" {} }
        }
    };
    let legend = html! { ul.legend {
        li.output { "output" } li.tools { "prompt" } li.history { "prompt, from the cache" }
        @if !report.outputs.is_empty() { li.capped { "a capped output" } }
        @if let Some(limit) = shown_limit { li.line.limit { "limit of the model, " (display::tokens(limit)) } }
    } };
    let more = html! { @if first_turn > 0 && count > u64::from(MAX_DRAWN_CALLS) { p.muted.small { "The newest " (turns.len()) " turns are drawn." } } };
    card(
        "context",
        &html! { "The context, turn by turn" },
        &legend,
        &html! { (plot.draw(&over)) (more) (table(turns)) },
    )
}

/// Returns the number of the first turn that began after this time, or of the last turn. Numbers begin at 1.
fn turn_after(at: &str, turns: &[Turn<'_>]) -> usize {
    // Compare whole seconds, because some times have no milliseconds.
    let second = |at: &str| at.get(..19).unwrap_or(at).to_owned();
    let found = turns.iter().position(|turn| second(&turn.call.started_at) >= second(at));
    found.map_or(turns.len(), |at| at + 1)
}

fn table(turns: &[Turn<'_>]) -> Markup {
    let rows = html! { table {
        thead { tr { th scope="col" { "Turn" } th.num scope="col" { "From the cache" } th.num scope="col" { "Other prompt" } th.num scope="col" { "Output" } th.num scope="col" { "Sum" } } }
        tbody { @for (turn, number) in turns.iter().zip(1_u64..) { tr {
            th scope="row" { a href={ "/endmark/requests/" (percent_encode(&turn.call.request_id)) } { (number) } }
            @for segment in context_segments(turn.call) { td.num { (display::count(segment.amount)) } }
            td.num { (display::count(context_tokens(turn.call))) }
        } } }
    } };
    html! { details.data { summary { "Show as a table" } div.tall { (scroll("Tokens by turn", &rows)) } } }
}

fn outputs(report: &SessionReport) -> Markup {
    let now = display::unix_now();
    let heading = html! { "Capped outputs " span.count { (report.outputs.len()) } };
    card(
        "outputs",
        &heading,
        &html! { @if !report.outputs.is_empty() { span.muted.small { "The whole output opens in the reader" } } },
        &html! {
            @if report.outputs.is_empty() { p.muted { "No result of a tool was shortened in it first." } }
            @else { table.rows {
                thead { tr { th scope="col" { "Output" } th scope="col" { "Format" } th.num scope="col" { "Size" } th.when scope="col" { "When" } } }
                tbody { @for kept in &report.outputs { tr {
                    td.what { (output::link(&kept.handle)) }
                    td { bdi { (kept.format) } }
                    td.num { (display::bytes(kept.bytes)) span.sub { (display::count_with_noun(kept.lines, "line", "lines")) } }
                    td.when { (display::time_ago(now, &kept.created_at)) }
                } } }
            } }
        },
    )
}

fn compactions(report: &SessionReport, turns: &[Turn<'_>]) -> Markup {
    let now = display::unix_now();
    let heading = html! { "Compactions " span.count { (report.compactions.len()) } };
    card(
        "compactions",
        &heading,
        &html! {},
        &html! { ul.items { @for row in &report.compactions { li {
            span.point.active {}
            div {
                @let name = html! { "Before turn " (turn_after(&row.created_at, turns)) ": " (display::tokens(row.tokens_before)) " → " (display::tokens(row.tokens_after)) };
                @match &row.handle {
                    Some(handle) => a href={ "/endmark/outputs/" (percent_encode(handle)) } { (name) },
                    None => b { (name) },
                }
                p { (display::count_with_noun(row.turns, "turn", "turns")) " condensed"
                    @if !row.dropped.is_empty() { "; no longer in full: " (output::describe_dropped(row)) } ". " (display::time_ago(now, &row.created_at)) }
            }
        } } } },
    )
}
