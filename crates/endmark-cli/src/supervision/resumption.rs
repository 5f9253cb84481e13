//! `endmark runs resume`: continues runs whose supervisor was killed, within their remaining attempts, time and money
//! (CG-4).

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use endmark_config::{EffectiveConfig, models};
use endmark_failure::CommandError;
use endmark_runs::{ResumedProgress, Task};
use endmark_store::{NoSecrets, Reader, Store, StoreError, StoredRun};

use super::run_options::{RunOptions, SharedContext};
use super::run_reporter::RunReporter;
use super::{answer, build_runtime, open_store, runs_folder, supervise_tasks};
use crate::arguments::runs::Resume;
use crate::context::{Context, configuration_warnings};
use crate::view::answer::Answer;

/// Number of recent runs that are searched for lost ones.
const MAX_SEARCHED_RUNS: u32 = 10_000;
/// Maximum number of events of a run that are read.
const MAX_EVENTS: u32 = 100_000;
/// Number of checks whether the old agent has ended.
///
/// An agent is stopped within two seconds of its supervisor's end, and killed after its grace period. All
/// checks together take longer.
const MAX_AGENT_POLLS: u32 = 150;
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Resumes runs, and supervises them until they end. All of them are checked before any is started.
pub(crate) fn resume_runs(
    context: &Context,
    arguments: &Resume,
    effective: &EffectiveConfig,
) -> Result<Answer, CommandError> {
    let failed = |error: StoreError| CommandError::from_store(&error);
    let location = &effective.settings.files.store;
    // Opening the store for writing marks the runs whose supervisors have ended.
    drop(Store::open_for_runs(location).map_err(failed)?);
    let reader = Reader::open(location).map_err(failed)?;
    let kept = runs_folder(&effective.settings);
    let transcripts = |id: &str| kept.join(id);
    let shared =
        SharedContext { context, models: Arc::new(models(&effective.settings)), transcripts: &transcripts };
    let mut tasks = Vec::new();
    for stored in select_runs(&reader, arguments)? {
        let events = reader.run_events(Some(&stored.run.id), 0, MAX_EVENTS).map_err(failed)?;
        tasks.push(resumed_task(&shared, &stored, ResumedProgress::from_events(&stored, &events))?);
    }
    let telling = RunReporter::new(context.terminal, arguments.events.as_deref(), &effective.settings.runs)?;
    let store = open_store(&effective.settings, &tasks)?;
    // All requirements of the runs were checked above, before any run is claimed.
    for task in &tasks {
        wait_for_agent(&task.id)?;
        let taken =
            build_runtime()?.block_on(store.recorder(NoSecrets).take_over_run(&task.id)).map_err(failed)?;
        if !taken {
            return Err(refusal(&task.id, "another process has resumed it"));
        }
    }
    let (all, warnings) =
        supervise_tasks(&shared, &effective.settings, &store, tasks, arguments.parallel, telling)?;
    let runs = all.finished.iter().map(|over| over.outcome.run.clone()).collect();
    let mut answer = answer::answer_all(context.terminal.table_layout(), all)?;
    answer.data = crate::view::runs::runs_data(runs)?;
    Ok(answer.with_warnings(configuration_warnings(effective)).with_warnings(warnings))
}

/// Returns the named runs, or with `--all` every lost run.
fn select_runs(reader: &Reader, arguments: &Resume) -> Result<Vec<StoredRun>, CommandError> {
    let failed = |error: StoreError| CommandError::from_store(&error);
    if arguments.all {
        let mut runs = reader.runs(MAX_SEARCHED_RUNS).map_err(failed)?;
        // The newest run comes first, so a lost run is skipped if a newer run has the same artifact.
        let mut seen = HashSet::new();
        runs.retain(|stored| {
            seen.insert(artifact(stored)) && ResumedProgress::from_events(stored, &[]).is_some()
        });
        return Ok(runs);
    }
    let found = |id: &String| {
        reader.run(id).map_err(failed)?.ok_or_else(|| {
            CommandError::input(
                "not_found",
                format!("there is no run `{id}`, or several begin with this id"),
                "`endmark runs` lists them; resume a run on its own machine.",
            )
        })
    };
    let runs: Vec<StoredRun> = arguments.ids.iter().map(found).collect::<Result<_, _>>()?;
    let mut seen = HashSet::new();
    match runs.iter().find(|stored| !seen.insert(artifact(stored))) {
        Some(twice) => Err(refusal(&twice.run.id, "another named run has the same artifact")),
        None => Ok(runs),
    }
}

fn artifact(stored: &StoredRun) -> PathBuf {
    Path::new(&stored.run.folder).join(&stored.run.artifact)
}

fn resumed_task(
    shared: &SharedContext<'_>,
    stored: &StoredRun,
    taken_up: Option<ResumedProgress>,
) -> Result<Task, CommandError> {
    let id = &stored.run.id;
    let (Some(taken_up), Some(asked)) = (taken_up, &stored.run.task) else {
        return Err(refusal(id, "its supervisor was not killed, or its options are unknown"));
    };
    let wish: RunOptions = serde_json::from_str(&asked.prompt_text)
        .map_err(|error| refusal(id, &format!("its recorded options cannot be read: {error}")))?;
    let mut task = wish.check(shared).map_err(|error| match error {
        CommandError::Input { code, message, hint } => {
            CommandError::Input { code, message: format!("{id}: {message}"), hint }
        }
        other => other,
    })?;
    let spent = taken_up.before.nanodollars.unwrap_or(0);
    if taken_up.before.seconds >= task.limits.seconds.get()
        || task.limits.nanodollars.is_some_and(|ceiling| spent >= ceiling.get())
    {
        return Err(refusal(id, "its limit of time or money is reached"));
    }
    task.id.clone_from(id);
    task.resumed = Some(taken_up);
    Ok(task)
}

/// Waits until the agent of the killed supervisor has ended, because two agents must not write one artifact.
fn wait_for_agent(id: &str) -> Result<(), CommandError> {
    for _ in 0..MAX_AGENT_POLLS {
        if !ResumedProgress::has_running_agent(id) {
            return Ok(());
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Err(refusal(id, "its agent is still running"))
}

fn refusal(id: &str, why: &str) -> CommandError {
    CommandError::input(
        "not_resumable",
        format!("{id} cannot be resumed: {why}"),
        "`endmark runs show ID` shows all that is known.",
    )
}
