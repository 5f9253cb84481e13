//! The gateway's own keys in the store: create, rotate, revoke and look up.

use super::{KeyError, KeyOfSecret, KeySecret, NewKey};
use crate::engine::{Reader, keys};
use crate::error::StoreError;
use crate::fingerprint::sha256_hex;
use crate::store::Store;

impl Store {
    /// Creates a key and returns its secret, which cannot be looked up again.
    ///
    /// ```
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
    /// assert_eq!(store.key_of(secret.reveal()).await?.unwrap().key.name, "run-7");
    /// store.revoke_key("run-7").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`KeyError`] if the name is taken or invalid, or the store fails.
    pub async fn add_key(&self, new: NewKey) -> Result<KeySecret, KeyError> {
        self.alone("changing keys in the journal")?;
        new.check()?;
        let secret = KeySecret::random()?;
        let (name, sha256) = (new.name.clone(), sha256_hex(secret.reveal().as_bytes()));
        let added = self.writer.write(move |session| keys::add(session, &new, &sha256)).await?;
        if added { Ok(secret) } else { Err(KeyError::Taken(name)) }
    }

    /// Gives a key a new secret and returns it. The old secrets stay valid for `overlap_seconds`.
    ///
    /// # Errors
    /// [`KeyError`] if the key does not exist or is revoked, or the store fails.
    pub async fn rotate_key(&self, name: &str, overlap_seconds: u64) -> Result<KeySecret, KeyError> {
        self.alone("changing keys in the journal")?;
        let secret = KeySecret::random()?;
        let (named, sha256) = (name.to_owned(), sha256_hex(secret.reveal().as_bytes()));
        let rotated =
            self.writer.write(move |session| keys::rotate(session, &named, &sha256, overlap_seconds)).await?;
        if rotated { Ok(secret) } else { Err(KeyError::Unknown(name.to_owned())) }
    }

    /// Revokes a key. It is rejected from now on.
    ///
    /// # Errors
    /// [`KeyError`] if the key does not exist or is already revoked, or the store fails.
    pub async fn revoke_key(&self, name: &str) -> Result<(), KeyError> {
        self.alone("changing keys in the journal")?;
        let named = name.to_owned();
        let revoked = self.writer.write(move |session| keys::revoke(session, &named)).await?;
        if revoked { Ok(()) } else { Err(KeyError::Unknown(name.to_owned())) }
    }

    /// Returns the version of the keys: when it changes, earlier lookups may be wrong. It is always 0 in a store that
    /// is not shared, where lookups are recent or repeated.
    pub fn keys_version(&self) -> i64 {
        self.shared.as_ref().map_or(0, |shared| shared.keys_version())
    }

