//! Supervises agent commands until their artifacts are complete, or there is a reason to give up (CG-3 to CG-5).

mod answer;
mod concurrent_runs;
mod limits;
mod output_retention;
mod resumption;
mod run_file;
mod run_options;
mod run_reporter;

use std::cell::RefCell;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use endmark_agents::through;
use endmark_config::{Settings, models};
use endmark_envelope::Warning;
use endmark_failure::CommandError;
use endmark_runs::Task;
use endmark_store::{NoSecrets, Store};
use tokio::runtime::Runtime;

use crate::arguments::run::Run;
use crate::context::{Context, configuration_warnings};
use crate::view::answer::Answer;
#[cfg(test)]
pub(crate) use answer::SupervisionReport;
use concurrent_runs::FinishedRuns;
pub(crate) use resumption::resume_runs;
use run_options::{RunOptions, SharedContext};
use run_reporter::RunReporter;

/// How long the process waits at its end for unsent webhook events.
const WEBHOOK_FLUSH_TIMEOUT: Duration = Duration::from_secs(10);

/// Supervises one command, or all runs of a file, until they end.
pub(crate) fn supervise(context: &Context, arguments: &Run) -> Result<Answer, CommandError> {
    let effective = context.load_configuration(arguments.overrides())?;
    let kept = runs_folder(&effective.settings);
    let transcripts = |id: &str| match &arguments.output_folder {
        Some(folder) if arguments.spec.is_none() => folder.clone(),
        Some(folder) => folder.join(id),
        None => kept.join(id),
    };
    let models = Arc::new(models(&effective.settings));
    let shared = SharedContext { context, models, transcripts: &transcripts };
    let typed = RunOptions::from_arguments(arguments);
    let tasks = match &arguments.spec {
        Some(path) => run_file::read_run_file(&shared, path, &typed)?,
        None => vec![typed.check(&shared)?],
    };
    let telling = RunReporter::new(context.terminal, arguments.events.as_deref(), &effective.settings.runs)?;
    let store = open_store(&effective.settings, &tasks)?;
    delete_old_outputs(&effective.settings, &kept);
    let (all, warnings) =
        supervise_tasks(&shared, &effective.settings, &store, tasks, arguments.parallel, telling)?;
    let painter = context.terminal.output;
    let answer = if arguments.spec.is_some() {
        answer::answer_all(context.terminal.table_layout(), all)?
    } else {
        let over = all.finished.into_iter().next();
        answer::answer_one(painter, over.ok_or_else(|| CommandError::Bug("no run has ended".to_owned()))?)?
    };
    Ok(answer.with_warnings(configuration_warnings(&effective)).with_warnings(warnings))
}

/// Opens the store for these tasks. Only a gateway of a run needs the shared budgets.
fn open_store(settings: &Settings, tasks: &[Task]) -> Result<Store, CommandError> {
    let is_through = tasks.iter().any(|task| task.runs_through_gateway);
    let open = if is_through { Store::open } else { Store::open_for_runs };
    open(&settings.files.store).map_err(|error| CommandError::from_store(&error))
}

/// Supervises all tasks, at most `at_once` in parallel, and closes the store. Also returns warnings.
fn supervise_tasks(
    shared: &SharedContext<'_>,
    settings: &Settings,
    store: &Store,
    mut tasks: Vec<Task>,
    at_once: u16,
    reporter: RunReporter,
) -> Result<(FinishedRuns, Vec<Warning>), CommandError> {
    let reporter = Rc::new(RefCell::new(reporter));
    let at_once = NonZeroUsize::new(at_once.into()).unwrap_or(NonZeroUsize::MIN);
    let all = build_runtime()?.block_on(async {
        through::open_all(&shared.context.environment, &shared.models, settings, store, &mut tasks)?;
        let recorder = store.recorder(NoSecrets);
        let all = concurrent_runs::supervise_all(tasks, at_once, &recorder, &reporter).await;
        drop(recorder);
        let webhook = reporter.borrow().webhook();
        if let Some(webhook) = webhook
            && !webhook.flush(WEBHOOK_FLUSH_TIMEOUT).await
        {
            reporter.borrow_mut().warn("some events did not reach the webhook");
        }
        store.close().await;
        all.map_err(|error| system_error(&error))
    })?;
    let outcomes = all.finished.iter().flat_map(|over| &over.outcome.warnings);
    let reporter = reporter.borrow();
    let unpublished = store.publication_failure().map(|error| {
        format!("other machines do not see the runs as they are now: {error}; the next run or gateway with this journal reports them")
    });
    let warnings = outcomes.chain(&reporter.warnings).chain(&unpublished);
    let warnings = warnings.map(|message| Warning::notice("AGENT_RUN", message)).collect();
    Ok((all, warnings))
}

fn build_runtime() -> Result<Runtime, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| system_error(&error))
}

fn system_error(error: &io::Error) -> CommandError {
    CommandError::Upstream {
        message: format!("the system does not allow the command to run: {error}"),
        hint: None,
    }
}

/// Returns the folder next to the store that has a subfolder for each run.
pub(crate) fn runs_folder(settings: &Settings) -> PathBuf {
    let mut folder = settings.files.store.path().as_os_str().to_owned();
    folder.push("-runs");
    PathBuf::from(folder)
}

/// Deletes the output of runs that are older than the retention period.
fn delete_old_outputs(settings: &Settings, folder: &Path) {
    // As in the store, 0 days means forever.
    let days = settings.gateway.store_policy.keep_days;
    if days > 0 {
        output_retention::delete_old_folders(folder, Duration::from_hours(24) * days, SystemTime::now());
    }
}
