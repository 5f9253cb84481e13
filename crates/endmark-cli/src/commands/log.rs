//! `endmark log`: which replies were cut, and the outcome of each (PC-7).

mod calls;
mod show;

use endmark_console::reports::recoveries::{self, RecoveriesReport, RecoveryEntry};
use endmark_failure::CommandError;
use endmark_store::{FinalStatus, LogFilter, Reader, StoreError};
use serde_json::Value;

use crate::arguments::{Log, LogCommand, StatusChoice};
use crate::context::{Context, report_warnings};
use crate::view::answer::{Answer, to_data};
use crate::view::paint::Painter;
use crate::view::recoveries as recoveries_view;

/// Lists recoveries, or explains one.
pub(crate) fn run(context: &Context, arguments: &Log) -> Result<Answer, CommandError> {
    let effective = context.configuration(arguments.overrides())?;
    let warnings = report_warnings(&effective);
    let reader =
        Reader::open(&effective.settings.files.store).map_err(|error| CommandError::from_store(&error))?;
    let painter = context.terminal.output;
    let answer = match &arguments.command {
        Some(LogCommand::Show { id, .. }) => show_entry(&reader, id, painter)?,
        None => {
            let filter = LogFilter { final_status: arguments.status.map(status), ..LogFilter::default() };
            let rows =
                reader.recent(arguments.limit, &filter).map_err(|error| CommandError::from_store(&error))?;
            let data = to_data(&RecoveriesReport {
                rows: rows.iter().map(RecoveryEntry::new).collect(),
                calls: None,
            })?;
            Answer::yes(
                data,
                recoveries_view::text(&rows, context.terminal.tables()) + &recoveries_view::reasons(&rows),
            )
        }
    };
    Ok(answer.with_warnings(warnings))
}

/// Shows what is recorded about a recovery or a request: its cut parts, and the upstream calls for it.
fn show_entry(reader: &Reader, id: &str, painter: Painter) -> Result<Answer, CommandError> {
    let failed = |error: StoreError| CommandError::from_store(&error);
    let recovery = reader.show(id).map_err(failed)?;
    let request =
        recovery.as_ref().and_then(|recovery| recovery.rows.first()).map_or(id, |row| &row.request_id);
    let calls = reader.request_calls(request).map_err(failed)?;
    let data = || to_data(&recoveries::report_with_calls(recovery.as_ref(), &calls));
    match &recovery {
        None if calls.is_empty() => {
            let hint = "`endmark log` lists recoveries. For a chat request, use the id from its header x-endmark-request.";
            let message = format!("no recovery or request `{id}` is recorded");
            Ok(Answer::no(Value::Null, "not_found", message, Some(hint.to_owned())))
        }
        None => Ok(Answer::yes(data()?, calls::text(&calls, painter))),
        Some(found) => {
            let text = [show::text(found, painter), calls::text(&calls, painter)];
            Ok(Answer::yes(data()?, text.join(if calls.is_empty() { "" } else { "\n" })))
        }
    }
}

fn status(choice: StatusChoice) -> FinalStatus {
    match choice {
        StatusChoice::Resolved => FinalStatus::Resolved,
        StatusChoice::Exhausted => FinalStatus::Exhausted,
    }
}
