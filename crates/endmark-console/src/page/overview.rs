//! The overview page, which answers one question: is work being lost, and at what cost?

mod attention;
mod getting_started;

use std::collections::BTreeMap;
use std::sync::Arc;

use endmark_context::Models;
use endmark_store::{
    Dimension, Fleet, FleetRecords, Reader, RequestFilter, RequestRow, SharedReader, StoreError, UsageRow,
};
use maud::{Markup, html};

use super::layout::{PageFrame, card, figure, scroll};
use super::plot::{Column, ColumnPlot, Segment, draw_sparkline};
use super::{display, requests};
use crate::answer::ConsoleError;
use crate::console::{Console, ConsoleRequest};
use crate::query::Query;
use crate::reports::cuts::{self, CutData};
use crate::reports::span::moment_before;
use crate::reports::usage::{ALL_TIME, UsageKey, UsageReport as Sums};

/// The address of the page.
const PAGE_PATH: &str = "/endmark/";

/// Maximum recoveries on the page.
const MAX_NEWEST_RECOVERIES: u32 = 7;

/// Minimum number of replies for which a share is shown in percent.
const MIN_REPLIES_FOR_PERCENT: u64 = 100;

const HOUR_SECONDS: u64 = 3_600;
const DAY_SECONDS: u64 = 24 * HOUR_SECONDS;

/// The outcomes of cut replies in a plot, from bottom to top, each with its CSS class and its name in the
/// legend.
const OUTCOME_SEGMENTS: [(&str, &str); 6] = [
    ("resumed", "resumed"),
    ("restarted", "restarted"),
    ("corrected", "corrected"),
    ("cut", "left cut"),
    ("exhausted", "exhausted"),
    ("other", "cancelled or interrupted"),
];

/// A time span: its parameter, its label, its name in a sentence, the name of the preceding span, and its
/// length in seconds.
type TimeSpan = (&'static str, &'static str, &'static str, &'static str, u64);

/// The time spans that the page offers.
const TIME_SPANS: [TimeSpan; 3] = [
    ("24h", "24 hours", "in the last 24 hours", "the day before", DAY_SECONDS),
    ("7d", "7 days", "this week", "the week before", 7 * DAY_SECONDS),
    ("30d", "30 days", "in the last 30 days", "the month before", 30 * DAY_SECONDS),
];

/// The data of the page.
struct OverviewData {
    now: u64,
    found: CutData,
    before: CutData,
    sums: Sums,
    sums_before: Sums,
    /// Number of replies by hour, for the last day.
    hours: BTreeMap<String, u64>,
    newest: Vec<RequestRow>,
    /// The first requests in chronological order, if there are only a few requests.
    first: Vec<RequestRow>,
    /// Start time of the first call.
    began: Option<String>,
    calls: Vec<UsageRow>,
}

impl OverviewData {
    fn read(reader: &Reader, seconds: u64, models: &Models) -> Result<Self, StoreError> {
        let (since, long_since) =
            (reader.time_before(seconds)?, reader.time_before(seconds.saturating_mul(2))?);
        let any_cut = RequestFilter { outcome: Some("any-cut".to_owned()), ..RequestFilter::default() };
        let (mut hours, day) = (BTreeMap::new(), reader.time_before(DAY_SECONDS - HOUR_SECONDS)?);
        let until = reader.time_before(0)?;
        reader.sums((Dimension::Nothing, None), &day, &until, |summed| {
            let hour = summed.started_at.get(..13).unwrap_or(summed.started_at).to_owned();
            *hours.entry(hour).or_default() += summed.sums.judged;
        })?;
        let mut first = reader.requests(&RequestFilter::default(), 20)?.rows;
        first.reverse();
        Ok(Self {
            now: display::unix_now(),
            found: CutData::read(reader, seconds, models)?,
            before: CutData::read_before(reader, seconds, models)?,
            sums: Sums::read(reader, UsageKey::Day, &since, ALL_TIME.1, models)?,
            sums_before: Sums::read(reader, UsageKey::Day, &long_since, &since, models)?,
            hours,
            newest: reader.requests(&any_cut, MAX_NEWEST_RECOVERIES)?.rows,
            first,
            began: reader.first_call()?,
            calls: reader.recent_calls(attention::MAX_EXAMINED_CALLS)?,
        })
    }

