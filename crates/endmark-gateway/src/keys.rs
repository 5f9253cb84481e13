//! The gateway's own keys (CX-7), which identify a client and determine what it may request.
//!
//! `endmark keys` changes keys in the store while the gateway runs. The result of a lookup is used for at most a
//! second, so that a revoked key stops working within a second.

pub(crate) mod key_refusal;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use endmark_context::budget::RateLimits;
use endmark_store::{FoundKey, Key, KeyState, SECRET_PREFIX, Store};
use http::{HeaderMap, Uri};
use tokio::sync::Semaphore;

use crate::budget::KeyLimits;
use crate::refusals::Refusal;
use crate::settings::{Pattern, Secret, Settings, SoleKey};
use crate::upstream::{CREDENTIAL_HEADERS, Credential, find_secrets};
use key_refusal::KeyRefusal;

/// How long the result of a lookup is used.
const LOOKUP_VALIDITY: Duration = Duration::from_secs(1);

/// Maximum number of cached secrets. When the cache is full, it is cleared.
const MAX_CACHED_SECRETS: usize = 4_096;

/// Number of hexadecimal digits in a secret.
const SECRET_HEX_DIGITS: usize = 64;

/// Maximum number of concurrent lookups.
const MAX_CONCURRENT_LOOKUPS: usize = 2;

/// Finds the gateway's own keys in requests, and caches the results of recent lookups.
#[derive(Debug)]
pub(crate) struct Keys {
    /// The only accepted key, if there is one. In that case the store is not used.
    sole: Option<(Secret, Arc<OwnKey>)>,
    /// How long the store's keys are accepted while the database cannot confirm them.
    stale_after: Duration,
    cache: Mutex<HashMap<String, CachedKey>>,
    lookups: Semaphore,
}

/// The cached result of a lookup.
#[derive(Debug)]
struct CachedKey {
    since: Instant,
    /// The version of the store's keys at the lookup. The result is outdated when this version changes.
    version: i64,
    key: Arc<OwnKey>,
}

/// A valid key that the gateway issued.
#[derive(Debug)]
pub(crate) struct OwnKey {
    found_key: FoundKey,
    models: Vec<Pattern>,
    identity: Arc<str>,
}

impl Keys {
    pub(crate) fn new(settings: &Settings) -> Self {
        let sole =
            settings.sole_key.as_ref().map(|sole| (sole.secret.clone(), Arc::new(OwnKey::only_key(sole))));
        Self {
            sole,
            stale_after: settings.keys.stale_after,
            cache: Mutex::default(),
            lookups: Semaphore::new(MAX_CONCURRENT_LOOKUPS),
        }
    }

    /// Whether only one key is accepted.
    pub(crate) fn has_sole_key(&self) -> bool {
        self.sole.is_some()
    }

    /// Returns the gateway key in a request. It may be in any header or query parameter where the provider's
    /// own key may be. Returns `None` if the request has another key or no key.
    ///
    /// # Errors
    /// [`Refusal::Key`] if the key is invalid, or if it is required and missing. [`Refusal::Store`] if the key cannot
    /// be checked.
    pub(crate) async fn find(
        &self,
        store: &Store,
        is_required: bool,
        headers: &HeaderMap,
        uri: &Uri,
    ) -> Result<Option<Arc<OwnKey>>, Refusal> {
        if is_misplaced(headers, uri) {
            let message = "one of this gateway's keys is in the path or in the name of a header, which would be forwarded: send it in the header of the provider's key";
            return Err(Refusal::BadRequest(message.to_owned()));
        }
        let Some(secret) = find_secret(headers, uri) else {
            return if is_required { Err(KeyRefusal::Missing.into()) } else { Ok(None) };
        };
        if let Some((sole, key)) = &self.sole {
            return if *sole.reveal() == *secret {
                Ok(Some(Arc::clone(key)))
            } else {
                Err(KeyRefusal::OtherGateway.into())
            };
        }
        let key = match self.cached_key(store, &secret) {
            Some(key) => key,
            None => self.look_up(store, &secret).await?,
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        match key.found_key.state(now) {
            KeyState::Valid => Ok(Some(key)),
            KeyState::Expired => Err(KeyRefusal::Expired(key.found_key.key.name.clone()).into()),
            KeyState::Revoked => Err(KeyRefusal::Revoked(key.found_key.key.name.clone()).into()),
        }
    }

    fn cached_key(&self, store: &Store, secret: &str) -> Option<Arc<OwnKey>> {
        let known = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let CachedKey { since, version, key } = known.get(secret)?;
        let is_current = since.elapsed() < LOOKUP_VALIDITY && *version == store.keys_version();
        is_current.then(|| Arc::clone(key))
    }

    async fn look_up(&self, store: &Store, secret: &str) -> Result<Arc<OwnKey>, Refusal> {
        // The semaphore is never closed.
        let _turn = self.lookups.acquire().await.map_err(|_| Refusal::Draining)?;
        // Another request may have looked it up in the meantime.
        if let Some(key) = self.cached_key(store, secret) {
            return Ok(key);
        }
        let version = store.keys_version();
        let found = store.find_key(secret, self.stale_after).await?;
        let key = Arc::new(OwnKey::new(found.ok_or(KeyRefusal::Unknown)?));
        let mut known = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_CACHED_SECRETS {
            known.clear();
        }
        known.insert(secret.to_owned(), CachedKey { since: Instant::now(), version, key: Arc::clone(&key) });
        Ok(key)
    }
}

/// Whether a gateway key is in the path or in the name of a header. The gateway removes no keys there, so the
/// upstream would receive this key.
fn is_misplaced(headers: &HeaderMap, uri: &Uri) -> bool {
    // Most paths and header values are shorter than a key.
    let has_key = |text: &str| {
        text.len() > SECRET_HEX_DIGITS
            && text.to_ascii_lowercase().replace("%5f", "_").contains(SECRET_PREFIX)
    };
    has_key(uri.path()) || headers.keys().any(|name| has_key(name.as_str()))
}

impl OwnKey {
    fn new(found: FoundKey) -> Self {
        let models = found.key.models.iter().filter_map(|model| model.parse().ok()).collect();
        let identity = found.key.identity().into();
        Self { found_key: found, models, identity }
    }

