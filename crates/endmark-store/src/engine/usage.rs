//! SQL statements for upstream calls.

use std::sync::LazyLock;

use rusqlite::{Connection, ErrorCode, Statement, ToSql, params};

use crate::calls::{Billing, Call, CallStarted, TokenEstimate, Tokens, UsageRow};
use crate::counted::INTERRUPTED;
use crate::engine::integers::{from_sql_integer, to_sql_integer};
use crate::engine::outputs::{SECONDS_PER_DAY, unix_seconds};
use crate::engine::sums::SumPeriod;
use crate::engine::timestamps::utc;
use crate::engine::{RowOutcome, StatementError, budgets, sums};
use crate::ledger::encoding::clip;

/// Maximum rows that one transaction deletes. Other writers then wait only for milliseconds.
const DELETION_BATCH_ROWS: u32 = 5_000;

/// Rows that one statement writes. Most of a statement's cost is its start and end.
const ROWS_PER_STATEMENT: usize = 16;

const USAGE_COLUMNS: &str = "request_id, call, purpose, session, credential, upstream, format, model, streamed, mode, started_at,
  sent_bytes, ended_at, answered_model, http_status, ending, stop, verdict, cut_kind, prompt_tokens, output_tokens,
  cached_tokens, reasoning_tokens, total_tokens, received_bytes, first_byte_ms, total_ms, is_summed";

/// The statements that insert one row and [`ROWS_PER_STATEMENT`] rows.
static INSERT: LazyLock<[String; 2]> = LazyLock::new(|| {
    let marks = format!("({})", vec!["?"; USAGE_COLUMNS.split(',').count()].join(", "));
    [1, ROWS_PER_STATEMENT]
        .map(|rows| format!("INSERT INTO usage ({USAGE_COLUMNS}) VALUES {}", vec![&*marks; rows].join(", ")))
});

/// Records a call of a dead process: writes its row and settles its holds.
pub(crate) fn record_interrupted(connection: &Connection, call: &Call) -> rusqlite::Result<()> {
    let is_new = insert(connection, call)?;
    budgets::settle(connection, call, is_new)
}

/// Writes the rows of calls, and sums those calls that can be summed together cheaply. Returns the outcome of
/// each row.
pub(crate) fn record_all(connection: &Connection, calls: &[&Call]) -> rusqlite::Result<Vec<RowOutcome>> {
    let mut sums = sums::sum_if_similar(calls);
    let (mut recorded, mut summed) = (Vec::with_capacity(calls.len()), Vec::new());
    let (together, rest) = calls.as_chunks::<ROWS_PER_STATEMENT>();
    for calls in together.iter().map(<[_; ROWS_PER_STATEMENT]>::as_slice).chain(rest.chunks(1)) {
        match insert_all(connection, calls, sums.is_some()) {
            Ok(()) => {
                summed.extend_from_slice(calls);
                for call in calls {
                    recorded.push(classify_result(connection, record_extras(connection, call))?);
                }
            }
            // The statement wrote nothing, because one of its rows already exists or is invalid.
            Err(error) if is_row_error(connection, &error) => {
                for call in calls {
                    recorded.push(classify_result(connection, insert(connection, call).map(|_| ()))?);
                }
            }
            Err(error) => return Err(error),
        }
    }
    if sums.is_some() && summed.len() < calls.len() {
        sums = Some(sums::sum_calls(&summed));
    }
    if let Some(sums) = sums {
        sums::write_all(connection, &sums)?;
    }
    Ok(recorded)
}

/// Returns the outcome of a row, or the error if the store itself failed.
pub(crate) fn classify_result(
    connection: &Connection,
    result: rusqlite::Result<()>,
) -> rusqlite::Result<RowOutcome> {
    match result {
        Ok(()) => Ok(RowOutcome::Kept),
        Err(error) if is_row_error(connection, &error) => Ok(RowOutcome::Refused(error.to_string())),
        Err(error) => Err(error),
    }
}

/// Whether the error concerns only the row, so that the transaction is still open.
fn is_row_error(connection: &Connection, error: &rusqlite::Error) -> bool {
    let is_of_a_row = matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::TooBig)
    );
    is_of_a_row && !connection.is_autocommit()
}