    /// Reads the records of all gateways that share a database.
    async fn read_all_gateways(
        reader: &SharedReader,
        seconds: u64,
        models: &Models,
    ) -> Result<Self, StoreError> {
        let (since, long_since) = (moment_before(seconds), moment_before(seconds.saturating_mul(2)));
        let any_cut = RequestFilter { outcome: Some("any-cut".to_owned()), ..RequestFilter::default() };
        let (report, before) =
            (reader.report(&since, ALL_TIME.1).await?, reader.report(&long_since, &since).await?);
        let mut data = Self {
            now: display::unix_now(),
            found: CutData::of_all(&report, models),
            before: CutData::of_all(&before, models),
            sums: Sums::from_all_gateways(&report.sums, UsageKey::Day, models),
            sums_before: Sums::from_all_gateways(&before.sums, UsageKey::Day, models),
            hours: BTreeMap::new(),
            newest: reader.requests(&any_cut, MAX_NEWEST_RECOVERIES).await?.rows,
            first: Vec::new(),
            began: reader.first_call().await?,
            calls: reader.recent_calls(attention::MAX_EXAMINED_CALLS).await?,
        };
        if data.is_first_day() {
            data.hours = reader.replies_by_hour(&moment_before(DAY_SECONDS - HOUR_SECONDS)).await?;
            data.first = reader.requests(&RequestFilter::default(), 20).await?.rows;
            data.first.reverse();
        }
        Ok(data)
    }

    /// Whether the first call was made within the last day.
    fn is_first_day(&self) -> bool {
        self.began
            .as_deref()
            .and_then(display::parse_seconds)
            .is_none_or(|began| began + DAY_SECONDS > self.now)
    }
}

/// Numbers of replies in the selected time span.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ReplyCounts {
    replies: u64,
    cut: u64,
    recovered: u64,
    at_own_limit: u64,
    worth_a_look: u64,
}

impl ReplyCounts {
    fn new(report: &cuts::CutsReport<'_>) -> Self {
        let sum = |words: &[&str]| -> u64 {
            report.cuts.iter().filter(|cut| words.contains(&cut.outcome)).map(|cut| cut.replies).sum()
        };
        let at_own_limit = report.cuts.iter().map(|cut| cut.at_own_limit).sum();
        Self {
            replies: report.replies,
            cut: report.cut,
            recovered: sum(&["resumed", "restarted", "corrected"]),
            at_own_limit,
            worth_a_look: sum(&["cut", "exhausted", "interrupted"]).saturating_sub(at_own_limit),
        }
    }
}

