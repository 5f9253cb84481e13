//! `endmark sim`: simulates several gateways, with the code that decides about budgets.

use std::str::FromStr;

use endmark_context::budget::sim::{LOG_BYTES_PER_ROW, ROW_BYTES, SimReport, Simulation, SimulationPlan};
use endmark_failure::CommandError;
use serde::Serialize;

use crate::arguments::sim::Sim;
use crate::context::Context;
use crate::progress::ProgressMessages;
use crate::view::answer::{Answer, to_data};

/// Number of events between two checks of the clock.
const EVENTS_PER_CLOCK_CHECK: usize = 50_000;

/// The answer of `sim`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SimulationReport {
    /// The load on the database.
    database: DatabaseLoad,
    /// Calls that were made or refused.
    calls: CallCounts,
    /// Calls that waited for a share of their budget.
    waits: WaitTimes,
    /// How completely the budgets were used.
    budgets: BudgetUse,
}

/// The load on the database.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct DatabaseLoad {
    /// Average number of transactions per second.
    transactions_per_second: u64,
    /// Transactions in the busiest second.
    peak_transactions_per_second: u64,
    /// Rows of calls in a transaction, on average.
    rows_per_transaction: u64,
    /// Rows of calls per day, at this rate.
    rows_per_day: u64,
    /// Bytes that these rows need, with their index.
    table_bytes_per_day: u64,
    /// Bytes of the write-ahead log per day, which each standby receives.
    log_bytes_per_day: u64,
    /// Maximum number of rows that waited in the journals of all gateways.
    most_rows_waiting: u64,
}

/// Calls that were made or refused.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CallCounts {
    /// Calls that were made.
    made: u64,
    /// Calls that were refused because their budget was exhausted or reserved.
    refused_by_budget: u64,
    /// Calls that were refused because the database or the gateway was down.
    refused_without_database: u64,
}

/// Calls that waited for a share of their budget.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct WaitTimes {
    /// The number of calls that waited.
    calls: u64,
    /// The median in milliseconds.
    p50_ms: f64,
    /// The 99th percentile in milliseconds.
    p99_ms: f64,
    /// The longest wait in milliseconds.
    max_ms: f64,
}

/// How completely the budgets were used.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct BudgetUse {
    /// Limit of each budget in tokens.
    limit: u64,
    /// Cost of all calls in tokens.
    spent: u64,
    /// The largest amount by which a budget was exceeded, in tokens.
    most_over: u64,
    /// The least used budget among those that refused calls, in percent of its limit; null if no budget did.
    least_used_percent: Option<f64>,
    /// The largest part of a budget that gateways had available and did not use, in percent.
    most_idle_percent: f64,
    /// The largest part of a budget that killed gateways kept from the others, in percent.
    most_silent_percent: f64,
}

/// Simulates an installation.
pub(crate) fn run(context: &Context, arguments: &Sim) -> Result<Answer, CommandError> {
    let plan = build_plan(arguments)?;
    let mut simulation = Simulation::new(plan.clone()).map_err(|error| invalid_argument(&error))?;
    let mut messages = ProgressMessages::new(context.terminal);
    while simulation.advance(EVENTS_PER_CLOCK_CHECK) {
        messages.show(|| format!("{} % simulated", simulation.percent()));
    }
    let report = SimulationReport::new(&simulation.report());
    Ok(Answer::yes(to_data(&report)?, render_text(&plan, &report)))
}

/// Returns the plan of the simulation.
fn build_plan(arguments: &Sim) -> Result<SimulationPlan, CommandError> {
    Ok(SimulationPlan {
        instances: arguments.instances,
        requests_per_second: arguments.requests,
        seconds: arguments.seconds,
        budgets: arguments.budgets,
        hot_budget_percent: arguments.hot_budget,
        hot_instance_percent: arguments.hot_instance,
        held: arguments.held,
        cost: arguments.cost,
        call_ms: parse_thousandths("--call-seconds", &arguments.call_seconds)?,
        limit: arguments.limit,
        outages: parse_all(&arguments.outage)?,
        kills: parse_all(&arguments.kill)?,
        round_trip_us: parse_thousandths("--round-trip-ms", &arguments.round_trip_ms)?,
        commit_us: parse_thousandths("--commit-ms", &arguments.commit_ms)?,
        seed: arguments.seed,
    })
}

fn parse_all<T: FromStr<Err: ToString>>(typed: &[String]) -> Result<Vec<T>, CommandError> {
    typed.iter().map(|typed| typed.parse().map_err(|error| invalid_argument(&error))).collect()
}

