//! Shows one request: its figures, its timeline, its seams and its details.

mod seam;

use endmark_store::{Recovery, RecoveryRow, RequestRecords, RequestRow, Store, UsageRow};
use endmark_wire::percent_decode;
use maud::{Markup, html};

use super::display;
use super::layout::{self, PageFrame, card, chip, figure, percent_encode};
use super::plot::{format_percent, ticks};
use super::requests::{self, describe_request, parse_milliseconds};
use crate::answer::ConsoleError;
use crate::console::Console;
use crate::query::Query;
use crate::reading;
use crate::reports::NotAsked;
use crate::reports::requests::{is_recovery, total_usage};
use crate::reports::usage::Total;

/// A mark on the timeline: milliseconds since the start of the request, CSS class, name and description.
struct TimelineMark {
    at: f64,
    class: &'static str,
    name: &'static str,
    about: String,
}

/// Shows a request by its id, or by the number of one of its recoveries.
pub(super) async fn page(
    console: &Console,
    store: &Store,
    query: Option<&str>,
    id: &str,
) -> Result<Markup, ConsoleError> {
    Query::parse(query, &[])?;
    let id = percent_decode(id);
    let RequestRecords { recovery, request: row } = reading::load_recovery(store, &id).await?;
    let content = match (&row, &recovery) {
        (Some(row), _) => request(console, row, recovery.as_ref()),
        (None, recovery) => html! {
            (layout::lead(&html! { "A recovery without its calls" }, &html! { p.muted { "The calls of this request are not recorded." } }))
            @if let Some(recovery) = recovery { (seams(recovery)) }
        },
    };
    let json = Some(format!("/endmark/api/recoveries/{}", percent_encode(&id)));
    Ok(PageFrame { current_address: requests::LIST_PATH, title: "A request", json, ..PageFrame::default() }
        .page(console, &content))
}

fn request(console: &Console, row: &RequestRow, recovery: Option<&Recovery>) -> Markup {
    let Some(first) = row.calls.first() else { return html! {} };
    let (what, more) = describe_request(row);
    let turn =
        recovery.and_then(|found| found.rows.first()).map(|cut| cut.turn_number).filter(|turn| *turn > 0);
    html! {
        div.lead { div {
            p.crumb { a href=(requests::LIST_PATH) { "Requests" } " / " bdi.id { (first.request_id) } }
            h1 { (what) " " (chip(&row.outcome)) }
            p.muted {
                @if let Some(more) = &more { bdi { (more) } ". " }
                (display::name(&first.model)) " at " (display::name(&first.upstream)) ", " (layout::client(first.credential.as_deref().unwrap_or_default()))
                @if !first.session.is_empty() { ", session " (layout::session(&first.session)) }
                @if let Some(turn) = turn { ", turn " (turn) }
                ", " (display::time_ago(display::unix_now(), &first.started_at))
            }
        } }
        (figures(console, row))
        (timeline(console, row, recovery))
        @if let Some(recovery) = recovery { (seams(recovery)) }
        (facts(row))
    }
}

/// Shows the seams of a recovery, with details of each part.
fn seams(recovery: &Recovery) -> Markup {
    html! {
        @for cut in &recovery.rows {
            (seam::seams_of_cut(cut, &recovery.row_pieces(cut.id).collect::<Vec<_>>()))
            (cut_facts(cut, recovery))
        }
    }
}

