//! Supervised runs, written down.

use std::sync::Arc;

use super::{RunEventRecord, RunRecord};
use crate::engine;
use crate::error::StoreError;
use crate::owner::ELSEWHERE;
use crate::recorder::Recorder;

impl Recorder {
    /// Writes how a run stands and what happened, in one transaction; answers once it is committed.
    pub async fn record_run(&self, run: RunRecord, events: Vec<RunEventRecord>) -> Result<(), StoreError> {
        self.record(Arc::clone(&self.store.owner), run, events).await
    }

    /// The same of a run that another scheduler supervises, whose end nobody here can see.
    pub async fn record_run_of_others(
        &self,
        run: RunRecord,
        events: Vec<RunEventRecord>,
    ) -> Result<(), StoreError> {
        self.record(Arc::from(ELSEWHERE), run, events).await
    }

    async fn record(
        &self,
        owner: Arc<str>,
        run: RunRecord,
        events: Vec<RunEventRecord>,
    ) -> Result<(), StoreError> {
        let run = RunRecord { command: self.clean(&run.command), evidence: self.clean(&run.evidence), ..run };
        let run = match run.task {
            // What had to be cleaned is not what was asked for any more.
            Some(task) if self.clean(&task.asked) != task.asked => RunRecord { task: None, ..run },
            task => RunRecord { task, ..run },
        };
        let events: Vec<RunEventRecord> = events
            .into_iter()
            .map(|event| RunEventRecord { message: self.clean(&event.message), ..event })
            .collect();
        self.store.writer.write(move |session| engine::runs::write(session, &owner, &run, &events)).await
    }

    /// Takes a run up whose supervisor was killed: from now on this process supervises it. False if it is not such a run, or
    /// another process was faster.
    pub async fn take_up_run(&self, id: &str) -> Result<bool, StoreError> {
        let owner = Arc::clone(&self.store.owner);
        let id = id.to_owned();
        self.store.writer.write(move |session| engine::runs::take_up(session, &owner, &id)).await
    }
}