/// Parses a number and returns it in thousandths, rounded.
fn parse_thousandths(option: &str, typed: &str) -> Result<u64, CommandError> {
    let number: Option<f64> = typed.parse().ok().filter(|number| (0.0..1e9).contains(number));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is from 0 to 1e12")]
    let whole = |number: f64| (number * 1_000.0).round() as u64;
    number.map(whole).ok_or_else(|| invalid_argument(&format!("`{typed}` is not a number for {option}")))
}

fn invalid_argument(error: &impl ToString) -> CommandError {
    CommandError::input("bad_plan", error.to_string(), "`endmark sim --help` shows the values and examples.")
}

impl SimulationReport {
    fn new(report: &SimReport) -> Self {
        Self {
            database: DatabaseLoad {
                transactions_per_second: report.transactions_per_second,
                peak_transactions_per_second: report.peak_transactions_per_second,
                rows_per_transaction: report.rows_per_transaction,
                rows_per_day: report.rows_per_day,
                table_bytes_per_day: report.table_bytes_per_day,
                log_bytes_per_day: report.log_bytes_per_day,
                most_rows_waiting: report.most_rows_waiting,
            },
            calls: CallCounts {
                made: report.calls,
                refused_by_budget: report.refused_by_budget,
                refused_without_database: report.refused_without_database,
            },
            waits: WaitTimes {
                calls: report.waited,
                p50_ms: from_thousandths(report.wait_p50_us, 1),
                p99_ms: from_thousandths(report.wait_p99_us, 1),
                max_ms: from_thousandths(report.wait_max_us, 1),
            },
            budgets: BudgetUse {
                limit: report.limit,
                spent: report.spent,
                most_over: report.most_over,
                least_used_percent: report.least_used_per_mille.map(|used| from_thousandths(used, 100)),
                most_idle_percent: from_thousandths(report.most_idle_per_mille, 100),
                most_silent_percent: from_thousandths(report.most_silent_per_mille, 100),
            },
        }
    }
}

/// Scales a number of thousandths to `whole`: 250 of 100 is 25.0.
fn from_thousandths(number: u64, whole: u32) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "it is shown to people, and below 2^53")]
    let number = number as f64;
    number * f64::from(whole) / 1_000.0
}

/// Returns the result as readable text.
fn render_text(
    plan: &SimulationPlan,
    SimulationReport { database, calls, waits, budgets }: &SimulationReport,
) -> String {
    let used = budgets.least_used_percent.map_or_else(
        || "no budget refused a call".to_owned(),
        |used| format!("at least {used:.1} % used when calls were refused"),
    );
    format!(
        "{} {}, {} requests a second, {} s\n\n\
         database   {} transactions a second ({} at most), {} rows in each\n\
         storage    {} rows a day: {} of table and index ({ROW_BYTES} B a row), {} of write-ahead log ({LOG_BYTES_PER_ROW} B a row)\n\
         journals   {} rows waited at most\n\
         calls      {} made, {} refused by their budget, {} without a database or a gateway\n\
         waits      {} calls waited for a share: {:.1} ms in the median, {:.1} ms for 99 %, {:.1} ms at most\n\
         shares     {:.1} % of a budget idle at most, {:.1} % kept by killed gateways\n\
         budgets    of {} tokens: {used}, {} tokens over at most\n",
        plan.instances,
        if plan.instances == 1 { "gateway" } else { "gateways" },
        plan.requests_per_second,
        plan.seconds,
        database.transactions_per_second,
        database.peak_transactions_per_second,
        database.rows_per_transaction,
        database.rows_per_day,
        format_bytes(database.table_bytes_per_day),
        format_bytes(database.log_bytes_per_day),
        database.most_rows_waiting,
        calls.made,
        calls.refused_by_budget,
        calls.refused_without_database,
        waits.calls,
        waits.p50_ms,
        waits.p99_ms,
        waits.max_ms,
        budgets.most_idle_percent,
        budgets.most_silent_percent,
        budgets.limit,
        budgets.most_over,
    )
}

/// Formats a number of bytes with a decimal unit.
fn format_bytes(bytes: u64) -> String {
    match bytes {
        0..1_000_000_000 => format!("{} MB", bytes.div_ceil(1_000_000)),
        1_000_000_000..1_000_000_000_000 => format!("{:.1} GB", from_thousandths(bytes / 1_000_000, 1)),
        _ => format!("{:.1} TB", from_thousandths(bytes / 1_000_000_000, 1)),
    }
}