fn figures(console: &Console, row: &RequestRow) -> Markup {
    let (all, extra) = (
        total_usage(&row.calls, &console.models),
        total_usage(row.calls.iter().filter(|call| is_recovery(call)), &console.models),
    );
    let took = requests::duration_ms(row);
    let first_took = row.calls.first().and_then(|call| call.total_ms);
    let longer = took.zip(first_took).map(|(took, first)| took - first).filter(|longer| *longer >= 1.0);
    let failed = row.calls.iter().filter(|call| has_failed(call)).count() as u64;
    let for_rest = |amount: &Markup| html! { @if extra.calls > 0 { (amount) " for the recovery" } @else { "one reply" } };
    let (value, unit) = took.map_or(("unknown".to_owned(), String::new()), |took| {
        let text = display::duration(took);
        match text.split_once(' ') {
            Some((value, unit)) if !unit.contains(' ') => (value.to_owned(), format!(" {unit}")),
            _ => (text, String::new()),
        }
    });
    html! { dl.figures {
        (figure("Took", &html! { (value) small { (unit) } }, &html! {}, &html! {
            @match longer { Some(longer) => { (display::duration(longer)) " longer than the first call" }, None => "from the first call to the last byte" }
        }))
        (figure("Calls", &html! { (row.calls.len()) }, &html! {}, &html! {
            (display::count(extra.calls)) " for the recovery" @if failed > 0 { ", " (failed) " failed" }
        }))
        (figure("Tokens", &html! { (display::count(all.prompt_tokens + all.completion_tokens)) }, &html! {},
            &for_rest(&html! { (display::count(extra.prompt_tokens + extra.completion_tokens)) })))
        (figure("Cost", &display::cost(&all), &html! {}, &for_rest(&display::cost(&extra))))
    } }
}

fn has_failed(call: &UsageRow) -> bool {
    call.http_status.is_none_or(|status| status >= 400)
}

/// Draws the timeline. Each call is a bar, and each decision between calls is a mark.
fn timeline(console: &Console, row: &RequestRow, recovery: Option<&Recovery>) -> Markup {
    let began = row.calls.first().and_then(|call| parse_milliseconds(&call.started_at)).unwrap_or(0.0);
    let begin_of = |call: &UsageRow| (parse_milliseconds(&call.started_at).unwrap_or(began) - began).max(0.0);
    let end_of = |call: &UsageRow| begin_of(call) + call.total_ms.unwrap_or(0.0);
    let whole = row.calls.iter().map(end_of).fold(1.0, f64::max);
    let cut_call =
        row.calls.iter().position(|call| call.verdict.as_deref() == Some("cut") && !is_recovery(call));
    let last_recovery = row.calls.iter().rposition(is_recovery);
    let legend = html! { ul.legend {
        li.history { "answer arriving" } li.history.light { "waiting for the first byte" }
        @if row.calls.iter().any(has_failed) { li.bad { "failed" } }
    } };
    let lines = html! {
        @for (at, call) in row.calls.iter().enumerate() {
            (draw_call(call, begin_of(call), whole, &total_usage([call], &console.models)))
            @if cut_call == Some(at) { @if let Some(cut) = row.cuts.first() {
                (stage_line(&TimelineMark { at: end_of(call), class: "cut", name: "Cut detected", about: describe_verdict(recovery, cut) }, whole))
            } }
            @if last_recovery == Some(at) { (stage_line(&outcome_mark(row, end_of(call)), whole)) }
        }
        @if last_recovery.is_none() { @if let (Some(call), Some(cut)) = (row.calls.last(), row.cuts.first()) {
            (stage_line(&TimelineMark { at: end_of(call), class: "other", name: "Nothing was asked", about: cut.reason.clone() }, whole))
        } }
    };
    let content = html! { table.course {
        thead { tr {
            th scope="col" { "Stage" } th scope="col" { "Since the request" } th.num scope="col" { "Took" }
            th.num scope="col" { "Tokens" } th.num scope="col" { "Cost" }
        } }
        tbody { (lines) }
        tfoot aria-hidden="true" { tr { td {} td.lane { svg aria-hidden="true" { (draw_axis(whole)) } } td {} td {} td {} } }
    } };
    card("course", &html! { "Timeline" }, &legend, &content)
}

fn describe_verdict(recovery: Option<&Recovery>, cut: &RecoveryRow) -> String {
    let piece = recovery.and_then(|recovery| recovery.row_pieces(cut.id).next());
    piece.map_or_else(|| format!("kind: {}", cut.cut_kind), |piece| piece.why.clone())
}

