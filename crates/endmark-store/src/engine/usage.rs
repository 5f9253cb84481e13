//! The statements about upstream calls.

use rusqlite::{Connection, params};

use crate::calls::{Billing, Call, CallSettled, CallStarted, Tokens, UsageRow};
use crate::counted::INTERRUPTED;
use crate::engine::integers::integer;
use crate::engine::moment::utc;
use crate::engine::{Fault, budgets, sums};
use crate::ledger::encoding::clipped;

/// Rows forgotten in one transaction: others wait for milliseconds, not for seconds.
const FORGOTTEN_AT_ONCE: u32 = 5_000;

/// Records a call that another process left: writes its row, settles what it holds, and leaves it to be summed.
pub(crate) fn record(connection: &Connection, call: &Call) -> rusqlite::Result<()> {
    if insert(connection, call)? {
        sums::leave(connection, call)?;
    }
    budgets::settle(connection, call)
}

/// Writes the row of a call, once: a call that has its row already keeps it. Answers whether it is new.
pub(crate) fn insert(connection: &Connection, call: &Call) -> rusqlite::Result<bool> {
    let Call { started, settled } = call;
    let tokens = settled.as_ref().map_or(Tokens::default(), |settled| settled.tokens);
    let ended_ms =
        settled.as_ref().map(|settled| started.started_ms.saturating_add(settled.total_us / 1_000));
    let written = connection
        .prepare_cached(
            "INSERT INTO usage (request_id, call, purpose, session, credential, upstream, format, model, streamed,
               mode, started_at, sent_bytes, ended_at, answered_model, http_status, ending, stop, verdict, cut_kind,
               prompt_tokens, output_tokens, cached_tokens, reasoning_tokens, total_tokens, received_bytes,
               first_byte_ms, total_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21,
               ?22, ?23, ?24, ?25, ?26, ?27)
             ON CONFLICT (request_id, call) DO NOTHING",
        )?
        .execute(params![
            clipped(&started.request_id),
            started.call,
            started.purpose.name(),
            clipped(&started.session),
            started.credential.as_deref().map(clipped),
            clipped(&started.upstream),
            started.format,
            clipped(&started.model),
            started.streamed,
            started.mode,
            utc(started.started_ms),
            integer(started.sent_bytes),
            ended_ms.map(utc),
            settled.as_ref().and_then(|settled| settled.answered_model.as_deref()).map(clipped),
            settled.as_ref().and_then(|settled| settled.http_status),
            settled.as_ref().map_or(INTERRUPTED, |settled| &settled.ending),
            settled.as_ref().and_then(|settled| settled.stop.as_deref()),
            settled.as_ref().and_then(|settled| settled.verdict.as_deref()),
            settled.as_ref().and_then(|settled| settled.cut_kind.as_deref()),
            tokens.prompt.map(integer),
            tokens.output.map(integer),
            tokens.cached.map(integer),
            tokens.reasoning.map(integer),
            tokens.total.map(integer),
            settled.as_ref().map(|settled| integer(settled.received_bytes)),
            settled.as_ref().and_then(|settled| settled.first_byte_us).map(milliseconds),
            settled.as_ref().map(|settled| milliseconds(settled.total_us)),
        ])?;
    if written > 0
        && let Some(settled) = settled
    {
        record_beside(connection, started, settled)?;
    }
    Ok(written > 0)
}

/// Writes what few calls have, in tables of its own.
fn record_beside(
    connection: &Connection,
    started: &CallStarted,
    settled: &CallSettled,
) -> rusqlite::Result<()> {
    let tokens = settled.tokens;
    if let Some(tokens_written) = tokens.cache_written.filter(|tokens| *tokens > 0) {
        connection
            .prepare_cached(
                "INSERT INTO usage_cache_writes (request_id, call, tokens, tokens_1h) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (request_id, call) DO NOTHING",
            )?
            .execute(params![
                clipped(&started.request_id),
                started.call,
                integer(tokens_written),
                integer(tokens.cache_written_1h.unwrap_or(0)),
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
                clipped(&started.request_id),
                started.call,
                billing.tier.as_deref().map(clipped),
                integer(billing.prompt_audio),
                integer(billing.cached_audio),
                integer(billing.completion_audio),
                integer(billing.web_searches),
            ])?;
    }
    if let Some(text_bytes) = settled.text_bytes.filter(|_| tokens.output.is_none()) {
        connection
            .prepare_cached(
                "INSERT INTO usage_texts (request_id, call, text_bytes) VALUES (?1, ?2, ?3)
                 ON CONFLICT (request_id, call) DO NOTHING",
            )?
            .execute(params![clipped(&started.request_id), started.call, integer(text_bytes)])?;
    }
    Ok(())
}

/// Forgets some of the calls that began more than so many days ago; answers how many, 0 when none is left.
pub(crate) fn forget(connection: &Connection, keep_days: u32) -> Result<u64, Fault> {
    let before: String = connection
        .prepare_cached("SELECT datetime('now', '-' || ?1 || ' days')")?
        .query_row([keep_days], |row| row.get(0))?;
    // What stands beside the ledger first, while the rows that it belongs to are there to be chosen.
    let mut forgotten = 0;
    for table in ["usage_cache_writes", "usage_texts", "usage_billing", "usage"] {
        forgotten = connection
            .prepare_cached(&format!(
                "DELETE FROM {table} WHERE (request_id, call) IN (SELECT request_id, call FROM usage
                   WHERE started_at < ?1
                   ORDER BY started_at, request_id, call LIMIT ?2)"
            ))?
            .execute(params![before, FORGOTTEN_AT_ONCE])?;
    }
    Ok(forgotten as u64)
}

/// The row of a call as it is read back.
pub(crate) fn row_of(call: &Call) -> UsageRow {
    let Call { started, settled } = call;
    let text = |text: &str| clipped(text).to_owned();
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
        text_bytes: known.and_then(|settled| settled.text_bytes).filter(|_| tokens.output.is_none()),
        first_byte_ms: known.and_then(|settled| settled.first_byte_us).map(milliseconds),
        total_ms: known.map(|settled| milliseconds(settled.total_us)),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a duration of many years would lose its microseconds")]
fn milliseconds(microseconds: u64) -> f64 {
    microseconds as f64 / 1_000.0
}
