//! What is done where the store's files were removed, or others put in their place, while it is open.

use super::Desk;
use crate::engine::Session;
use crate::error::StoreError;
use crate::files::Files;
use crate::ledger::slate::Slate;

impl Desk {
    /// Sees to it that what is written next is written where it is looked for.
    pub(super) fn stay_in_place(&mut self, slate: &Slate) -> Result<(), StoreError> {
        let is_in_place = self.session.is_some() && self.files.are_in_place();
        // Its failure is the slate's own, and does not keep rows from the store.
        let noted = slate.stay_in_place();
        if is_in_place {
            return Ok(());
        }
        if let Some(old) = self.session.take() {
            tracing::error!(
                store = %self.path.display(),
                "the files of the store were removed or replaced while they were open: it is begun anew, without what was \
                 recorded before"
            );
            old.abandon();
            self.files.remove_left_behind();
        }
        let renewed =
            noted.map_err(|error| StoreError::of_io(&self.path, &error)).and_then(|()| self.renew());
        renewed.map_err(|error| self.gone(&error.to_string()))
    }

    fn renew(&mut self) -> Result<(), StoreError> {
        self.session = Some(Session::open_anew(&self.path, self.busy_timeout)?);
        self.files = Files::note(&self.path);
        self.leases.clear();
        self.counters.renewals.note();
        Ok(())
    }

    /// Its files are gone, and this is known of what came of it.
    pub(super) fn gone(&self, detail: &str) -> StoreError {
        StoreError::Gone { path: self.path.to_path_buf(), detail: detail.to_owned() }
    }
}
