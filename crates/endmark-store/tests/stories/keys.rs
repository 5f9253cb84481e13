//! The gateway's own keys, in the store's own file or in a database that instances share.

use std::time::Duration;

use endmark_context::budget::{Period, Unit};
use endmark_store::{
    FoundKey, KeyBook, KeyBudget, KeyError, KeySecret, KeyState, NewKey, SECRET_PREFIX, Store,
};

use crate::place::Place;

over_both_stores! {
    a_key_is_stored_without_its_secret,
    a_key_name_is_unique_and_a_revoked_key_stays_revoked,
    a_rotated_key_has_two_valid_secrets_for_a_while,
}

fn new(name: &str) -> NewKey {
    NewKey { name: name.to_owned(), ..NewKey::default() }
}

/// A store, and a [`KeyBook`] that changes its keys.
struct Keys {
    store: Store,
    book: KeyBook,
}

impl Keys {
    async fn open(place: &Place) -> Self {
        let (location, store) = place.open();
        Self { store, book: KeyBook::open(&location).await.unwrap() }
    }

    /// Waits until a store that shares its keys has read this number of changes.
    async fn wait_for_changes(&self, place: &Place, times: i64) {
        for _ in 0..1_000 {
            if !place.is_shared() || self.store.keys_version() >= times {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(self.store.keys_version() >= times, "the change is never read");
    }

    async fn find_key(&self, secret: &KeySecret) -> Option<FoundKey> {
        self.find_secret(secret.reveal()).await
    }

    async fn find_secret(&self, secret: &str) -> Option<FoundKey> {
        self.store.find_key(secret, Duration::from_hours(1)).await.unwrap()
    }

    async fn close(self) {
        self.book.close().await;
        self.store.close().await;
    }
}

async fn a_key_is_stored_without_its_secret(place: &Place) {
    let mut keys = Keys::open(place).await;
    let budget = KeyBudget { unit: Unit::NanoUsd, limit: 5_000_000_000, period: Period::Month };
    let full = NewKey {
        models: vec!["gpt-5*".to_owned(), "claude-sonnet-5".to_owned()],
        budget: Some(budget),
        ends_at: Some(2_000_000_000),
        ..new("team.a-1_x")
    };
    let secret = keys.book.add(full.clone()).await.unwrap();
    keys.wait_for_changes(place, 1).await;
    assert_eq!(secret.reveal().len(), SECRET_PREFIX.len() + 64);
    assert!(!format!("{secret:?}").contains(&secret.reveal()[10..]));
    let key = keys.find_key(&secret).await.unwrap().key;
    assert_eq!((&key.name, &key.models), (&full.name, &full.models));
    assert_eq!((key.budget, key.ends_at, key.revoked_at), (Some(budget), full.ends_at, None));
    assert!(key.created_at > 1_700_000_000);
    assert_eq!(keys.book.all_keys().await.unwrap(), [key]);
    assert_eq!(keys.find_secret("em_sk_other").await, None);
    keys.close().await;
    for entry in std::fs::read_dir(place.folder()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        let digits = &secret.reveal().as_bytes()[SECRET_PREFIX.len()..];
        assert!(!bytes.windows(digits.len()).any(|window| window == digits));
    }
}

async fn a_key_name_is_unique_and_a_revoked_key_stays_revoked(place: &Place) {
    let mut keys = Keys::open(place).await;
    for name in ["", "a b", "käse", "a/b", &"x".repeat(65)] {
        assert!(matches!(keys.book.add(new(name)).await, Err(KeyError::BadName(_))), "{name}");
    }
    let models = vec!["a".to_owned(), " ".to_owned()];
    assert!(matches!(keys.book.add(NewKey { models, ..new("m") }).await, Err(KeyError::BadModel(_))));
    let budget = Some(KeyBudget { unit: Unit::Tokens, limit: (1 << 60) + 1, period: Period::Ever });
    let too_large = keys.book.add(NewKey { budget, ..new("m") }).await;
    assert!(matches!(too_large, Err(KeyError::TooLarge(Unit::Tokens))), "it is not shortened");
    let secret = keys.book.add(new("a")).await.unwrap();
    assert!(matches!(keys.book.add(new("a")).await, Err(KeyError::NameTaken(_))));
    keys.book.revoke("a").await.unwrap();
    keys.wait_for_changes(place, 2).await;
    let found = keys.find_key(&secret).await.unwrap();
    assert_eq!(found.state(0), KeyState::Revoked);
    assert!(matches!(keys.book.add(new("a")).await, Err(KeyError::NameTaken(_))), "nor after that");
    assert!(matches!(keys.book.revoke("a").await, Err(KeyError::Unknown(_))));
    assert!(matches!(keys.book.rotate("a", 5).await, Err(KeyError::Unknown(_))));
    assert!(matches!(keys.book.rotate("b", 5).await, Err(KeyError::Unknown(_))));
    keys.close().await;
}

async fn a_rotated_key_has_two_valid_secrets_for_a_while(place: &Place) {
    let mut keys = Keys::open(place).await;
    let first = keys.book.add(new("a")).await.unwrap();
    let second = keys.book.rotate("a", 3_600).await.unwrap();
    keys.wait_for_changes(place, 2).await;
    let ends_at = keys.find_key(&first).await.unwrap().secret_ends_at.unwrap();
    assert_eq!(keys.find_key(&first).await.unwrap().state(ends_at - 1), KeyState::Valid);
    assert_eq!(keys.find_key(&first).await.unwrap().state(ends_at), KeyState::Expired);
    assert_eq!(keys.find_key(&second).await.unwrap().state(ends_at), KeyState::Valid);
    // A longer overlap does not extend a secret that expires sooner.
    let third = keys.book.rotate("a", 360_000).await.unwrap();
    keys.wait_for_changes(place, 3).await;
    assert_eq!(keys.find_key(&first).await.unwrap().secret_ends_at, Some(ends_at));
    assert!(keys.find_key(&second).await.unwrap().secret_ends_at.unwrap() > ends_at);
    keys.book.rotate("a", 0).await.unwrap();
    keys.wait_for_changes(place, 4).await;
    let third = keys.find_key(&third).await.unwrap();
    assert_eq!(third.state(third.secret_ends_at.unwrap()), KeyState::Expired);
    keys.close().await;
}
