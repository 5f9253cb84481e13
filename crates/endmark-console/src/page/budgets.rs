//! Shows budgets as bars with a forecast, and a form that raises the budget of a session.

use endmark_context::Moment;
use endmark_context::budget::{Period, Scope, Unit, Zone};
use endmark_context::{dollars, rate_from_dollars};
use endmark_store::{BudgetRow, KeyBudget, RaiseOutcome, Reader, Store, StoreError};
use http::Response;
use maud::{Markup, html};

use super::layout::{self, PageFrame, card, next_page_link};
use super::plot::Bar;
use super::{ROWS_PER_PAGE, display, login};
use crate::answer::{ConsoleBody, ConsoleError};
use crate::console::{Console, ConsoleRequest};
use crate::query::Query;
use crate::reading;
use crate::reports::budgets::BudgetEntry;

/// The address of the page.
const PAGE_PATH: &str = "/endmark/budgets";

/// Percentages from which a budget is shown as near its limit, and as very near its limit.
const NEAR_LIMIT_PERCENT: f64 = 80.0;
const NEAR_LIMIT_PERCENT_INTEGER: u32 = 80;
const VERY_NEAR_LIMIT_PERCENT: f64 = 95.0;

/// Minimum elapsed share of a window for a forecast, in percent.
const MIN_FORECAST_PERCENT: f64 = 4.0;

/// Maximum number of budgets near their limit that are looked up.
const MAX_BUDGETS_NEAR_LIMIT: u32 = 20;

/// The state of a budget at a point in time, in percent of its limit.
pub(super) struct BudgetState {
    spent: f64,
    held: f64,
    /// Expected percentage at the end of the window if the pace stays the same. `None` if the window does not
    /// end.
    forecast: Option<f64>,
    words: String,
    is_used_up: bool,
}

impl BudgetState {
    /// Returns the state of a budget at the time `now`, in seconds since 1970. The forecast assumes that the
    /// pace of the window continues.
    pub(super) fn new(row: &BudgetEntry, zone: &Zone, now: u64) -> Self {
        let limit = total_limit(row).unwrap_or(0);
        let share = |amount: u64| if limit > 0 { ratio(amount, limit) * 100.0 } else { 0.0 };
        let (spent, held) = (share(row.spent), share(row.held));
        let is_used_up = row.closed || (limit > 0 && row.spent >= limit);
        let mut standing = Self { spent, held, forecast: None, words: String::new(), is_used_up };
        standing.words = match window_bounds(&row.window, zone, now) {
            _ if limit == 0 => "Not limited any more.".to_owned(),
            Some((_, end)) if is_used_up => {
                format!("Used up. Begins again in {}.", display::seconds(end - now))
            }
            Some((begin, end)) => standing.forecast_by_pace(row, (begin, end), now),
            None if is_used_up && row.scope == Scope::Session.name() => {
                "Used up: further calls are refused.".to_owned()
            }
            None if is_used_up => "Used up.".to_owned(),
            None if Period::from_window(&row.window) == Period::Ever => String::new(),
            None => "This window is over.".to_owned(),
        };
        standing
    }

