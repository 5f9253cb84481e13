//! Records how each upstream and model handles an unfinished assistant message.
//!
//! Published tables of prefill support contradict each other and become outdated. Therefore the gateway tries prefill
//! once, and remembers the result even across restarts.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::case::RecoveryCase;

/// How an upstream handles an unfinished assistant message with a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PrefillCapability {
    /// Prefill was not tried yet.
    Unknown,
    /// The upstream continues the message, and first repeats it in the response.
    EchoesPrefill,
    /// The upstream continues the message without repeating it.
    Continues,
    /// The upstream refuses the message, or begins a new answer.
    None,
}

impl PrefillCapability {
    fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::EchoesPrefill => "echoes",
            Self::Continues => "continues",
            Self::None => "none",
        }
    }

    fn from_name(word: &str) -> Self {
        match word {
            "echoes" => Self::EchoesPrefill,
            "continues" => Self::Continues,
            "none" => Self::None,
            _ => Self::Unknown,
        }
    }
}

/// The known capabilities, including those in the store.
#[derive(Default)]
pub(crate) struct Capabilities {
    cached: Mutex<HashMap<(String, String), PrefillCapability>>,
}

impl Capabilities {
    /// Returns the capability of `upstream` for `model`. If the store fails, the result is `Unknown`, and
    /// prefill is tried again.
    pub(super) async fn get_or_load(
        &self,
        case: &RecoveryCase<'_>,
        upstream: &str,
        model: &str,
    ) -> PrefillCapability {
        let key = (upstream.to_owned(), model.to_owned());
        if let Some(known) = self.lock().get(&key) {
            return *known;
        }
        let remembered = match case.store_wait_limit.wait(case.recorder.capability(upstream, model)).await {
            None => PrefillCapability::Unknown,
            Some(Ok(word)) => {
                word.as_deref().map_or(PrefillCapability::Unknown, PrefillCapability::from_name)
            }
            Some(Err(error)) => {
                tracing::error!(%error, "the store cannot be read: whether an upstream supports prefill is unknown");
                PrefillCapability::Unknown
            }
        };
        self.lock().insert(key, remembered);
        remembered
    }

    /// Remembers a capability, also in the store.
    pub(super) async fn learn(
        &self,
        case: &RecoveryCase<'_>,
        upstream: &str,
        model: &str,
        capability: PrefillCapability,
    ) {
        tracing::info!(
            upstream,
            model = case.recorder.clean(model),
            prefill = capability.name(),
            "learned how the upstream continues a reply"
        );
        self.lock().insert((upstream.to_owned(), model.to_owned()), capability);
        let remembering = case.recorder.remember_capability(upstream, model, capability.name());
        if let Some(Err(error)) = case.store_wait_limit.wait(remembering).await {
            tracing::error!(%error, "the store did not accept a capability");
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(String, String), PrefillCapability>> {
        // The map is consistent after each operation, so a panic elsewhere cannot have corrupted it.
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
