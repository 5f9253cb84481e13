//! Manages keys in the store's own file, or in the database that instances share.

use tokio_postgres::Client;

use super::{Key, KeyError, KeySecret, NewKey};
use crate::engine::Reader;
use crate::error::StoreError;
use crate::fingerprint::sha256_hex;
use crate::location::StoreLocation;
use crate::shared::address::PostgresAddress;
use crate::shared::{database, keys as shared_keys};
use crate::store::Store;

/// Manages the gateway's own keys.
///
/// ```
/// use endmark_store::{KeyBook, NewKey, StoreLocation};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let location = StoreLocation::sqlite(folder.path().join("endmark.db"));
/// let mut book = KeyBook::open(&location).await?;
/// let secret = book.add(NewKey { name: "team-a".to_owned(), ..NewKey::default() }).await?;
/// assert!(secret.reveal().starts_with("em_sk_"));
/// assert_eq!(book.all_keys().await?[0].name, "team-a");
/// book.close().await;
/// # Ok(())
/// # }
/// ```
pub struct KeyBook(KeyBookStore);

enum KeyBookStore {
    File(Store),
    Database { client: Client, address: Box<PostgresAddress> },
}

impl KeyBook {
    /// Opens the keys of this store. With PostgreSQL, this needs no journal and does not affect running instances.
    ///
    /// # Errors
    /// [`StoreError`] if the store or the database cannot be used.
    pub async fn open(location: &StoreLocation) -> Result<Self, StoreError> {
        let Some(address) = location.postgres() else {
            return Ok(Self(KeyBookStore::File(Store::open(location)?)));
        };
        let client = address.connect().await?;
        let made = database::create_tables(&client).await;
        address.check_schema(made.map_err(|error| address.statement_error(&error))?)?;
        Ok(Self(KeyBookStore::Database { client, address: Box::new(address.clone()) }))
    }

    /// Creates a key and returns its secret. The secret cannot be read again later.
    ///
    /// # Errors
    /// [`KeyError`] if the name is taken or invalid, or the store fails.
    pub async fn add(&mut self, new: NewKey) -> Result<KeySecret, KeyError> {
        let (client, address) = match &mut self.0 {
            KeyBookStore::File(store) => return store.add_key(new).await,
            KeyBookStore::Database { client, address } => (client, address),
        };
        new.check()?;
        let secret = KeySecret::random()?;
        let added = shared_keys::add_key(client, &new, &sha256_hex(secret.reveal().as_bytes())).await;
        if added.map_err(|error| address.statement_error(&error))? {
            Ok(secret)
        } else {
            Err(KeyError::NameTaken(new.name))
        }
    }

    /// Creates a new secret for a key and returns it. The old secrets stay valid for `overlap_seconds`.
    ///
    /// # Errors
    /// [`KeyError`] if the key does not exist or is revoked, or the store fails.
    pub async fn rotate(&mut self, name: &str, overlap_seconds: u64) -> Result<KeySecret, KeyError> {
        let (client, address) = match &mut self.0 {
            KeyBookStore::File(store) => return store.rotate_key(name, overlap_seconds).await,
            KeyBookStore::Database { client, address } => (client, address),
        };
        let secret = KeySecret::random()?;
        let sha256 = sha256_hex(secret.reveal().as_bytes());
        let rotated = shared_keys::rotate_key(client, name, &sha256, overlap_seconds).await;
        let is_known = rotated.map_err(|error| address.statement_error(&error))?;
        if is_known { Ok(secret) } else { Err(KeyError::Unknown(name.to_owned())) }
    }

    /// Revokes a key. Every instance that reaches the database rejects it within a second.
    ///
    /// # Errors
    /// [`KeyError`] if the key does not exist or is already revoked, or the store fails.
    pub async fn revoke(&mut self, name: &str) -> Result<(), KeyError> {
        let (client, address) = match &mut self.0 {
            KeyBookStore::File(store) => return store.revoke_key(name).await,
            KeyBookStore::Database { client, address } => (client, address),
        };
        let revoked =
            shared_keys::revoke_key(client, name).await.map_err(|error| address.statement_error(&error))?;
        if revoked { Ok(()) } else { Err(KeyError::Unknown(name.to_owned())) }
    }

    /// Returns all keys, ordered by name.
    ///
    /// # Errors
    /// [`StoreError`] if the store or the database fails.
    pub async fn all_keys(&self) -> Result<Vec<Key>, StoreError> {
        match &self.0 {
            KeyBookStore::File(store) => store.read(Reader::keys).await,
            KeyBookStore::Database { client, address } => {
                shared_keys::query_all_keys(client).await.map_err(|error| address.statement_error(&error))
            }
        }
    }

    /// Closes the store after everything is committed.
    pub async fn close(self) {
        if let KeyBookStore::File(store) = self.0 {
            store.close().await;
        }
    }
}
