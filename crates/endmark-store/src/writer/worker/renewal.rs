//! Recreates the store if its files were removed or replaced while it was open.

use super::WriterThread;
use crate::engine::Session;
use crate::error::StoreError;
use crate::files::DatabaseFiles;
use crate::ledger::slate::Slate;

impl WriterThread {
    /// Ensures that the next writes go to the files at the store's path.
    pub(super) fn restore_if_removed(&mut self, slate: &Slate) -> Result<(), StoreError> {
        let is_in_place = self.session.is_some() && self.files.are_in_place();
        // The slate logs its own failures. They do not prevent rows from being stored.
        let noted = slate.restore_if_removed();
        if is_in_place {
            return Ok(());
        }
        if self.is_journal {
            return Err(self.end_journal_session());
        }
        if let Some(old) = self.session.take() {
            tracing::error!(
                store = %self.path.display(),
                "the files of the store were removed or replaced while they were open: a new store is started, without what was \
                 recorded before"
            );
            old.close_removed();
            self.files.remove_leftovers();
        }
        let renewed = noted
            .map_err(|error| StoreError::from_io(&self.path, &error))
            .and_then(|()| self.recreate_files());
        renewed.map_err(|error| self.files_gone_error(&error.to_string()))
    }

    /// Ends the session of a journal whose files are gone. The journal is not recreated: a new file would
    /// contain no shares and no keys. The instance would then admit every budget in full, and its rows would
    /// never reach the database.
    fn end_journal_session(&mut self) -> StoreError {
        let error = self.files_gone_error(
            "it is the journal of this instance, which cannot be recreated: stop the gateway and put the file back, or \
             start with a new one and free the old share with `endmark budget forfeit`",
        );
        if let Some(old) = self.session.take() {
            tracing::error!(%error, "the files of the journal were removed or replaced while they were open");
            old.close_removed();
        }
        error
    }

    fn recreate_files(&mut self) -> Result<(), StoreError> {
        self.session = Some(Session::reopen(&self.path, self.busy_timeout)?);
        self.files = DatabaseFiles::snapshot(&self.path);
        self.leases.clear();
        self.counters.renewals.increment();
        Ok(())
    }

    /// Returns the error for a store whose files are gone. `detail` is the reason why they were not
    /// recreated.
    pub(super) fn files_gone_error(&self, detail: &str) -> StoreError {
        StoreError::FilesGone { path: self.path.to_path_buf(), detail: detail.to_owned() }
    }
}
