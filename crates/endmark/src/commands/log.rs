//! `endmark log`: which replies were cut, and what became of them. (PC-7)

mod show;
mod table;

pub(crate) use show::data as explained;
pub(crate) use table::text as table;

use endmark_store::{FinalStatus, LogFilter, LogRow, Reader};
use serde_json::{Value, json};

use crate::answer::Answer;
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
                Answer::yes(explained(&recovery), show::text(&recovery, painter))
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
            let data = json!({"rows": rows.iter().map(row_data).collect::<Vec<_>>()});
            Answer::yes(data, table(&rows, painter))
        }
    };
    Ok(answer.with_warnings(warnings))
}

/// A row under the names of its columns.
pub(crate) fn row_data(row: &LogRow) -> Value {
    json!({
        "id": row.id,
        "task_id": row.task_id,
        "turn_number": row.turn_number,
        "truncation_index": row.truncation_index,
        "initial_chunk_length": row.initial_chunk_length,
        "resume_attempts": row.resume_attempts,
        "final_status": row.final_status.name(),
        "timestamp": row.timestamp,
        "request_id": row.request_id,
        "slot": row.slot,
        "model": row.model,
        "provider": row.provider,
        "cut_kind": row.cut_kind,
        "outcome": row.outcome,
        "seam_style": row.seam_style,
        "extra_prompt_tokens": row.extra_prompt_tokens,
        "extra_output_tokens": row.extra_output_tokens,
        "reason": row.reason,
    })
}

fn status(choice: StatusChoice) -> FinalStatus {
    match choice {
        StatusChoice::Resolved => FinalStatus::Resolved,
        StatusChoice::Exhausted => FinalStatus::Exhausted,
    }
}