    /// Creates the only key that a gateway accepts. It never expires.
    fn only_key(sole: &SoleKey) -> Self {
        let key = Key {
            name: sole.name.clone(),
            models: Vec::new(),
            budget: sole.budget,
            rates: RateLimits::default(),
            ends_at: None,
            created_at: 0,
            revoked_at: None,
        };
        Self::new(FoundKey { key, secret_ends_at: None })
    }

    pub(crate) fn identity(&self) -> Credential {
        Credential::from_own_key(Arc::clone(&self.identity))
    }

    pub(crate) fn limits(&self) -> KeyLimits {
        let Key { budget, rates, .. } = &self.found_key.key;
        KeyLimits { budget: budget.map(endmark_store::KeyBudget::rule), rates: *rates }
    }

    /// Whether the key is limited to some models.
    pub(crate) fn has_model_list(&self) -> bool {
        !self.found_key.key.models.is_empty()
    }

    /// Checks that the key admits all these models. `None` means that the model could not be read.
    ///
    /// # Errors
    /// [`KeyRefusal::Model`] for the first model that is not in the key's list, or if no model is named.
    pub(crate) fn check_models<'a>(
        &self,
        mut named: impl Iterator<Item = Option<Cow<'a, str>>>,
    ) -> Result<(), KeyRefusal> {
        let is_listed = |model: &str| self.models.iter().any(|of| of.matches(model));
        // Gemini's request bodies contain `models/` before the name.
        let is_admitted =
            |model: &str| is_listed(model) || model.strip_prefix("models/").is_some_and(is_listed);
        let mut has_any = false;
        let other = named.find(|model| {
            has_any = true;
            !model.as_deref().is_some_and(is_admitted)
        });
        match other {
            None if has_any => Ok(()),
            other => Err(KeyRefusal::Model {
                name: self.name(),
                model: other.flatten().map(Cow::into_owned),
                models: self.found_key.key.models.join(", "),
            }),
        }
    }

    pub(crate) fn name(&self) -> String {
        self.found_key.key.name.clone()
    }
}

impl From<KeyRefusal> for Refusal {
    fn from(why: KeyRefusal) -> Self {
        Self::Key(why)
    }
}

/// Returns the first secret in a request that has the form of the gateway's own keys.
fn find_secret(headers: &HeaderMap, uri: &Uri) -> Option<String> {
    let is_in = |value: &http::HeaderValue| {
        value.as_bytes().windows(SECRET_PREFIX.len()).any(|part| part == SECRET_PREFIX.as_bytes())
    };
    // Most requests contain no such secret, so avoid parsing them.
    if uri.query().is_none() && !CREDENTIAL_HEADERS.iter().flat_map(|name| headers.get_all(name)).any(is_in) {
        return None;
    }
    find_secrets(headers, uri).find(|secret| secret.starts_with(SECRET_PREFIX)).map(Cow::into_owned)
}