fn outcome_mark(row: &RequestRow, at: f64) -> TimelineMark {
    let reason = row.cuts.first().map(|cut| cut.reason.clone()).unwrap_or_default();
    let (class, name) = match row.outcome.as_str() {
        "resumed" => ("resumed", "Joined"),
        "restarted" => ("restarted", "Generated again"),
        "corrected" => ("corrected", "Corrected"),
        "exhausted" => ("exhausted", "Given up"),
        "cancelled" => ("other", "Cancelled by the client"),
        _ => ("other", "Settled"),
    };
    TimelineMark { at, class, name, about: reason }
}

fn draw_grid(whole: f64) -> Markup {
    html! { @for (percent, _) in axis_ticks(whole) { line.gridline x1=(format_percent(percent)) x2=(format_percent(percent)) y1="-21" y2="39" {} } }
}

/// Returns the ticks of the time axis: their positions in percent, and their labels.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "pixels are coarser"
)]
fn axis_ticks(whole: f64) -> Vec<(f64, String)> {
    // Use whole seconds if the request lasted at least two seconds.
    let (unit, name) = if whole < 2_000.0 { (1.0, "0 ms") } else { (1_000.0, "0 s") };
    let at = |tick: u64| tick as f64 * unit;
    let ticks = ticks((whole / unit) as u64).into_iter().filter(|tick| at(*tick) <= whole);
    ticks
        .map(|tick| (at(tick) * 100.0 / whole, if tick == 0 { name.to_owned() } else { tick.to_string() }))
        .collect()
}

fn draw_axis(whole: f64) -> Markup {
    html! { @for (percent, name) in axis_ticks(whole) {
        line.tick.faint x1=(format_percent(percent)) x2=(format_percent(percent)) y1="0" y2="5" {}
        text x=(format_percent(percent)) y="18" text-anchor=(if percent == 0.0 { "start" } else if percent > 97.0 { "end" } else { "middle" }) { (name) }
    } }
}

fn draw_call(call: &UsageRow, begin: f64, whole: f64, total: &Total) -> Markup {
    let took = call.total_ms.unwrap_or(0.0);
    let wait = call.first_byte_ms.unwrap_or(if has_failed(call) { 0.0 } else { took }).min(took);
    let share = |value: f64| format_percent(value * 100.0 / whole);
    let class = if has_failed(call) { "bad" } else { "history" };
    let status = call.http_status.map_or_else(|| "no answer".to_owned(), |status| status.to_string());
    let stop = call.stop.as_deref().map(|stop| format!(", ended by {stop}"));
    let none = total.prompt_tokens + total.completion_tokens == 0;
    html! { tr {
        th scope="row" {
            b { "Call " (call.call) ": " (describe_purpose(&call.purpose)) }
            span.sub { (status) @if let Some(stop) = stop { bdi { (stop) } } @if call.ending != "clean" { ", " bdi { (call.ending) } } ", " (display::name(&call.upstream)) }
        }
        td.lane { svg aria-hidden="true" {
            (draw_grid(whole))
            @if wait > 0.0 { rect class={ "wait " (class) } x=(share(begin)) y="4" width=(share(wait)) height="10" {} }
            @if took > wait || wait == 0.0 { rect class={ "seg " (class) } x=(share(begin + wait)) y="4" width=(share((took - wait).max(whole / 300.0))) height="10" {} }
        } }
        td.num { @match call.total_ms { Some(took) => (display::duration(took)), None => "unknown" } }
        td.num data-name="tokens" { @if none { "none" } @else { (display::count(total.prompt_tokens)) " → " (display::count(total.completion_tokens)) } }
        td.num data-name="cost" { @if none { "none" } @else { (display::cost(total)) } }
    } }
}

fn describe_purpose(purpose: &str) -> &str {
    match purpose {
        "reply" => "the reply",
        "retry" => "tried again",
        "fallback" => "another upstream",
        "resume" => "the rest",
        "correction" => "correction of the form",
        "closing" => "the last of its session",
        "read" => "after reading a kept output",
        "summary" => "summary of the older turns",
        other => other,
    }
}

