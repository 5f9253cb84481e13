//! Creates, rotates, revokes and looks up keys in the store.

use std::time::Duration;

use super::{FoundKey, KeyError, KeySecret, NewKey};
use crate::engine::{Reader, keys};
use crate::error::StoreError;
use crate::fingerprint::sha256_hex;
use crate::store::Store;

impl Store {
    /// Creates a key and returns its secret. The secret cannot be read again later.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use endmark_context::budget::{Period, Unit};
    /// use endmark_store::{KeyBudget, NewKey, Store, StoreLocation};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// let store = Store::open(&StoreLocation::sqlite(folder.path().join("endmark.db")))?;
    /// let budget = KeyBudget { unit: Unit::Tokens, limit: 50_000, period: Period::Ever };
    /// let secret = store.add_key(NewKey { name: "run-7".to_owned(), budget: Some(budget), ..NewKey::default() }).await?;
    /// assert!(secret.reveal().starts_with("em_sk_"));
    /// let found = store.find_key(secret.reveal(), Duration::from_secs(3_600)).await?;
    /// assert_eq!(found.unwrap().key.name, "run-7");
    /// store.revoke_key("run-7").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`KeyError`] if the name is taken or invalid, or the store fails.
    pub async fn add_key(&self, new: NewKey) -> Result<KeySecret, KeyError> {
        self.fail_if_shared("changing keys in the journal")?;
        new.check()?;
        let secret = KeySecret::random()?;
        let (name, sha256) = (new.name.clone(), sha256_hex(secret.reveal().as_bytes()));
        let added = self.writer.write(move |session| keys::add(session, &new, &sha256)).await?;
        if added { Ok(secret) } else { Err(KeyError::NameTaken(name)) }
    }

    /// Creates a new secret for a key and returns it. The old secrets stay valid for `overlap_seconds`.
    ///
    /// # Errors
    /// [`KeyError`] if the key does not exist or is revoked, or the store fails.
    pub async fn rotate_key(&self, name: &str, overlap_seconds: u64) -> Result<KeySecret, KeyError> {
        self.fail_if_shared("changing keys in the journal")?;
        let secret = KeySecret::random()?;
        let (named, sha256) = (name.to_owned(), sha256_hex(secret.reveal().as_bytes()));
        let rotated =
            self.writer.write(move |session| keys::rotate(session, &named, &sha256, overlap_seconds)).await?;
        if rotated { Ok(secret) } else { Err(KeyError::Unknown(name.to_owned())) }
    }

    /// Revokes a key. All its secrets are rejected from now on.
    ///
    /// # Errors
    /// [`KeyError`] if the key does not exist or is already revoked, or the store fails.
    pub async fn revoke_key(&self, name: &str) -> Result<(), KeyError> {
        self.fail_if_shared("changing keys in the journal")?;
        let named = name.to_owned();
        let revoked = self.writer.write(move |session| keys::revoke(session, &named)).await?;
        if revoked { Ok(()) } else { Err(KeyError::Unknown(name.to_owned())) }
    }

    /// Returns the version of the keys. When it changes, cached lookups are outdated. In a store that is not
    /// shared it is always 0, so cached lookups must also expire after a short time.
    pub fn keys_version(&self) -> i64 {
        self.shared.as_ref().map_or(0, |shared| shared.keys_version())
    }

    /// Returns the key that has this secret, even if the key or the secret is no longer valid. `stale_after`
    /// limits how long keys from a shared database stay valid after the database last confirmed them.
    ///
    /// # Errors
    /// [`StoreError`] if the store fails or the keys are too old, or if the secret is unknown while the
    /// shared database fails, because its key may be new.
    pub async fn find_key(
        &self,
        secret: &str,
        stale_after: Duration,
    ) -> Result<Option<FoundKey>, StoreError> {
        if let Some(shared) = &self.shared {
            shared.check_keys_age(stale_after)?;
        }
        let sha256 = sha256_hex(secret.as_bytes());
        let found = self.read(move |reader: &Reader| reader.key_by_secret(&sha256)).await?;
        match self.shared.as_ref().and_then(|shared| shared.failure()) {
            Some(failure) if found.is_none() => Err(failure),
            _ => Ok(found),
        }
    }
}