/// Returns the overview page.
pub(super) async fn page(console: &Console, visit: &ConsoleRequest) -> Result<Markup, ConsoleError> {
    let store = &visit.store;
    let query = Query::parse(visit.head.uri.query(), &["span"])?;
    let typed = query.text("span").unwrap_or("7d");
    let span = TIME_SPANS.into_iter().find(|(name, ..)| *name == typed);
    let span = span
        .ok_or_else(|| ConsoleError::BadRequest(format!("`span` is `{typed}`: it can be 24h, 7d or 30d")))?;
    let models = Arc::clone(&console.models);
    let of_all =
        async |reader: SharedReader| OverviewData::read_all_gateways(&reader, span.4, &console.models).await;
    let fleet = Fleet::of(store);
    let read = fleet.read(of_all, move |reader| OverviewData::read(reader, span.4, &models));
    let FleetRecords { records: seen, failure } = read.await?;
    let report = cuts::CutsReport::new(&seen.found, span.0, console.continuation_tokens);
    let frame = PageFrame {
        current_address: PAGE_PATH,
        title: "Overview",
        json: Some(format!("/endmark/api/report?since={}", span.0)),
        refresh_seconds: Some(5),
        refresh_events: None,
    };
    if seen.began.is_none() {
        return Ok(frame.page(
            console,
            &getting_started::welcome_page(&visit.head.headers, store.refusals().len() as u64),
        ));
    }
    let before = cuts::CutsReport::new(&seen.before, span.0, console.continuation_tokens);
    let items = attention::items(console, store, &seen).await?;
    let (now, then) = (ReplyCounts::new(&report), ReplyCounts::new(&before));
    let is_first_day = seen.is_first_day();
    let content = html! {
        div.lead {
            div { (summary_line(now, report.requests, span)) (super::layout::gateway_alone_note(failure.is_some())) }
            @if !is_first_day { nav.switch aria-label="Span of time" {
                @for (name, words, ..) in TIME_SPANS {
                    a href={ (PAGE_PATH) "?span=" (name) } aria-current=[(name == span.0).then_some("true")] { (words) }
                }
            } }
        }
        (figures(visit, &seen, (now, &report), (then, &before), span.3))
        @if now.replies < MIN_REPLIES_FOR_PERCENT && is_first_day { (getting_started::squares(&seen.first)) }
        div.columns {
            @if is_first_day { (hourly_chart(&seen)) } @else { (daily_chart(&seen, now, span.4)) }
            @if !items.is_empty() { (attention::card(&items)) }
            @else if now.replies < MIN_REPLIES_FOR_PERCENT && is_first_day { (getting_started::next_steps(console)) }
        }
        @if seen.newest.is_empty() { @if report.cut == 0 { (nothing_cut_note()) } }
        @else { (card("newest", &html! { "Newest recoveries" }, &html! { a.more href="/endmark/requests" { "All requests" } },
            &requests::table(console, &seen.newest, requests::TableColumns::Recoveries))) }
    };
    Ok(frame.page(console, &content))
}

fn nothing_cut_note() -> Markup {
    card(
        "newest",
        &html! { "Newest recoveries" },
        &html! { a.more href="/endmark/requests" { "All requests" } },
        &html! {
            p.muted { "No reply was cut so far. When one is, its story is here: what came, what was asked, and where it was joined." }
        },
    )
}

/// States in one sentence whether work is being lost.
fn summary_line(counts: ReplyCounts, requests: u64, (since, _, when, ..): TimeSpan) -> Markup {
    let ReplyCounts { replies, cut, recovered: made_whole, worth_a_look, .. } = counts;
    let look = html! { a href={ "/endmark/requests?outcome=look&since=" (since) } { (display::count_with_noun(worth_a_look, "is worth a look", "are worth a look")) } };
    let enough = replies >= MIN_REPLIES_FOR_PERCENT;
    html! { h1.state {
        @if replies == 0 && requests == 0 { "No request came " (when) "." }
        @else if replies == 0 { b { (display::count_with_noun(requests, "request", "requests")) } " " (when) ", and no reply to look at." }
        @else if cut == 0 { b { (display::count_with_noun(replies, "reply", "replies")) } " " (when) ", and " b.good { "none was cut" } "." }
        @else {
            @if enough { b { (display::percent(cut, replies)) "%" } " of replies were cut " (when) ". " }
            @else { b { (display::count(cut)) } " of " b { (display::count_with_noun(replies, "reply", "replies")) } @if cut == 1 { " was" } @else { " were" } " cut " (when) ". " }
            @if made_whole == cut { b.good { @if cut == 1 { "It was made whole" } @else { "All of them were made whole" } } }
            @else if enough { b.good { (display::percent(made_whole, cut)) "%" } " of them were made whole" }
            @else { b.good { (display::count(made_whole)) } " of them " @if made_whole == 1 { "was" } @else { "were" } " made whole" }
            @if worth_a_look > 0 { "; " (look) } "."
        }
    } }
}

