//! `endmark runs record`: records a run of another scheduler from that scheduler's reports. (CG-4)

use endmark_config::{EffectiveConfig, models};
use endmark_failure::CommandError;
use endmark_guard::Notice;
use endmark_runs::{AgentRun, ReportError, RunReport, apply_event};
use endmark_store::{NoSecrets, Reader, Store, StoreError, runtime};
use endmark_text::replace_lone_surrogate_bytes;

use super::MAX_SHOWN_EVENTS;
use crate::arguments::runs::Record;
use crate::context::Context;
use crate::input::Input;
use crate::view::answer::Answer;
use crate::view::runs::{runs_data, table_lines};

/// The largest report that is accepted, in bytes.
const MAX_EVENT_REPORT_BYTES: u64 = 1 << 20;

/// Records one event of a run, as described on standard input.
pub(super) fn run(
    context: &Context,
    arguments: &Record,
    effective: &EffectiveConfig,
) -> Result<Answer, CommandError> {
    let bytes = Input::open(None, context.terminal)?.read_bytes_up_to(MAX_EVENT_REPORT_BYTES)?;
    let report: RunReport = serde_json::from_slice(&replace_lone_surrogate_bytes(&bytes)).map_err(|error| {
        CommandError::input(
            "bad_report",
            format!("standard input is not a report of a run: {error}"),
            "Write one JSON object, as {\"id\": \"nightly-7\", \"agent\": \"codex\", \"artifact\": \"report.md\"}.",
        )
    })?;
    let failed = |error: StoreError| CommandError::from_store(&error);
    let store = Store::open_for_runs(&effective.settings.files.store).map_err(failed)?;
    let reader = Reader::open(&effective.settings.files.store).map_err(failed)?;
    let id = report.id.clone();
    let before = reader.run(&id).map_err(failed)?.filter(|before| before.run.id == id);
    if before.as_ref().is_some_and(|before| before.is_supervised && before.run.task.is_some()) {
        return Err(report_error(&ReportError::Supervised(id)));
    }
    let attempt = before.as_ref().map_or(0, |before| before.run.attempt);
    let risk = Notice::ContextRisk { is_sum: false }.name();
    let events = reader.run_events(Some(&id), 0, MAX_SHOWN_EVENTS).map_err(failed)?;
    let had_risk = events.iter().any(|event| event.name == risk && event.attempt == attempt);
    let before = before.map(|before| before.run);
    let (record, events) =
        apply_event(before, had_risk, arguments.event.into(), report, &models(&effective.settings))
            .map_err(|error| report_error(&error))?;
    let runtime = runtime::new()?;
    let recorded = runtime.block_on(store.recorder(NoSecrets).record_external_run(record, events));
    runtime.block_on(store.close());
    recorded.map_err(failed)?;
    let recorded: Vec<AgentRun> = reader.run(&id).map_err(failed)?.map(AgentRun::from).into_iter().collect();
    let text = table_lines(&recorded, context.terminal.table_layout()).join("\n") + "\n";
    Ok(Answer::yes(runs_data(recorded)?, text))
}

fn report_error(error: &ReportError) -> CommandError {
    CommandError::input(
        "bad_report",
        error.to_string(),
        "Nothing was recorded. See `endmark runs record --help`.",
    )
}
