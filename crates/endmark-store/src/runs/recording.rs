//! Records supervised runs in the store.

use std::sync::Arc;

use super::{RunEventRecord, RunRecord};
use crate::engine;
use crate::error::StoreError;
use crate::owner::EXTERNAL_OWNER;
use crate::recorder::Recorder;

impl Recorder {
    /// Writes the state of a run and its events in one transaction. Returns once it is committed.
    pub async fn record_run(&self, run: RunRecord, events: Vec<RunEventRecord>) -> Result<(), StoreError> {
        self.record(Arc::clone(&self.store.owner), run, events).await
    }

    /// Writes a run that another scheduler supervises. This machine cannot detect its end.
    pub async fn record_external_run(
        &self,
        run: RunRecord,
        events: Vec<RunEventRecord>,
    ) -> Result<(), StoreError> {
        self.record(Arc::from(EXTERNAL_OWNER), run, events).await
    }

    async fn record(
        &self,
        owner: Arc<str>,
        run: RunRecord,
        events: Vec<RunEventRecord>,
    ) -> Result<(), StoreError> {
        let run = RunRecord { command: self.clean(&run.command), evidence: self.clean(&run.evidence), ..run };
        let run = match run.task {
            // If secrets were removed from the request, it is no longer the original one, so the run cannot
            // be resumed from it.
            Some(task) if self.clean(&task.prompt_text) != task.prompt_text => {
                RunRecord { task: None, ..run }
            }
            task => RunRecord { task, ..run },
        };
        let events: Vec<RunEventRecord> = events
            .into_iter()
            .map(|event| RunEventRecord { message: self.clean(&event.message), ..event })
            .collect();
        self.store
            .writer
            .write(move |session| engine::runs::write(session, &owner, &run, &events))
            .await
            .inspect(|()| self.store.schedule_publication())
    }

    /// Makes this process the supervisor of a run whose supervisor was killed. Returns `false` if the run is
    /// not lost, or another process took it over first.
    pub async fn take_over_run(&self, id: &str) -> Result<bool, StoreError> {
        let owner = Arc::clone(&self.store.owner);
        let id = id.to_owned();
        let taken =
            self.store.writer.write(move |session| engine::runs::take_over(session, &owner, &id)).await;
        taken.inspect(|_| self.store.schedule_publication())
    }
}