type PeriodReport<'a, 'b> = (ReplyCounts, &'a cuts::CutsReport<'b>);

/// Shows four large figures, each with its history and its change since the preceding span.
fn figures(
    visit: &ConsoleRequest,
    seen: &OverviewData,
    (now, report): PeriodReport<'_, '_>,
    (then, earlier): PeriodReport<'_, '_>,
    before: &str,
) -> Markup {
    let share = |part: u64, whole: u64| {
        html! {
            @if now.replies >= MIN_REPLIES_FOR_PERCENT { (display::percent(part, whole)) small { "%" } }
            @else { (display::count(part)) small { " of " (display::count(whole)) } }
        }
    };
    let comparable = then.replies >= MIN_REPLIES_FOR_PERCENT && now.replies >= MIN_REPLIES_FOR_PERCENT;
    let course = |of: fn(&[u64; 3]) -> (u64, u64), label: &str| {
        draw_sparkline(
            &daily_shares(&replies_by_day(&seen.found, report), of),
            &daily_shares(&replies_by_day(&seen.before, earlier), of),
            label,
        )
    };
    let cut_note = if comparable {
        change_in_points((now.cut, now.replies), (then.cut, then.replies), false, before)
    } else if now.replies < MIN_REPLIES_FOR_PERCENT {
        html! { "Percentages appear from " (MIN_REPLIES_FOR_PERCENT) " replies on" }
    } else {
        html! { (display::count(now.cut)) " of " (display::count(now.replies)) " replies" }
    };
    let own = html! { @if now.at_own_limit > 0 { (display::count(now.at_own_limit)) " reached their client’s own limit" } };
    let whole_note = if comparable && now.cut > 0 && then.cut > 0 {
        change_in_points((now.recovered, now.cut), (then.recovered, then.cut), true, before)
    } else if now.at_own_limit > 0 {
        own
    } else {
        html! { (display::count(now.recovered)) " of " (display::count_with_noun(now.cut, "cut reply", "cut replies")) }
    };
    html! { dl.figures {
        (figure("Replies cut", &html! { span id="cut" data-value=(now.cut) { (share(now.cut, now.replies)) } },
            &course(|[replies, cut, _]| (*cut, *replies), "Share of replies cut by day, and in the span before"), &cut_note))
        (figure("Made whole", &html! { span id="whole" data-value=(now.recovered) { (share(now.recovered, now.cut)) } },
            &course(|[_, cut, whole]| (*whole, *cut), "Share of cut replies made whole by day, and in the span before"), &whole_note))
        (cost(seen, report, before))
        @match visit.added_latency_ms {
            Some((p50, p95)) => (figure("Added latency", &html! { (milliseconds(p50)) small { " / " (milliseconds(p95)) " ms" } },
                &html! {}, &html! { "p50 / p95 since the gateway started" })),
            None => (figure("Added latency", &html! { "–" }, &html! {}, &html! { "measured from the next request on" })),
        }
    } }
}