fn stage_line(stage: &TimelineMark, whole: f64) -> Markup {
    let place = format_percent((stage.at * 100.0 / whole).min(100.0));
    html! { tr.stage {
        th scope="row" { b { (stage.name) } span.sub { bdi { (stage.about) } } }
        td.lane { svg aria-hidden="true" {
            (draw_grid(whole))
            line class={ "drop " (stage.class) } x1=(place) x2=(place) y1="0" y2="18" {}
            svg x=(place) y="4" overflow="visible" { rect class={ "mark " (stage.class) } x="-5" width="10" height="10" rx="1" {} }
        } }
        td.num { "at " (display::duration(stage.at)) } td {} td {}
    } }
}

fn facts(row: &RequestRow) -> Markup {
    let Some(call) = row.calls.first() else { return html! {} };
    let streamed = if call.streamed { "streamed" } else { "not streamed" };
    let seconds = display::parse_seconds(&call.started_at).unwrap_or_default();
    card(
        "facts",
        &html! { "Facts" },
        &html! {},
        &html! { dl.facts {
            div { dt { "Request" } dd.id { bdi { (call.request_id) } } }
            div { dt { "Received" } dd { (display::full_time(seconds)) } }
            div { dt { "Format" } dd { (call.format) ", " (streamed) } }
            div { dt { "Mode" } dd { (call.mode) } }
            @if let Some(answered) = call.answered_model.as_deref().filter(|answered| *answered != call.model) {
                div { dt { "Model that answered" } dd { (display::name(answered)) } }
            }
            div { dt { "Sent" } dd { (display::bytes(call.sent_bytes)) } }
            @if let Some(received) = call.received_bytes { div { dt { "Received from the upstream" } dd { (display::bytes(received)) } } }
            @if let Some(cached) = call.tokens.cached { div { dt { "Read from the cache" } dd { (display::count_with_noun(cached, "token", "tokens")) } } }
            @if let Some(reasoning) = call.tokens.reasoning { div { dt { "Reasoning" } dd { (display::count_with_noun(reasoning, "token", "tokens")) } } }
        } },
    )
}

fn cut_facts(cut: &RecoveryRow, recovery: &Recovery) -> Markup {
    let heading = html! { "The cut part: " bdi { (cut.slot) } };
    card(
        &format!("cut-{}", cut.id),
        &heading,
        &chip(&cut.outcome),
        &html! { dl.facts {
            @match &cut.other_gateway {
                Some(other) => div { dt { "Its texts" } dd { "are on the machine " bdi { (other.machine) } ", in " (display::count_with_noun(other.pieces, "piece", "pieces")) } },
                None => div { dt { "Recovery" } dd { (cut.id) } },
            }
            div { dt { "Verdict" } dd { (cut.final_status.name().to_lowercase()) ": " bdi { (cut.reason) } } }
            div { dt { "Cut by" } dd { bdi { (cut.cut_kind) } @if let Some(length) = cut.initial_chunk_length { ", after " (length) " bytes" } } }
            @if let Some(index) = cut.truncation_index { div { dt { "Settled up to" } dd { "byte " (index) } } }
            div { dt { "Attempts" } dd { (cut.resume_attempts) } }
            @if let Some(style) = &cut.seam_style { div { dt { "Seam" } dd { bdi { (style) } } } }
            @if let Some(not_asked) = NotAsked::from_row(cut) { div { dt { "To have it resumed" } dd { (not_asked.remedy) } } }
            @for piece in recovery.row_pieces(cut.id) {
                div {
                    dt { "Piece " (piece.ordinal) ", SHA-256" }
                    dd { bdi.id title=(piece.sha256) { (piece.sha256.chars().take(16).collect::<String>()) } ", " bdi { (piece.judged) } ": " bdi { (piece.why) } }
                }
            }
        } },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeline_has_round_steps_in_a_suitable_unit() {
        let names = |whole| axis_ticks(whole).into_iter().map(|(_, name)| name).collect::<Vec<_>>();
        assert_eq!(names(26_720.0), ["0 s", "10", "20"]);
        assert_eq!(names(12_200.0), ["0 s", "5", "10"]);
        assert_eq!(names(430.0), ["0 ms", "100", "200", "300", "400"]);
        assert_eq!(names(1.0), ["0 ms", "1"]);
    }
}
