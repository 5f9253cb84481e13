//! Which upstreams refuse to report the tokens of a stream, by upstream and model.
//!
//! Chat Completions reports them only where `stream_options.include_usage` asks for them, and some servers reject a field
//! that they do not know. Nothing tells these before they are asked.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use endmark_wire::error::ProviderError;
use http::StatusCode;

use super::case::Case;

/// Upstreams and models that are remembered; if there are more, all are learned again. Clients choose the names of models.
const MAX_KNOWN: usize = 4_096;

/// The value in the store for an upstream that refuses.
const REFUSED: &str = "none";

/// What is known of an upstream and a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamUsage {
    /// It was not asked yet.
    Unknown,
    /// It took a request that asked for the tokens of its stream.
    Accepted,
    /// It refuses such a request.
    Refused,
}

/// What was found out so far.
#[derive(Default)]
pub(crate) struct StreamUsages(Mutex<HashMap<(String, String), StreamUsage>>);

impl StreamUsages {
    /// What is known of this upstream and model. A store that fails only costs a rejected request.
    pub(crate) async fn of(&self, case: &Case<'_>, upstream: &str, model: &str) -> StreamUsage {
        if let Some(known) = self.lock().get(&(upstream.to_owned(), model.to_owned())) {
            return *known;
        }
        let remembered = case.store_patience.wait(case.recorder.capability(upstream, &subject(model))).await;
        let known = match remembered {
            Some(Ok(Some(word))) if word == REFUSED => StreamUsage::Refused,
            _ => StreamUsage::Unknown,
        };
        self.insert(upstream, model, known);
        known
    }

    /// Notes that it took a request that asked for its tokens.
    pub(crate) fn accepted(&self, upstream: &str, model: &str) {
        self.insert(upstream, model, StreamUsage::Accepted);
    }

    /// Notes that it refuses such a request. Only an error that names the field is remembered over a restart: another one
    /// may have had another reason.
    pub(crate) async fn refused(&self, case: &Case<'_>, upstream: &str, model: &str, is_named: bool) {
        let model_name = case.recorder.clean(model);
        tracing::warn!(
            upstream,
            model = model_name,
            "the upstream refuses stream_options.include_usage: tokens of its streams are estimated"
        );
        self.insert(upstream, model, StreamUsage::Refused);
        let subject = subject(model);
        let remembering = case.recorder.remember_capability(upstream, &subject, REFUSED);
        if is_named && let Some(Err(error)) = case.store_patience.wait(remembering).await {
            tracing::error!(%error, "the store does not take a capability");
        }
    }

    fn insert(&self, upstream: &str, model: &str, known: StreamUsage) {
        let mut all = self.lock();
        let key = (upstream.to_owned(), model.to_owned());
        if all.len() >= MAX_KNOWN && !all.contains_key(&key) {
            all.clear();
        }
        all.insert(key, known);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(String, String), StreamUsage>> {
        // The map is whole after every single operation, so a panic elsewhere cannot have spoilt it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name under which the store has it, beside those of other capabilities of the model.
fn subject(model: &str) -> String {
    format!("{model}#usage")
}

/// Whether an error names the field that asks for the tokens of a stream.
pub(crate) fn names_usage_field(error: Option<&ProviderError>) -> bool {
    let names = |text: &str| ["stream_options", "include_usage"].iter().any(|name| text.contains(name));
    error.is_some_and(|error| names(&error.message) || error.code.as_deref().is_some_and(names))
}

/// Whether a refusal can have this field as its reason: it names it, or the upstream has not taken any such request yet and
/// rejects the request itself, not its sender or its length.
pub(crate) fn may_be_about_usage(
    known: StreamUsage,
    status: StatusCode,
    error: Option<&ProviderError>,
) -> bool {
    let rejects = matches!(status, StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY);
    let is_other = error.is_some_and(|error| error.is_context_length() || error.is_about_the_account());
    rejects && !is_other && (known != StreamUsage::Accepted || names_usage_field(error))
}
