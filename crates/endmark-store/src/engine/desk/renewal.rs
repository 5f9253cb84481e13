//! What is done where the store's files were removed, or others put in their place, while it is open.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use rusqlite::Connection;
use rusqlite::hooks::Wal;

use super::Desk;
use crate::engine::connection::open_for_writing;
use crate::engine::moving_in::move_in;
use crate::error::StoreError;
use crate::files::Files;
use crate::ledger::Slate;

/// The connection, with the pages of its journal counted: SQLite moves that by itself, too, but tells nobody where that
/// fails.
pub(super) fn watched(
    mut connection: Connection,
    path: &Path,
    pages: &Arc<AtomicI32>,
) -> Result<Connection, StoreError> {
    let seen = Arc::clone(pages);
    let hook = move |_: &mut Wal, pages: i32| {
        seen.store(pages, Ordering::Relaxed);
        Ok(())
    };
    connection.wal_hook(Some(hook)).map_err(|error| StoreError::of_sqlite(path, &error))?;
    Ok(connection)
}

impl Desk {
    /// Sees to it that what is written next is written where it is looked for.
    pub(super) fn stay_in_place(&mut self, slate: &Slate) -> Result<(), StoreError> {
        let is_in_place = self.connection.is_some() && self.files.are_in_place();
        // Its failure is the slate's own, and does not keep rows from the store.
        let noted = slate.stay_in_place();
        if is_in_place {
            return Ok(());
        }
        if let Some(old) = self.connection.take() {
            tracing::error!(
                store = %self.path.display(),
                "the files of the store were removed or replaced while they were open: it is begun anew, without what was \
                 recorded before"
            );
            // What is in its journal belongs to the old one, wherever that is by now.
            let _ = old.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
            drop(old);
            self.files.remove_left_behind();
        }
        let renewed =
            noted.map_err(|error| StoreError::of_io(&self.path, &error)).and_then(|()| self.renew());
        renewed.map_err(|error| self.gone(&error.to_string()))
    }

    fn renew(&mut self) -> Result<(), StoreError> {
        let mut connection = open_for_writing(&self.path, self.busy_timeout)?;
        move_in(&mut connection, &self.path, || Ok(()))?;
        self.connection = Some(watched(connection, &self.path, &self.pages)?);
        self.files = Files::note(&self.path);
        self.pages.store(0, Ordering::Relaxed);
        self.counters.renewals.note();
        Ok(())
    }

    /// Its files are gone, and this is known of what came of it.
    pub(super) fn gone(&self, detail: &str) -> StoreError {
        StoreError::Gone { path: self.path.to_path_buf(), detail: detail.to_owned() }
    }
}
