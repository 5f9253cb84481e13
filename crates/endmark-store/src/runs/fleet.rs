//! Lists the runs of all machines that share a database, as each machine last reported them.

use tokio_postgres::Client;

use super::{RunCursor, RunMachine, StoredRun, StoredRunEvent};
use crate::error::StoreError;
use crate::fleet::Fleet;
use crate::machine::machine_name;
use crate::shared::runs;

/// Runs of all machines, the newest first.
#[derive(Debug)]
pub struct FleetRuns {
    /// The runs.
    pub runs: Vec<StoredRun>,
    /// The error of the shared database, if it failed. In that case only the runs of this machine are listed.
    pub failure: Option<StoreError>,
}

impl Fleet {
    /// Returns at most `limit` of the newest runs after this position.
    ///
    /// # Errors
    /// [`StoreError`] if this machine's file fails. An error of the database is in the result.
    pub async fn runs(&self, before: Option<RunCursor>, limit: u32) -> Result<FleetRuns, StoreError> {
        let cursor = before.clone();
        let own = self
            .read_own(move |reader| Ok((reader.runs_before(cursor.as_ref(), limit)?, reader.instance()?)));
        let (mut runs, instance) = own.await?.unwrap_or_default();
        let lookup = async |client: &mut Client| {
            runs::query_other_runs(client, &instance, before.as_ref(), limit).await
        };
        let mut failure = None;
        if let Some(elsewhere) = self.look_up(lookup).await {
            let machine = RunMachine::own_machine(&instance);
            for run in &mut runs {
                run.machine = Some(machine.clone());
            }
            match elsewhere {
                Ok(elsewhere) => runs.extend(elsewhere),
                Err(error) => failure = Some(error),
            }
            runs.sort_by(|a, b| (&b.started_at, &b.run.id).cmp(&(&a.started_at, &a.run.id)));
            runs.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        }
        Ok(FleetRuns { runs, failure })
    }

    /// Returns a run by its id or a unique prefix of it, with at most `max_events` events. Searches the runs
    /// of other machines only if this machine has no such run.
    ///
    /// # Errors
    /// [`StoreError::RunNotHere`] if this machine has no such run, and the database does not answer.
    pub async fn run(
        &self,
        id: &str,
        max_events: u32,
    ) -> Result<Option<(StoredRun, Vec<StoredRunEvent>)>, StoreError> {
        let wanted_id = id.to_owned();
        let own = self.read_own(move |reader| {
            let Some(run) = reader.run(&wanted_id)? else { return Ok((None, reader.instance()?)) };
            let events = reader.run_events(Some(&run.run.id), 0, max_events)?;
            Ok((Some((run, events)), reader.instance()?))
        });
        let (own, instance) = own.await?.unwrap_or_default();
        if let Some((mut run, events)) = own {
            run.machine = self.location.postgres().map(|_| RunMachine::own_machine(&instance));
            return Ok(Some((run, events)));
        }
        if id.is_empty() {
            return Ok(None);
        }
        let lookup = async |client: &mut Client| runs::find_run(client, &instance, id, max_events).await;
        let Some(found) = self.look_up(lookup).await else { return Ok(None) };
        found.map_err(|error| StoreError::RunNotHere { id: id.to_owned(), detail: error.to_string() })
    }
}

impl RunMachine {
    fn own_machine(instance: &str) -> Self {
        Self { name: machine_name(), instance: instance.to_owned(), last_known_at: None }
    }
}