    fn forecast_by_pace(&mut self, row: &BudgetEntry, (begin, end): (u64, u64), now: u64) -> String {
        let passed = ratio(now.saturating_sub(begin), end - begin);
        if passed * 100.0 < MIN_FORECAST_PERCENT || row.spent == 0 {
            return "Too early for a forecast.".to_owned();
        }
        let forecast = self.spent / passed;
        self.forecast = Some(forecast);
        if forecast <= 100.0 {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                clippy::cast_precision_loss,
                reason = "a forecast is rough"
            )]
            let at_end = (row.spent as f64 / passed) as u64;
            return format!("About {} by its end: it fits.", format_approximate_amount(row, at_end));
        }
        // At a constant pace, the budget is exhausted after this additional share of the window.
        let left = (100.0 - self.spent).max(0.0) / self.spent * passed;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a forecast is rough"
        )]
        let seconds = (left * (end - begin) as f64) as u64;
        format!("At this pace it ends in about {}.", display::seconds(seconds / 60 * 60))
    }

    /// Returns the CSS class of the state.
    pub(super) fn css_class(&self) -> &'static str {
        if self.is_used_up || self.spent + self.held >= VERY_NEAR_LIMIT_PERCENT {
            "bad"
        } else if self.spent + self.held >= NEAR_LIMIT_PERCENT
            || self.forecast.is_some_and(|forecast| forecast > 100.0)
        {
            "warn"
        } else {
            "history"
        }
    }

    /// Whether the budget is exhausted.
    pub(super) fn is_exhausted(&self) -> bool {
        self.is_used_up
    }

    /// Returns a sentence about the forecast.
    pub(super) fn forecast_text(&self) -> &str {
        &self.words
    }

    /// Returns the spent and held amount in percent of the limit.
    fn percent(&self) -> f64 {
        self.spent + self.held
    }

    /// Draws the budget as a bar.
    pub(super) fn draw_bar(&self, height: u32, ticks: &[f64]) -> Markup {
        let bar = Bar {
            class: self.css_class(),
            spent: self.spent,
            held: self.held,
            forecast: self.forecast,
            ticks,
            has_faint_ticks: true,
            height,
        };
        bar.draw(&format!("{:.0} percent spent or held", self.percent().floor()))
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share of a budget is rounded to a tenth of a percent")]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// Returns the start and the end of a window in seconds since 1970. Returns `None` if the window is not the
/// current one or does not end.
fn window_bounds(name: &str, zone: &Zone, now: u64) -> Option<(u64, u64)> {
    let period = Period::from_window(name);
    let at = Moment::from_unix_seconds(now);
    if period.window(at, zone) != name {
        return None;
    }
    let end = period.reset_seconds(at, zone)?;
    // Find the end of the previous window, starting from a time that is certainly inside it.
    let days = if period == Period::Month { 31 } else { 1 };
    let mut before = now.saturating_sub(days * 86_400);
    while period.window(Moment::from_unix_seconds(before), zone) == name {
        before = before.saturating_sub(3_600);
    }
    let mut begin = period.reset_seconds(Moment::from_unix_seconds(before), zone)?;
    while period.window(Moment::from_unix_seconds(begin), zone) != name && begin < now {
        begin = period.reset_seconds(Moment::from_unix_seconds(begin), zone).filter(|next| *next > begin)?;
    }
    Some((begin, end)).filter(|(begin, end)| begin < end)
}

/// Shows the list of budgets.
pub(super) async fn page(
    console: &Console,
    store: &Store,
    query: Option<&str>,
) -> Result<Markup, ConsoleError> {
    let query = Query::parse(query, &reading::BUDGET_PARAMETERS)?;
    let (rows, next) = reading::load_budgets(console, store, &query, ROWS_PER_PAGE).await?;
    let now = display::unix_now();
    let is_current = |row: &BudgetEntry| {
        let period = Period::from_window(&row.window);
        period.window(Moment::from_unix_seconds(now), &console.zone) == row.window
    };
    let (current, past): (Vec<&BudgetEntry>, Vec<&BudgetEntry>) =
        rows.iter().partition(|row| is_current(row));
    let (sessions, windows): (Vec<&BudgetEntry>, Vec<&BudgetEntry>) =
        current.into_iter().partition(|row| row.scope == Scope::Session.name());
    let standings: Vec<BudgetState> =
        windows.iter().chain(&sessions).map(|row| BudgetState::new(row, &console.zone, now)).collect();
    let legend = html! { ul.legend {
        li.history { "spent" } li.history.light { "held by calls under way" } li.line { "forecast for the end of the window" }
        li.warnings { "warnings at 80 and 95%" }
    } };
    let section = |id: &str, name: &str, beside: &Markup, rows: &[&BudgetEntry]| {
        html! {
            @if !rows.is_empty() { (card(id, &html! { (name) }, beside, &html! { ul.budgets { @for row in rows { (budget_item(console, row, now)) } } })) }
        }
    };
    let content = html! {
        div.lead { div {
            (summary_line(&standings))
            p.muted { "Windows begin at midnight, " (console.zone) "." }
        } }
        @if rows.is_empty() { section.card { p.muted {
            "No call was counted in a budget. Set one under " code { "[budget]" } ", as in " code { "session_tokens = 850_000" }
            ", or give a key one with " code { "endmark keys add NAME --budget-usd 20 --per day" } "."
        } } }
        (section("windows", "Days, months and keys", &legend, &windows))
        (section("sessions", "Sessions", &html! { span.muted.small { "You can add more to a session" } }, &sessions))
        (section("past", "Windows that are over", &html! {}, &past))
        (next_page_link(PAGE_PATH, &[], "after", next.as_deref()))
    };
    let json = Some("/endmark/api/budgets".to_owned());
    Ok(PageFrame { current_address: PAGE_PATH, title: "Budgets", json, ..PageFrame::default() }
        .page(console, &content))
}

fn summary_line(standings: &[BudgetState]) -> Markup {
    let used_up = standings.iter().filter(|standing| standing.is_used_up).count() as u64;
    let near =
        standings.iter().filter(|standing| !standing.is_used_up && standing.css_class() != "history").count()
            as u64;
    html! { h1.state {
        @if standings.is_empty() { "No budget is in use." }
        @else if used_up == 0 && near == 0 { b { (display::count_with_noun(standings.len() as u64, "budget", "budgets")) } " in use; " b.good { "none is near its end" } "." }
        @else {
            @if used_up > 0 { b.bad { (used_up) } (if used_up == 1 { " budget is used up" } else { " budgets are used up" }) @if near > 0 { " and " } }
            @if near > 0 {
                b { (near) } @if used_up == 0 { (if near == 1 { " budget" } else { " budgets" }) }
                (if near == 1 { " is near its end" } else { " are near their end" })
            }
            ", of " (standings.len()) " in use."
        }
    } }
}

fn budget_item(console: &Console, row: &BudgetEntry, now: u64) -> Markup {
    let standing = BudgetState::new(row, &console.zone, now);
    let (class, is_limited) = (standing.css_class(), total_limit(row).is_some());
    let words_class = match class {
        "bad" => "alarm",
        "warn" => "caution",
        _ => "",
    };
    html! { li {
        div { h3.subject { @if row.scope == Scope::Session.name() { (layout::session(&row.subject)) } @else { (owner_markup(row)) } } p { (describe_window(&row.window)) } }
        div {
            (standing.draw_bar(12, if is_limited { &[NEAR_LIMIT_PERCENT, VERY_NEAR_LIMIT_PERCENT] } else { &[] }))
            p.sums {
                span { b { (format_amount(row, row.spent)) } " spent" @if row.held > 0 { " + " b { (format_amount(row, row.held)) } " held" } }
                span { "of " b { (format_limit(row)) } }
            }
        }
        div {
            @if is_limited { p class={ "percent " (if class == "history" { "" } else { class }) } { (format!("{:.0}", standing.percent().floor())) "%" } }
            p { span class=(words_class) { (standing.forecast_text()) } @if row.extra > 0 { " " (format_amount(row, row.extra)) " were added." } }
            @if row.scope == Scope::Session.name() { (raise_form(console, row, standing.is_used_up)) }
        }
    } }
}

/// Returns the owner of the budget as a link or a label.
pub(super) fn owner_markup(row: &BudgetEntry) -> Markup {
    match row.scope.as_str() {
        "session" => html! { "session " (layout::hash(&row.subject)) },
        "key" => html! { "key " (layout::client(&row.subject)) },
        "model" => html! { "model " (display::name(&row.subject)) },
        _ => html! { "all requests" },
    }
}

fn describe_window(window: &str) -> String {
    match Period::from_window(window) {
        Period::Ever => "once and for all".to_owned(),
        Period::Minute => format!("each minute, {window}"),
        Period::Day => format!("each day, {window}"),
        Period::Month => format!("each month, {window}"),
    }
}

fn raise_form(console: &Console, row: &BudgetEntry, is_open: bool) -> Markup {
    let unit = if row.unit == Unit::NanoUsd.name() { "dollars" } else { "tokens" };
    let id = format!("raise-{}-{}", row.subject, row.unit);
    html! { details open[is_open] {
        summary { "Add " (unit) }
        form.raise method="post" action="/endmark/budgets/raise" {
            input type="hidden" name="token" value=(console.access.form_token());
            input type="hidden" name="session" value=(row.subject);
            input type="hidden" name="unit" value=(row.unit);
            label.unseen for=(id) { "More " (unit) " for this session" }
            input id=(id) name="by" required inputmode="decimal" placeholder=(unit);
            button { "Add" }
        }
    } }
}

/// Raises a session's budget, like `endmark budget raise`.
pub(super) async fn raise(
    console: &Console,
    visit: &ConsoleRequest,
) -> Result<Response<ConsoleBody>, ConsoleError> {
    let form = login::parse_form(&visit.body, &["token", "session", "unit", "by"])?;
    console.access.check_form(form.text("token"))?;
    let (session, by) = (form.text("session").unwrap_or_default(), form.text("by").unwrap_or_default());
    let number = by.trim().trim_start_matches('+').replace(['_', ','], "");
    let (unit, amount) = match form.text("unit") {
        Some("nano_usd") => {
            (Unit::NanoUsd, number.parse().ok().and_then(|dollars| rate_from_dollars(dollars).ok()))
        }
        Some("tokens") => (Unit::Tokens, number.parse().ok()),
        _ => return Err(ConsoleError::BadRequest("a budget is in tokens or in nano_usd".to_owned())),
    };
    let amount = amount.filter(|amount| *amount > 0);
    let amount =
        amount.ok_or_else(|| ConsoleError::BadRequest(format!("`{by}` cannot be added to a budget")))?;
    match visit.store.raise_budget(session, unit, amount).await? {
        RaiseOutcome::Raised(_) => Ok(login::redirect(PAGE_PATH)),
        RaiseOutcome::TooLarge(most) => {
            Err(ConsoleError::BadRequest(format!("at most {} can be added", unit.format(most))))
        }
        RaiseOutcome::NoBudget => {
            Err(ConsoleError::NotFound(format!("no budget of the session `{session}` is known")))
        }
    }
}

/// Returns the budgets of the current windows that are near their limit, fullest first.
pub(super) async fn budgets_near_limit(
    console: &Console,
    store: &Store,
) -> Result<Vec<BudgetEntry>, ConsoleError> {
    let (rules, zone, now) = (console.rules.clone(), console.zone.clone(), display::unix_now());
    let found = store.read(move |reader| near_limit(reader, &rules, &zone, now)).await?;
    let (rows, keys) = found;
    let mut rows: Vec<BudgetEntry> =
        rows.iter().map(|row| BudgetEntry::new(row, &console.rules, &keys)).collect();
    rows.sort_by(|one, other| used_share(other).total_cmp(&used_share(one)));
    Ok(rows)
}

fn near_limit(
    reader: &Reader,
    rules: &[endmark_context::budget::BudgetRule],
    zone: &Zone,
    now: u64,
) -> Result<(Vec<BudgetRow>, Vec<endmark_store::Key>), StoreError> {
    let keys = reader.keys()?;
    let of_keys =
        keys.iter().filter_map(|key| Some((key.budget.map(KeyBudget::rule)?, Some(key.identity()))));
    let at = Moment::from_unix_seconds(now);
    let mut found = Vec::new();
    for (rule, subject) in rules.iter().map(|rule| (*rule, None)).chain(of_keys) {
        let window = rule.period.window(at, zone);
        let rows = reader.budgets_near_limit(
            rule,
            &window,
            subject.as_deref(),
            NEAR_LIMIT_PERCENT_INTEGER,
            MAX_BUDGETS_NEAR_LIMIT,
        )?;
        for row in rows {
            // A session whose last call is more than a day old needs no attention.
            let newest = if row.scope == Scope::Session.name() {
                reader.session_calls(&row.subject, 1)?
            } else {
                Vec::new()
            };
            let is_old = |at: &str| display::parse_seconds(at).is_some_and(|at| at + 86_400 < now);
            if !newest.iter().any(|call| is_old(&call.started_at)) {
                found.push(row);
            }
        }
    }
    Ok((found, keys))
}

fn used_share(row: &BudgetEntry) -> f64 {
    total_limit(row).map_or(0.0, |limit| ratio(row.spent.saturating_add(row.held), limit))
}

/// Returns the limit with all additions, or `None` if the budget is not configured.
fn total_limit(row: &BudgetEntry) -> Option<u64> {
    row.limit.map(|limit| limit.saturating_add(row.extra))
}

/// Formats the limit of a budget.
pub(super) fn format_limit(row: &BudgetEntry) -> Markup {
    let unit = if row.unit == Unit::NanoUsd.name() { "" } else { " tokens" };
    total_limit(row)
        .map_or_else(|| html! { "no limit any more" }, |limit| html! { (format_amount(row, limit)) (unit) })
}

/// Formats an amount of a budget, with all digits in `title`.
pub(super) fn format_amount(row: &BudgetEntry, amount: u64) -> Markup {
    if row.unit == Unit::NanoUsd.name() {
        return html! { span title={ "$" (dollars(amount)) } { (display::money(amount)) } };
    }
    html! { span title=(amount) { (display::tokens(amount)) } }
}

fn format_approximate_amount(row: &BudgetEntry, amount: u64) -> String {
    if row.unit == Unit::NanoUsd.name() { display::money(amount) } else { display::tokens(amount) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(window: &str, spent: u64, held: u64) -> BudgetEntry {
        BudgetEntry {
            scope: "all".to_owned(),
            subject: String::new(),
            window: window.to_owned(),
            unit: "tokens".to_owned(),
            limit: Some(1_000_000),
            extra: 0,
            spent,
            held,
            closed: false,
        }
    }

    #[test]
    fn a_budget_forecast_uses_the_pace_of_its_window() {
        let noon = Moment::parse("2026-11-26 12:00").unwrap().unix_seconds();
        let at = |row: &BudgetEntry, zone: &str| BudgetState::new(row, &zone.parse().unwrap(), noon);
        let fits = at(&row("2026-11-26", 400_000, 0), "UTC");
        assert_eq!((fits.css_class(), fits.forecast_text()), ("history", "About 800k by its end: it fits."));
        let short = at(&row("2026-11-26", 600_000, 10_000), "UTC");
        assert_eq!(
            (short.css_class(), short.forecast_text()),
            ("warn", "At this pace it ends in about 8 h.")
        );
        let used_up = at(&row("2026-11-26", 1_000_000, 0), "UTC");
        assert_eq!((used_up.css_class(), used_up.forecast_text()), ("bad", "Used up. Begins again in 12 h."));
        // In this time zone, six hours of the day have passed.
        let east = at(&row("2026-11-26", 250_000, 0), "-06:00");
        assert_eq!(east.forecast_text(), "About 1M by its end: it fits.");
        assert_eq!(at(&row("2026-11-25", 250_000, 0), "UTC").forecast_text(), "This window is over.");
        assert_eq!(
            at(&row("2026-11", 10_000, 0), "UTC").forecast_text(),
            "About 11.8k by its end: it fits.".replace("11.8k", "12k")
        );
        assert_eq!(at(&row("ever", 10_000, 0), "UTC").forecast_text(), "");
    }

    #[test]
    fn a_window_begins_at_the_end_of_the_previous_one() {
        let noon = Moment::parse("2026-11-26 12:00").unwrap().unix_seconds();
        let midnight = Moment::parse("2026-11-26 00:00").unwrap().unix_seconds();
        assert_eq!(window_bounds("2026-11-26", &Zone::default(), noon), Some((midnight, midnight + 86_400)));
        let first = Moment::parse("2026-11-01 00:00").unwrap().unix_seconds();
        assert_eq!(window_bounds("2026-11", &Zone::default(), noon), Some((first, first + 30 * 86_400)));
        assert_eq!(window_bounds("ever", &Zone::default(), noon), None);
        // A day of 25 hours, because summer time ends.
        let zone: Zone = "Europe/Berlin".parse().unwrap();
        let autumn = Moment::parse("2026-10-25 12:00").unwrap().unix_seconds();
        let (begin, end) = window_bounds("2026-10-25", &zone, autumn).unwrap();
        assert_eq!(end - begin, 25 * 3_600);
    }
}