fn cost(seen: &OverviewData, report: &cuts::CutsReport<'_>, before: &str) -> Markup {
    let (total, earlier) = (&seen.sums.total, seen.sums_before.total.nano_usd);
    let by_day = |sums: &Sums| -> Vec<f64> {
        #[expect(clippy::cast_precision_loss, reason = "a sparkline is coarse")]
        sums.rows.iter().map(|row| row.total.nano_usd as f64).collect()
    };
    let change = total.nano_usd.abs_diff(earlier).saturating_mul(100).checked_div(earlier);
    let note = html! {
        @match change {
            Some(0) => { "same as " (before) },
            Some(change) => span.delta title={ "compared with " (before) } { (change) "% " @if total.nano_usd > earlier { "more" } @else { "less" } },
            None => {},
        }
        @if change.is_some() { "; " }
        @if report.spent.unpriced_calls > 0 && report.spent.nano_usd == 0 { "no price for recoveries" }
        @else { span title={ "$" (report.spent.usd_at_least) } { (display::money(report.spent.nano_usd)) } " for recoveries" }
    };
    let value = html! { span id="usd" data-value=(total.usd_at_least) { (display::cost(total)) } };
    figure(
        "Cost",
        &value,
        &draw_sparkline(
            &by_day(&seen.sums),
            &by_day(&seen.sums_before),
            "Cost by day, and in the span before",
        ),
        &note,
    )
}

