//! `endmark log`: which replies were cut, and what became of them. (PC-7)

mod calls;
mod not_asked;
mod show;
mod table;

use calls::CallReport;
use not_asked::NotAsked;
use show::PieceReport;
pub(super) use show::explained;
pub(crate) use table::text as table;

use endmark_store::{FinalStatus, LogFilter, LogRow, Reader, StoreError};
use serde::Serialize;
use serde_json::Value;

use crate::answer::{Answer, to_data};
use crate::arguments::{Log, LogCommand, StatusChoice};
use crate::context::{Context, configuration_warnings};
use crate::error::CommandError;
use crate::terminal::Painter;

/// Lists recoveries, or explains one.
pub(crate) fn run(context: &Context, arguments: &Log) -> Result<Answer, CommandError> {
    let effective = context.configuration(arguments.overrides())?;
    let warnings = configuration_warnings(&effective);
    let reader = Reader::open(&effective.settings.store).map_err(|error| CommandError::of_store(&error))?;
    let painter = context.terminal.output;
    let answer = match &arguments.command {
        Some(LogCommand::Show { id, .. }) => shown(&reader, id, painter)?,
        None => {
            let filter = LogFilter { final_status: arguments.status.map(status), ..LogFilter::default() };
            let rows =
                reader.recent(arguments.limit, &filter).map_err(|error| CommandError::of_store(&error))?;
            let data = to_data(&Report { rows: rows.iter().map(Row::of).collect(), calls: None })?;
            Answer::yes(data, table(&rows, painter))
        }
    };
    Ok(answer.with_warnings(warnings))
}

/// What is known of a recovery or of a request: its cut parts, and the upstream calls that were made for it.
fn shown(reader: &Reader, id: &str, painter: Painter) -> Result<Answer, CommandError> {
    let failed = |error: StoreError| CommandError::of_store(&error);
    let recovery = reader.show(id).map_err(failed)?;
    let request =
        recovery.as_ref().and_then(|recovery| recovery.rows.first()).map_or(id, |row| &row.request_id);
    let calls = reader.calls_of(request).map_err(failed)?;
    let data = || to_data(&show::data(recovery.as_ref(), &calls));
    match &recovery {
        None if calls.is_empty() => {
            let hint =
                "`endmark log` lists recoveries; chat requests can be shown by the id in x-endmark-request.";
            let message = format!("no recovery or request `{id}` is recorded");
            Ok(Answer::no(Value::Null, "not_found", message, Some(hint.to_owned())))
        }
        None => Ok(Answer::yes(data()?, calls::text(&calls, painter))),
        Some(found) => {
            let text = [show::text_with_calls(found, &calls, painter), calls::text(&calls, painter)];
            Ok(Answer::yes(data()?, text.join(if calls.is_empty() { "" } else { "\n" })))
        }
    }
}

/// Recoveries, as they are answered.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Report<'a> {
    rows: Vec<Row<'a>>,
    /// The upstream calls of the request, where it is asked for: `log show`.
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<Vec<CallReport<'a>>>,
}

/// A row under the names of its columns.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Row<'a> {
    id: i64,
    task_id: &'a str,
    turn_number: i64,
    truncation_index: Option<i64>,
    initial_chunk_length: Option<i64>,
    resume_attempts: i64,
    final_status: &'static str,
    timestamp: &'a str,
    request_id: &'a str,
    slot: &'a str,
    model: &'a str,
    provider: &'a str,
    cut_kind: &'a str,
    outcome: &'a str,
    seam_style: Option<&'a str>,
    extra_prompt_tokens: i64,
    extra_output_tokens: i64,
    reason: &'a str,
    /// Why nothing was asked, where the request itself kept Endmark from it: `log show`.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_asked: Option<NotAsked>,
    /// What was received, where it is asked for: `log show`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pieces: Option<Vec<PieceReport<'a>>>,
}

impl<'a> Row<'a> {
    pub(super) fn of(row: &'a LogRow) -> Self {
        Self {
            id: row.id,
            task_id: &row.task_id,
            turn_number: row.turn_number,
            truncation_index: row.truncation_index,
            initial_chunk_length: row.initial_chunk_length,
            resume_attempts: row.resume_attempts,
            final_status: row.final_status.name(),
            timestamp: &row.timestamp,
            request_id: &row.request_id,
            slot: &row.slot,
            model: &row.model,
            provider: &row.provider,
            cut_kind: &row.cut_kind,
            outcome: &row.outcome,
            seam_style: row.seam_style.as_deref(),
            extra_prompt_tokens: row.extra_prompt_tokens,
            extra_output_tokens: row.extra_output_tokens,
            reason: &row.reason,
            not_asked: None,
            pieces: None,
        }
    }
}

fn status(choice: StatusChoice) -> FinalStatus {
    match choice {
        StatusChoice::Resolved => FinalStatus::Resolved,
        StatusChoice::Exhausted => FinalStatus::Exhausted,
    }
}