/// Writes the row of a call that is not summed yet. Keeps an existing row. Returns whether the row is new.
pub(crate) fn insert(connection: &Connection, call: &Call) -> rusqlite::Result<bool> {
    match insert_all(connection, &[call], false) {
        Ok(()) => record_extras(connection, call).map(|()| true),
        Err(rusqlite::Error::SqliteFailure(error, _))
            if error.extended_code == rusqlite::ffi::SQLITE_CONSTRAINT_PRIMARYKEY =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Writes all rows of these calls, or none of them.
fn insert_all(connection: &Connection, calls: &[&Call], is_summed: bool) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(&INSERT[usize::from(calls.len() > 1)])?;
    let mut place = 0;
    for call in calls {
        bind(&mut statement, &mut place, call, is_summed)?;
    }
    statement.raw_execute().map(|_| ())
}

/// Binds the values of a row, in the order of [`USAGE_COLUMNS`].
fn bind(
    statement: &mut Statement<'_>,
    place: &mut usize,
    Call { started, settled }: &Call,
    is_summed: bool,
) -> rusqlite::Result<()> {
    let mut value = |value: &dyn ToSql| {
        *place += 1;
        statement.raw_bind_parameter(*place, value)
    };
    let settled = settled.as_ref();
    let tokens = settled.map_or(Tokens::default(), |settled| settled.tokens);
    value(&clip(&started.request_id))?;
    value(&started.call)?;
    value(&started.purpose.name())?;
    value(&clip(&started.session))?;
    value(&started.credential.as_deref().map(clip))?;
    value(&clip(&started.upstream))?;
    value(&started.format)?;
    value(&clip(&started.model))?;
    value(&started.streamed)?;
    value(&started.mode)?;
    value(&utc(started.started_ms))?;
    value(&to_sql_integer(started.sent_bytes))?;
    value(&settled.map(|settled| utc(started.started_ms.saturating_add(settled.total_us / 1_000))))?;
    value(&settled.and_then(|settled| settled.answered_model.as_deref()).map(clip))?;
    value(&settled.and_then(|settled| settled.http_status))?;
    value(&settled.map_or(INTERRUPTED, |settled| &settled.ending))?;
    value(&settled.and_then(|settled| settled.stop.as_deref()))?;
    value(&settled.and_then(|settled| settled.verdict.as_deref()))?;
    value(&settled.and_then(|settled| settled.cut_kind.as_deref()))?;
    for count in [tokens.prompt, tokens.output, tokens.cached, tokens.reasoning, tokens.total] {
        value(&count.map(to_sql_integer))?;
    }
    value(&settled.map(|settled| to_sql_integer(settled.received_bytes)))?;
    value(&settled.and_then(|settled| settled.first_byte_us).map(milliseconds))?;
    value(&settled.map(|settled| milliseconds(settled.total_us)))?;
    value(&is_summed)
}

/// Writes data that few calls have into other tables.
fn record_extras(connection: &Connection, call: &Call) -> rusqlite::Result<()> {
    let Call { started, settled } = call;
    if let Some(estimate) = call_estimate(call) {
        record_estimate(connection, started, estimate)?;
    }
    let Some(settled) = settled else { return Ok(()) };
    let tokens = settled.tokens;
    if let Some(tokens_written) = tokens.cache_written.filter(|tokens| *tokens > 0) {
        connection
            .prepare_cached(
                "INSERT INTO usage_cache_writes (request_id, call, tokens, tokens_1h) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (request_id, call) DO NOTHING",
            )?
            .execute(params![
                clip(&started.request_id),
                started.call,
                to_sql_integer(tokens_written),
                to_sql_integer(tokens.cache_written_1h.unwrap_or(0)),
            ])?;
    }
    let billing = &settled.billing;
    if *billing != Billing::default() {
        connection
            .prepare_cached(
                "INSERT INTO usage_billing (request_id, call, tier, prompt_audio, cached_audio, completion_audio,
                   web_searches) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                 ON CONFLICT (request_id, call) DO NOTHING",
            )?
            .execute(params![
                clip(&started.request_id),
                started.call,
                billing.tier.as_deref().map(clip),
                to_sql_integer(billing.prompt_audio),
                to_sql_integer(billing.cached_audio),
                to_sql_integer(billing.completion_audio),
                to_sql_integer(billing.web_searches),
            ])?;
    }
    Ok(())
}