fn milliseconds(value: f64) -> String {
    if value < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// Shows the change of a share in percentage points, marked as better or worse.
fn change_in_points(now: (u64, u64), then: (u64, u64), more_is_better: bool, before: &str) -> Markup {
    let change = display::share(now.0, now.1) - display::share(then.0, then.1);
    if change.abs() < 0.05 {
        return html! { "same as " (before) };
    }
    let is_better = (change > 0.0) == more_is_better;
    html! {
        span class=(if is_better { "delta better" } else { "delta worse" }) {
            (format!("{:.1}", change.abs())) " points " @if change > 0.0 { "higher" } @else { "lower" }
        }
        " than " (before)
    }
}

/// Returns the numbers of all replies, of cut replies and of recovered replies by day.
fn replies_by_day(found: &CutData, report: &cuts::CutsReport<'_>) -> BTreeMap<String, [u64; 3]> {
    let mut days: BTreeMap<String, [u64; 3]> = BTreeMap::new();
    for day in &report.days {
        days.entry(day.day.to_owned()).or_default()[0] += day.replies;
    }
    for cut in found.cut_periods() {
        let day = days.entry(cut.period.get(..10).unwrap_or_default().to_owned()).or_default();
        day[1] += cut.replies;
        if ["resumed", "restarted", "corrected"].contains(&cut.outcome.as_str()) {
            day[2] += cut.replies;
        }
    }
    days
}

#[expect(clippy::cast_precision_loss, reason = "a sparkline is coarse")]
fn daily_shares(days: &BTreeMap<String, [u64; 3]>, of: fn(&[u64; 3]) -> (u64, u64)) -> Vec<f64> {
    let shares = days.values().map(of).filter(|(_, whole)| *whole > 0);
    shares.map(|(part, whole)| part as f64 / whole as f64).collect()
}

/// Returns the segments of a column of cut replies.
fn outcome_segments(outcomes: &BTreeMap<&str, u64>) -> Vec<Segment> {
    let known = |word: &str| OUTCOME_SEGMENTS.iter().any(|(part, _)| *part == word);
    let of = |part: &str| match part {
        "other" => outcomes.iter().filter(|(word, _)| !known(word)).map(|(_, replies)| *replies).sum(),
        word => outcomes.get(word).copied().unwrap_or(0),
    };
    OUTCOME_SEGMENTS.into_iter().map(|(class, _)| Segment { class, amount: of(class) }).collect()
}

/// Describes the segments of a column, for example `61 resumed, 1 left cut`.
fn describe_segments(segments: &[Segment]) -> String {
    let parts = segments.iter().zip(OUTCOME_SEGMENTS).filter(|(segment, _)| segment.amount > 0);
    parts.map(|(segment, (_, word))| format!("{} {word}", segment.amount)).collect::<Vec<_>>().join(", ")
}

/// Plots cut replies by day until today. Starts with the selected span or with the first record, whichever is
/// later.
fn daily_chart(seen: &OverviewData, counts: ReplyCounts, seconds: u64) -> Markup {
    let mut days: BTreeMap<String, BTreeMap<&str, u64>> = BTreeMap::new();
    for cut in seen.found.cut_periods() {
        let day = days.entry(cut.period.get(..10).unwrap_or_default().to_owned()).or_default();
        *day.entry(&cut.outcome).or_default() += cut.replies;
    }
    let date = |second: u64| endmark_context::Moment::from_unix_seconds(second).day().to_string();
    let began = seen.began.as_deref().and_then(display::parse_seconds).unwrap_or(seen.now);
    let first = began.max(seen.now.saturating_sub(seconds)) / DAY_SECONDS;
    let today = seen.now / DAY_SECONDS;
    let columns: Vec<Column> = (first..=today)
        .map(|day| {
            let segments = outcome_segments(&days.remove(&date(day * DAY_SECONDS)).unwrap_or_default());
            let cut: u64 = segments.iter().map(|segment| segment.amount).sum();
            let not_whole: u64 = segments.iter().skip(3).take(2).map(|segment| segment.amount).sum();
            let (weekday, of_month) = display::weekday(&date(day * DAY_SECONDS));
            let name = if day == today { "Today".to_owned() } else { format!("{weekday} {of_month}") };
            let is_dense = today - first > 10;
            Column {
                title: format!("{name}: {cut} cut. {}", describe_segments(&segments)),
                label: match (day == today, is_dense) {
                    (true, _) => ["Today".to_owned(), String::new()],
                    (false, true) if !(today - day).is_multiple_of(5) => <[String; 2]>::default(),
                    (false, true) => [of_month, String::new()],
                    (false, false) => [weekday, of_month],
                },
                total: if cut > 0 && !is_dense { display::count(cut) } else { String::new() },
                missing: (not_whole > 0 && !is_dense).then_some((not_whole, "not whole")),
                is_current_period: day == today,
                segments,
            }
        })
        .collect();
    let label = format!(
        "Cut replies by day: {} cut, {} made whole. The table below has every number.",
        counts.cut, counts.recovered
    );
    let plot = ColumnPlot {
        label: &label,
        columns: &columns,
        height: 192.0,
        format_tick: display::count,
        min_axis_end: 0,
    };
    card(
        "by-day",
        &html! { "Cut replies by day" },
        &legend(&columns),
        &html! { (plot.draw(&html! {})) (table("Day", &columns)) },
    )
}

/// Plots replies by hour on the first day.
fn hourly_chart(seen: &OverviewData) -> Markup {
    let mut cut: BTreeMap<&str, BTreeMap<&str, u64>> = BTreeMap::new();
    for replies in seen.found.cut_periods() {
        *cut.entry(&replies.period).or_default().entry(&replies.outcome).or_default() += replies.replies;
    }
    let name = |hour: u64| {
        let day = endmark_context::Moment::from_unix_seconds(hour * HOUR_SECONDS).day().to_string();
        format!("{day} {:02}", hour % 24)
    };
    let this_hour = seen.now / HOUR_SECONDS;
    let began = seen.began.as_deref().and_then(display::parse_seconds).unwrap_or(seen.now) / HOUR_SECONDS;
    // Start some hours before the first request. Otherwise a single column would fill the plot.
    let first = began.min(this_hour.saturating_sub(6)).max(this_hour.saturating_sub(23));
    let columns: Vec<Column> = (first..=this_hour)
        .map(|hour| {
            let key = name(hour);
            let outcomes = cut.remove(key.as_str()).unwrap_or_default();
            let cut: u64 = outcomes.values().sum();
            let replies = seen.hours.get(&key).copied().unwrap_or(0).max(cut);
            let mut parts = vec![Segment { class: "whole", amount: replies - cut }];
            let of_cut = outcome_segments(&outcomes);
            let mut title = format!(
                "{:02}:00 to {:02}:00 UTC: {}",
                hour % 24,
                (hour + 1) % 24,
                display::count_with_noun(replies, "reply", "replies")
            );
            if cut > 0 {
                title = format!("{title}, {cut} of them cut: {}", describe_segments(&of_cut));
            }
            parts.extend(of_cut);
            Column {
                label: [
                    if hour == this_hour { "Now".to_owned() } else { (hour % 24).to_string() },
                    String::new(),
                ],
                title,
                segments: parts,
                total: if replies > 0 { display::count(replies) } else { String::new() },
                missing: None,
                is_current_period: hour == this_hour,
            }
        })
        .collect();
    let label = "Replies by hour in the last day, UTC. Each column names its numbers.";
    let plot =
        ColumnPlot { label, columns: &columns, height: 164.0, format_tick: display::count, min_axis_end: 0 };
    let beside = html! { span.muted.small { "UTC; by day from tomorrow on" } };
    card("by-hour", &html! { "Replies by hour" }, &beside, &plot.draw(&html! {}))
}

fn legend(columns: &[Column]) -> Markup {
    let has =
        |at: usize| columns.iter().any(|column| column.segments.get(at).is_some_and(|part| part.amount > 0));
    html! { ul.legend {
        // Rare outcomes are in the legend only if they are in the plot.
        @for (at, (class, word)) in OUTCOME_SEGMENTS.into_iter().enumerate() { @if at < 5 || has(at) { li class=(class) { (word) } } }
    } }
}

fn table(first: &str, columns: &[Column]) -> Markup {
    let rows = html! { table {
        thead { tr { th scope="col" { (first) } @for (_, word) in OUTCOME_SEGMENTS { th.num scope="col" { (word) } } } }
        tbody { @for column in columns { tr {
            th scope="row" { (column.title.split(':').next().unwrap_or_default()) }
            @for segment in &column.segments { td.num { (display::count(segment.amount)) } }
        } } }
    } };
    html! { details.data { summary { "Show as a table" } (scroll("Table of cut replies by day", &rows)) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe_counts(counts: ReplyCounts) -> String {
        let markup = summary_line(counts, counts.replies, TIME_SPANS[1]).into_string();
        // The link leads to the requests of the same time span.
        assert_eq!(counts.worth_a_look > 0, markup.contains("outcome=look&amp;since=7d"), "{markup}");
        let mut text = String::new();
        let mut is_tag = false;
        for c in markup.chars() {
            match c {
                '<' => is_tag = true,
                '>' => is_tag = false,
                c if !is_tag => text.push(c),
                _ => {}
            }
        }
        text
    }

    #[test]
    fn the_status_line_matches_the_events() {
        let counts = |replies, cut, made_whole, worth_a_look| ReplyCounts {
            replies,
            cut,
            recovered: made_whole,
            at_own_limit: 0,
            worth_a_look,
        };
        for (counts, expected) in [
            (counts(0, 0, 0, 0), "No request came this week."),
            (counts(1, 0, 0, 0), "1 reply this week, and none was cut."),
            (counts(10, 1, 1, 0), "1 of 10 replies was cut this week. It was made whole."),
            (
                counts(10, 2, 1, 1),
                "2 of 10 replies were cut this week. 1 of them was made whole; 1 is worth a look.",
            ),
            (
                counts(15_249, 471, 457, 14),
                "3.1% of replies were cut this week. 97% of them were made whole; 14 are worth a look.",
            ),
        ] {
            assert_eq!(describe_counts(counts), expected);
        }
    }

    #[test]
    fn every_outcome_is_counted_in_exactly_one_segment() {
        let outcomes = BTreeMap::from([("resumed", 5), ("cut", 2), ("cancelled", 1), ("interrupted", 3)]);
        let segments = outcome_segments(&outcomes);
        assert_eq!(segments.iter().map(|segment| segment.amount).collect::<Vec<_>>(), [5, 0, 0, 2, 0, 4]);
        assert_eq!(describe_segments(&segments), "5 resumed, 2 left cut, 4 cancelled or interrupted");
    }
}
