//! `endmark log`: which replies were cut, and what became of them. (PC-7)

mod show;
mod table;

use show::PieceReport;
pub(super) use show::data as explained;
pub(crate) use table::text as table;

use endmark_store::{FinalStatus, LogFilter, LogRow, Reader};
use serde::Serialize;
use serde_json::Value;

use crate::answer::{Answer, to_data};
use crate::arguments::{Log, LogCommand, StatusChoice};
use crate::context::{Context, configuration_warnings};
use crate::error::CommandError;

/// Lists recoveries, or explains one.
pub(crate) fn run(context: &Context, arguments: &Log) -> Result<Answer, CommandError> {
    let effective = context.configuration(Vec::new())?;
    let warnings = configuration_warnings(&effective);
    let reader = Reader::open(&effective.settings.store).map_err(|error| CommandError::of_store(&error))?;
    let painter = context.terminal.output;
    let answer = match &arguments.command {
        Some(LogCommand::Show { id }) => {
            if let Some(recovery) = reader.show(id).map_err(|error| CommandError::of_store(&error))? {
                Answer::yes(to_data(&explained(&recovery))?, show::text(&recovery, painter))
            } else {
                let hint =
                    "`endmark log` lists what there is; a reply that was whole leaves no row.".to_owned();
                Answer::no(Value::Null, "not_found", format!("no recovery `{id}` is recorded"), Some(hint))
            }
        }
        None => {
            let filter = LogFilter { final_status: arguments.status.map(status), ..LogFilter::default() };
            let rows =
                reader.recent(arguments.limit, &filter).map_err(|error| CommandError::of_store(&error))?;
            let data = to_data(&Report { rows: rows.iter().map(Row::of).collect() })?;
            Answer::yes(data, table(&rows, painter))
        }
    };
    Ok(answer.with_warnings(warnings))
}

/// Recoveries, as they are answered.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Report<'a> {
    rows: Vec<Row<'a>>,
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
