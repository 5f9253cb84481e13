//! Stores summaries of conversations, and the sessions of outputs.

use super::{CondensedSession, KeptSummary};
use crate::engine::{Session, compactions};
use crate::error::StoreError;
use crate::outputs::Handle;
use crate::shared;
use crate::store::Store;

impl Store {
    /// Returns this owner's summaries of conversations with this first turn.
    pub async fn summaries(&self, owner: &str, first_sha256: &str) -> Result<Vec<KeptSummary>, StoreError> {
        let (owner, first) = (owner.to_owned(), first_sha256.to_owned());
        self.writer.write(move |session| compactions::query_summaries(session, &owner, &first)).await
    }

    /// Keeps a summary for this owner. It is deleted after `keep_days` days without use; 0 means never.
    pub async fn keep_summary(
        &self,
        owner: &str,
        keep_days: u32,
        summary: KeptSummary,
        condensed_in: CondensedSession,
    ) -> Result<(), StoreError> {
        let owner = owner.to_owned();
        let keep = move |session: &Session| {
            compactions::store_summary(session, &owner, keep_days, &summary, &condensed_in)
        };
        self.writer.write(keep).await?;
        self.schedule_uploads();
        Ok(())
    }

    /// Returns another instance's summary of this conversation, if it replaces more than `beyond` turns.
    /// `digests` are the hashes of the conversation's beginnings, as in [`KeptSummary::sha256`]. This
    /// instance also keeps the returned summary.
    ///
    /// # Errors
    /// [`StoreError`] if the shared database or this instance's file fails.
    pub async fn summary_of_other_instance(
        &self,
        owner: &str,
        digests: &[String],
        beyond: u64,
    ) -> Result<Option<KeptSummary>, StoreError> {
        let Some(shared) = &self.shared else { return Ok(None) };
        let find = async |client: &mut _| shared::outputs::find_summary(client, owner, digests, beyond).await;
        let Some(found) = shared.look_up(find).await? else { return Ok(None) };
        let summary = found.summary.clone();
        self.keep_summary(owner, found.keep_days, found.summary, found.condensed_in).await?;
        Ok(Some(summary))
    }

    /// Returns the size in bytes of the smallest request that was condensed, if any. Smaller requests need no
    /// lookup of summaries.
    pub async fn smallest_condensed_request_bytes(&self) -> Result<Option<u64>, StoreError> {
        self.writer.write(|session| compactions::query_least_bytes(session)).await
    }

    /// Records the session in which a kept output was first shortened.
    pub async fn record_output_session(&self, handle: &Handle, session: &str) -> Result<(), StoreError> {
        let (handle, session) = (handle.clone(), session.to_owned());
        let note =
            move |engine: &Session| compactions::record_output_session(engine, handle.as_str(), &session);
        self.writer.write(note).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreLocation;

    fn summary(turns: u64) -> KeptSummary {
        KeptSummary {
            first_sha256: "first".to_owned(),
            turns,
            sha256: format!("of {turns}"),
            items: vec!["{\n \"a\":1}".to_owned(), "{\"b\":\"x\\ny\"}".to_owned()],
            mode: "window".to_owned(),
            tokens_before: 30_000,
            tokens_after: 9_000,
            handle: None,
            bytes: 120_000 + turns,
        }
    }

    #[tokio::test]
    async fn a_summary_is_found_only_by_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let location = StoreLocation::sqlite(folder.path().join("s.db"));
        let store = Store::open(&location).unwrap();
        assert_eq!(store.smallest_condensed_request_bytes().await.unwrap(), None);
        store.keep_summary("client:a", 30, summary(12), CondensedSession::default()).await.unwrap();
        store.keep_summary("client:a", 30, summary(20), CondensedSession::default()).await.unwrap();
        store.close().await;
        let store = Store::open(&location).unwrap();
        let mut found = store.summaries("client:a", "first").await.unwrap();
        found.sort_by_key(|summary| summary.turns);
        assert_eq!(found, [summary(12), summary(20)]);
        assert_eq!(store.summaries("client:b", "first").await.unwrap(), []);
        assert_eq!(store.summaries("client:a", "other").await.unwrap(), []);
        assert_eq!(store.smallest_condensed_request_bytes().await.unwrap(), Some(120_012));
        store.close().await;
    }
}
