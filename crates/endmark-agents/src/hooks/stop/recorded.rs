//! Records the outcome of an agent's run for `endmark runs` (CG-4).
//!
//! Only outcomes are recorded. Between two stops, no supervisor watches the agent, so a run that was recorded
//! as running would count as lost.

use endmark_config::Settings;
use endmark_guard::{Assessment, Notice, State};
use endmark_store::{NoSecrets, RunEventRecord, RunRecord, Store, StoreError, runtime};

use crate::hooks::attempts::{AttemptRecord, record_name};

/// Number of hash characters in the id of the run.
const ID_CHARS: usize = 16;

/// Records an outcome in the store. Does nothing if the run has not ended.
pub(super) fn record_outcome(
    settings: &Settings,
    record: &AttemptRecord,
    folder: String,
    report: &Assessment,
    attempts: u32,
) -> Result<(), String> {
    let notice = match (record.state, record.reason) {
        (State::Released, Some(reason)) => Notice::Released(reason),
        // If no stop of the agent was refused, there is no run to record.
        (State::Succeeded, _) if record.attempts > 1 => Notice::Succeeded,
        _ => return Ok(()),
    };
    let mut id = record_name(&["run", &record.agent, &record.session, &record.artifact]);
    id.truncate(ID_CHARS);
    let run = RunRecord {
        id,
        state: record.state.name().to_owned(),
        reason: record.reason.map(|reason| reason.name().to_owned()),
        agent: record.agent.clone(),
        // The hook does not know the agent's command.
        command: "[]".to_owned(),
        folder,
        artifact: record.artifact.clone(),
        attempt: record.attempts,
        max_attempts: attempts,
        session: Some(record.session.clone()),
        findings: u64::try_from(report.findings().len()).ok(),
        ..RunRecord::default()
    };
    let message = format!(
        "attempt {} of {attempts}, checked by a hook: {} findings in `{}`",
        record.attempts,
        report.findings().len(),
        record.artifact
    );
    let event = RunEventRecord { name: notice.name().to_owned(), message };
    let describe = |error: StoreError| error.to_string();
    let store = Store::open_for_runs(&settings.files.store).map_err(describe)?;
    let runtime = runtime::new().map_err(|error| error.to_string())?;
    let recorded = runtime.block_on(store.recorder(NoSecrets).record_run(run, vec![event]));
    runtime.block_on(store.close());
    recorded.map_err(describe)
}