    /// Returns the key that has this secret, in any state.
    ///
    /// # Errors
    /// [`StoreError`] if the store fails, if the shared database has not confirmed its keys for an hour, or if it fails
    /// and the secret is unknown: its key may be newer than the last confirmation.
    pub async fn key_of(&self, secret: &str) -> Result<Option<KeyOfSecret>, StoreError> {
        if let Some(shared) = &self.shared {
            shared.check_keys_age()?;
        }
        let sha256 = sha256_hex(secret.as_bytes());
        let found = self.read(move |reader: &Reader| reader.key_of_secret(&sha256)).await?;
        match self.shared.as_ref().and_then(|shared| shared.failure()) {
            Some(failure) if found.is_none() => Err(failure),
            _ => Ok(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use endmark_context::budget::{Period, Unit};

    use super::*;
    use crate::{KeyBudget, KeyState, SECRETS_BEGIN, StoreLocation};

    fn new(name: &str) -> NewKey {
        NewKey { name: name.to_owned(), ..NewKey::default() }
    }

    #[tokio::test]
    async fn a_key_is_kept_as_it_was_made_and_its_secret_is_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let location = StoreLocation::sqlite(folder.path().join("k.db"));
        let store = Store::open(&location).unwrap();
        let budget = KeyBudget { unit: Unit::NanoUsd, limit: 5_000_000_000, period: Period::Month };
        let full = NewKey {
            models: vec!["gpt-5*".to_owned(), "claude-sonnet-5".to_owned()],
            budget: Some(budget),
            ends_at: Some(2_000_000_000),
            ..new("team.a-1_x")
        };
        let secret = store.add_key(full.clone()).await.unwrap();
        assert_eq!(secret.reveal().len(), SECRETS_BEGIN.len() + 64);
        assert!(!format!("{secret:?}").contains(&secret.reveal()[10..]));
        let key = store.key_of(secret.reveal()).await.unwrap().unwrap().key;
        assert_eq!((&key.name, &key.models), (&full.name, &full.models));
        assert_eq!((key.budget, key.ends_at, key.revoked_at), (Some(budget), full.ends_at, None));
        assert!(key.created_at > 1_700_000_000);
        assert_eq!(store.reader().unwrap().keys().unwrap(), [key]);
        assert_eq!(store.key_of("em_sk_other").await.unwrap(), None);
        store.close().await;
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            let digits = &secret.reveal().as_bytes()[SECRETS_BEGIN.len()..];
            assert!(!bytes.windows(digits.len()).any(|window| window == digits));
        }
    }

    #[tokio::test]
    async fn a_name_is_given_once_and_a_revoked_key_stays_revoked() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&StoreLocation::sqlite(folder.path().join("k.db"))).unwrap();
        for name in ["", "a b", "käse", "a/b", &"x".repeat(65)] {
            assert!(matches!(store.add_key(new(name)).await, Err(KeyError::BadName(_))), "{name}");
        }
        let models = vec!["a".to_owned(), " ".to_owned()];
        assert!(matches!(store.add_key(NewKey { models, ..new("m") }).await, Err(KeyError::BadModel(_))));
        let secret = store.add_key(new("a")).await.unwrap();
        assert!(matches!(store.add_key(new("a")).await, Err(KeyError::Taken(_))));
        store.revoke_key("a").await.unwrap();
        let found = store.key_of(secret.reveal()).await.unwrap().unwrap();
        assert_eq!(found.state(0), KeyState::Revoked);
        assert!(matches!(store.add_key(new("a")).await, Err(KeyError::Taken(_))), "nor after that");
        assert!(matches!(store.revoke_key("a").await, Err(KeyError::Unknown(_))));
        assert!(matches!(store.rotate_key("a", 5).await, Err(KeyError::Unknown(_))));
        assert!(matches!(store.rotate_key("b", 5).await, Err(KeyError::Unknown(_))));
        store.close().await;
    }

    #[tokio::test]
    async fn a_rotated_key_has_two_secrets_for_a_while() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&StoreLocation::sqlite(folder.path().join("k.db"))).unwrap();
        let first = store.add_key(new("a")).await.unwrap();
        let second = store.rotate_key("a", 3_600).await.unwrap();
        let of = async |secret: &KeySecret| store.key_of(secret.reveal()).await.unwrap();
        let ends_at = of(&first).await.unwrap().secret_ends_at.unwrap();
        assert_eq!(of(&first).await.unwrap().state(ends_at - 1), KeyState::Valid);
        assert_eq!(of(&first).await.unwrap().state(ends_at), KeyState::Ended);
        assert_eq!(of(&second).await.unwrap().state(ends_at), KeyState::Valid);
        // A longer overlap does not extend a secret that ends sooner.
        let third = store.rotate_key("a", 360_000).await.unwrap();
        assert_eq!(of(&first).await.unwrap().secret_ends_at, Some(ends_at));
        assert!(of(&second).await.unwrap().secret_ends_at.unwrap() > ends_at);
        store.rotate_key("a", 0).await.unwrap();
        let third = of(&third).await.unwrap();
        assert_eq!(third.state(third.secret_ends_at.unwrap()), KeyState::Ended);
        store.close().await;
    }
}
