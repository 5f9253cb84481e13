//! The gateway's own keys (CX-7): who may come in, for which models, with which budget, and until when.
//!
//! A secret is random and long, so that its plain hash gives nothing away; it is shown once, and only the hash is kept.

mod book;
mod kept;

use std::fmt;

use endmark_context::budget::{Period, Rule, Scope, Unit};

use crate::error::StoreError;

pub use book::KeyBook;

/// What every secret begins with: it is no provider's.
pub const SECRETS_BEGIN: &str = "em_sk_";

/// Random bytes of a secret: 256 bits.
const SECRET_BYTES: usize = 32;

/// The longest name.
const MAX_NAME_BYTES: usize = 64;

/// A key that is to be made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewKey {
    /// By which it is known in the log, in usage and in budgets: letters, digits, `-`, `_` and `.`, at most 64.
    pub name: String,
    /// Patterns of the models that it is for; empty for all.
    pub models: Vec<String>,
    /// What may be spent with it.
    pub budget: Option<KeyBudget>,
    /// When it ends, in seconds since 1970; none for never.
    pub ends_at: Option<u64>,
}

impl NewKey {
    /// Error if it cannot be kept.
    pub(crate) fn check(&self) -> Result<(), KeyError> {
        let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if self.name.is_empty() || self.name.len() > MAX_NAME_BYTES || !self.name.bytes().all(is_of_name) {
            return Err(KeyError::BadName(self.name.clone()));
        }
        let is_bad = |model: &&String| model.trim().is_empty() || model.contains(['\n', '\0']);
        self.models.iter().find(is_bad).map_or(Ok(()), |model| Err(KeyError::BadModel(model.clone())))
    }
}

/// What may be spent with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyBudget {
    /// Of what.
    pub unit: Unit,
    /// How much; 0 admits nothing.
    pub limit: u64,
    /// In which windows.
    pub period: Period,
}

impl KeyBudget {
    /// The same as a budget among all others.
    pub fn rule(self) -> Rule {
        Rule { scope: Scope::Key, unit: self.unit, period: self.period, limit: self.limit }
    }
}

/// A key as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Its name.
    pub name: String,
    /// Patterns of the models that it is for; empty for all.
    pub models: Vec<String>,
    /// What may be spent with it.
    pub budget: Option<KeyBudget>,
    /// When it ends, in seconds since 1970; none for never.
    pub ends_at: Option<u64>,
    /// When it was made, in seconds since 1970.
    pub created_at: u64,
    /// When it was revoked.
    pub revoked_at: Option<u64>,
}

/// Whether a key lets anybody in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyState {
    /// It does.
    Valid,
    /// Not any more: its time is over.
    Ended,
    /// Not any more: somebody took it back.
    Revoked,
}

impl Key {
    /// Whether it lets anybody in at this moment, in seconds since 1970.
    pub fn state(&self, now: u64) -> KeyState {
        match (self.revoked_at, self.ends_at) {
            (Some(_), _) => KeyState::Revoked,
            (None, Some(ends_at)) if ends_at <= now => KeyState::Ended,
            _ => KeyState::Valid,
        }
    }

    /// By which its client is known in usage, in budgets, and as the owner of what is kept for it: the same for each of its
    /// secrets. No hash of a credential looks like it.
    pub fn identity(&self) -> String {
        format!("key:{}", self.name)
    }
}

/// A key, found by one of its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyOfSecret {
    /// The key.
    pub key: Key,
    /// When the secret ends, in seconds since 1970: the key was rotated.
    pub secret_ends_at: Option<u64>,
}

impl KeyOfSecret {
    /// Whether the secret lets anybody in at this moment, in seconds since 1970.
    pub fn state(&self, now: u64) -> KeyState {
        match (self.key.state(now), self.secret_ends_at) {
            (KeyState::Valid, Some(ends_at)) if ends_at <= now => KeyState::Ended,
            (state, _) => state,
        }
    }
}

impl KeyBudget {
    /// A budget as tables have it; `None` without a limit.
    pub(crate) fn of_words(unit: Option<&str>, period: Option<&str>, limit: Option<u64>) -> Option<Self> {
        limit.map(|limit| Self {
            unit: if unit == Some(Unit::NanoUsd.name()) { Unit::NanoUsd } else { Unit::Tokens },
            limit,
            // The tables have no other words; the longest window is the strictest.
            period: Period::ALL
                .into_iter()
                .find(|known| period == Some(known.name()))
                .unwrap_or(Period::Ever),
        })
    }
}

/// A secret, to be shown once. No formatter prints it.
#[derive(Clone, PartialEq, Eq)]
pub struct KeySecret(String);

impl KeySecret {
    /// Returns a new secret, which no key of the store has.
    ///
    /// # Errors
    /// [`KeyError::NoRandomBytes`] where the system gives none.
    pub fn random() -> Result<Self, KeyError> {
        let mut bytes = [0_u8; SECRET_BYTES];
        getrandom::fill(&mut bytes).map_err(|error| KeyError::NoRandomBytes(error.to_string()))?;
        let digits =
            |byte: u8| [byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16).unwrap_or('0'));
        Ok(Self(SECRETS_BEGIN.chars().chain(bytes.into_iter().flat_map(digits)).collect()))
    }

    /// What the client sends.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for KeySecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("KeySecret(…)")
    }
}

/// Why nothing was done with a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Nothing can have this name.
    #[error("`{0}` is no name of a key: use letters, digits, `-`, `_` and `.`, at most {MAX_NAME_BYTES}")]
    BadName(String),
    /// There is one of this name, or was: what is kept for it must not become another's.
    #[error("there is a key `{0}` already, or was: choose another name")]
    Taken(String),
    /// There is none of this name that lets anybody in.
    #[error("there is no key `{0}` that is not revoked")]
    Unknown(String),
    /// A model's pattern that cannot be kept.
    #[error("`{0}` is no model's name or pattern")]
    BadModel(String),
    /// The system gives no random bytes.
    #[error("the system gives no random bytes: {0}")]
    NoRandomBytes(String),
    /// The store fails.
    #[error(transparent)]
    Store(#[from] StoreError),
}
