//! Runs several agents concurrently, with one signal handler.

use std::cell::RefCell;
use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::rc::Rc;

use endmark_process::EndSignals;
use endmark_runs::{AgentRun, RunEventReport, RunObserver, RunOutcome, Task, supervise};
use endmark_store::Recorder;
use tokio::task::{JoinSet, LocalSet};

use super::run_reporter::RunReporter;

/// A finished run.
pub(super) struct FinishedRun {
    pub(super) transcripts: Option<PathBuf>,
    pub(super) outcome: RunOutcome,
}

/// The results of runs, in the order of their tasks.
pub(super) struct FinishedRuns {
    pub(super) finished: Vec<FinishedRun>,
    /// Tasks that were not started because of a signal.
    pub(super) not_started: Vec<Task>,
    /// The signal, if one arrived before all runs ended.
    pub(super) signal: Option<i32>,
}

/// Supervises all tasks, at most `at_once` in parallel. A signal ends the active runs, and no more are started.
pub(super) async fn supervise_all(
    tasks: Vec<Task>,
    at_once: NonZeroUsize,
    recorder: &Recorder,
    telling: &Rc<RefCell<RunReporter>>,
) -> io::Result<FinishedRuns> {
    LocalSet::new()
        .run_until(async {
            let mut stopped = EndSignals::watch()?;
            let mut signal = None;
            let mut waiting = tasks.into_iter().enumerate();
            let mut under_way = JoinSet::new();
            let mut over = Vec::new();
            loop {
                while signal.is_none() && under_way.len() < at_once.get() {
                    let Some((index, task)) = waiting.next() else { break };
                    let mut signals = EndSignals::watch()?;
                    let recorder = recorder.clone();
                    let mut watcher = RunWatcher { reporter: Rc::clone(telling) };
                    under_way.spawn_local(async move {
                        let outcome =
                            Box::pin(supervise(&task, Some(recorder), &mut watcher, &mut signals)).await;
                        (index, FinishedRun { transcripts: task.transcripts, outcome })
                    });
                }
                tokio::select! {
                    ended = under_way.join_next() => match ended {
                        Some(ended) => over.push(ended.map_err(io::Error::other)?),
                        None => break,
                    },
                    came = stopped.next(), if signal.is_none() => signal = Some(came.as_raw()),
                }
            }
            over.sort_by_key(|(index, _)| *index);
            Ok(FinishedRuns {
                finished: over.into_iter().map(|(_, over)| over).collect(),
                not_started: waiting.map(|(_, task)| task).collect(),
                signal,
            })
        })
        .await
}

/// The observer of one run, which reports to the shared [`RunReporter`].
struct RunWatcher {
    reporter: Rc<RefCell<RunReporter>>,
}

impl RunObserver for RunWatcher {
    fn report_event(&mut self, run: &AgentRun, event: &RunEventReport) {
        self.reporter.borrow_mut().report_event(run, event);
    }

    fn warn(&mut self, message: &str) {
        self.reporter.borrow_mut().warn(message);
    }
}