/// Returns the estimate of a call. For a killed process it contains only the prompt, because the reply is
/// unknown.
fn call_estimate(Call { started, settled }: &Call) -> Option<TokenEstimate> {
    let of_killed = TokenEstimate { prompt: started.prompt_estimate, output: 0 };
    settled.as_ref().map_or(Some(of_killed), |settled| settled.estimate)
}

fn record_estimate(
    connection: &Connection,
    started: &CallStarted,
    TokenEstimate { prompt, output }: TokenEstimate,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO usage_estimates (request_id, call, prompt, output) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (request_id, call) DO NOTHING",
        )?
        .execute(params![
            clip(&started.request_id),
            started.call,
            to_sql_integer(prompt),
            to_sql_integer(output)
        ])?;
    Ok(())
}

/// Returns the first day (`YYYY-MM-DD`, UTC) that a shared database keeps if it keeps `keep_days` days.
pub(crate) fn first_kept_day(keep_days: u32) -> String {
    let kept = unix_seconds().saturating_sub(i64::from(keep_days) * SECONDS_PER_DAY);
    SumPeriod::Day.period_of(&utc(from_sql_integer(kept).saturating_mul(1_000))).to_owned()
}

/// Deletes a batch of calls that began more than `keep_days` days ago. Returns their number, or 0 when no such call
/// remains.
pub(crate) fn delete_old(connection: &Connection, keep_days: u32) -> Result<u64, StatementError> {
    let before: String = connection
        .prepare_cached("SELECT datetime('now', '-' || ?1 || ' days')")?
        .query_row([keep_days], |row| row.get(0))?;
    // Delete from the other tables first: the rows of `usage` are needed to select their rows.
    let mut forgotten = 0;
    for table in ["usage_cache_writes", "usage_estimates", "usage_billing", "usage"] {
        forgotten = connection
            .prepare_cached(&format!(
                "DELETE FROM {table} WHERE (request_id, call) IN (SELECT request_id, call FROM usage
                   WHERE started_at < ?1
                   ORDER BY started_at, request_id, call LIMIT ?2)"
            ))?
            .execute(params![before, DELETION_BATCH_ROWS])?;
    }
    Ok(forgotten as u64)
}

/// Returns the row of a call as it would be read from the table.
pub(crate) fn usage_row_from(call: &Call) -> UsageRow {
    let Call { started, settled } = call;
    let text = |text: &str| clip(text).to_owned();
    let known = settled.as_ref();
    let mut tokens = known.map_or(Tokens::default(), |settled| settled.tokens);
    let written = tokens.cache_written.filter(|tokens| *tokens > 0);
    tokens.cache_written_1h = written.map(|_| tokens.cache_written_1h.unwrap_or(0));
    tokens.cache_written = written;
    let tier = |tier: &String| text(tier);
    UsageRow {
        request_id: text(&started.request_id),
        call: started.call,
        purpose: started.purpose.name().to_owned(),
        session: text(&started.session),
        credential: started.credential.as_deref().map(text),
        upstream: text(&started.upstream),
        format: started.format.to_string(),
        model: text(&started.model),
        answered_model: known.and_then(|settled| settled.answered_model.as_deref()).map(text),
        streamed: started.streamed,
        mode: started.mode.to_string(),
        started_at: utc(started.started_ms),
        ended_at: known.map(|settled| utc(started.started_ms.saturating_add(settled.total_us / 1_000))),
        http_status: known.and_then(|settled| settled.http_status),
        ending: known.map_or(INTERRUPTED, |settled| &settled.ending).to_owned(),
        stop: known.and_then(|settled| settled.stop.as_ref()).map(ToString::to_string),
        verdict: known.and_then(|settled| settled.verdict.as_ref()).map(ToString::to_string),
        cut_kind: known.and_then(|settled| settled.cut_kind.as_ref()).map(ToString::to_string),
        tokens,
        billing: known.map_or_else(Billing::default, |settled| Billing {
            tier: settled.billing.tier.as_ref().map(tier),
            ..settled.billing
        }),
        sent_bytes: started.sent_bytes,
        received_bytes: known.map(|settled| settled.received_bytes),
        estimate: call_estimate(call),
        first_byte_ms: known.and_then(|settled| settled.first_byte_us).map(milliseconds),
        total_ms: known.map(|settled| milliseconds(settled.total_us)),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a duration of many years would lose its microseconds")]
fn milliseconds(microseconds: u64) -> f64 {
    microseconds as f64 / 1_000.0
}
