//! Remembers which upstreams refuse to report the usage of a stream, for each model.
//!
//! Chat Completions and the older completions report usage only if `stream_options.include_usage` requests
//! it. Some servers reject this field. Only an attempt shows which servers do.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use endmark_store::Recorder;
use endmark_wire::error::ProviderError;
use http::StatusCode;

use super::store_wait_limit::StoreWaitLimit;

/// Maximum number of remembered pairs of upstream and model. Clients choose the model names, so the number of
/// pairs has no natural bound. When it is exceeded, all pairs are forgotten and learned again.
const MAX_CACHED_MODELS: usize = 4_096;

/// The value in the store for an upstream that refuses.
const REFUSED_VALUE: &str = "none";

/// Whether an upstream reports the usage of a model's streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamUsage {
    /// Usage was not requested yet.
    Unknown,
    /// The upstream accepted a request for usage.
    Accepted,
    /// The upstream refuses such a request.
    Refused,
}

/// What is known about the usage reports of all upstreams.
#[derive(Default)]
pub(crate) struct StreamUsages(Mutex<HashMap<(String, String), StreamUsage>>);

/// An upstream and a model, with access to what is known about their usage reports.
#[derive(Clone, Copy)]
pub(crate) struct UsageSource<'a> {
    pub(crate) usages: &'a StreamUsages,
    pub(crate) recorder: &'a Recorder,
    /// Remaining time that the reply may wait for the store.
    pub(crate) store_wait_limit: &'a StoreWaitLimit,
    pub(crate) upstream: &'a str,
    pub(crate) model: &'a str,
}

impl UsageSource<'_> {
    /// Returns what is known about the upstream. If the store fails, the worst consequence is one rejected
    /// request.
    pub(crate) async fn load(self) -> StreamUsage {
        let Self { usages, upstream, model, .. } = self;
        if let Some(known) = usages.lock().get(&(upstream.to_owned(), model.to_owned())) {
            return *known;
        }
        let subject = store_key(model);
        let known = match self.store_wait_limit.wait(self.recorder.capability(upstream, &subject)).await {
            Some(Ok(Some(word))) if word == REFUSED_VALUE => StreamUsage::Refused,
            _ => StreamUsage::Unknown,
        };
        usages.insert(upstream, model, known);
        known
    }

    /// Records that the upstream accepted a request for usage.
    fn note_accepted(self) {
        self.usages.insert(self.upstream, self.model, StreamUsage::Accepted);
    }

    /// Records that the upstream rejects the request for usage. Only an error that names the field is remembered
    /// across restarts, because other errors may have other causes.
    pub(crate) async fn note_refusal(self, is_named: bool) {
        let Self { usages, recorder, upstream, model, .. } = self;
        let model_name = recorder.clean(model);
        tracing::warn!(
            upstream,
            model = model_name,
            "the upstream refuses stream_options.include_usage: tokens of its streams are estimated"
        );
        usages.insert(upstream, model, StreamUsage::Refused);
        let subject = store_key(model);
        let remembering = recorder.remember_capability(upstream, &subject, REFUSED_VALUE);
        if is_named && let Some(Err(error)) = self.store_wait_limit.wait(remembering).await {
            tracing::error!(%error, "the store did not accept a capability");
        }
    }
}

impl StreamUsages {
    fn insert(&self, upstream: &str, model: &str, known: StreamUsage) {
        let mut all = self.lock();
        let key = (upstream.to_owned(), model.to_owned());
        if all.len() >= MAX_CACHED_MODELS && !all.contains_key(&key) {
            all.clear();
        }
        all.insert(key, known);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(String, String), StreamUsage>> {
        // The map is consistent after each operation, so a panic elsewhere cannot have corrupted it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether to request the usage of a stream, over all attempts of one request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum UsageRequest {
    /// The request is sent unchanged.
    NotRequested,
    /// Usage is requested. The value is the previous knowledge.
    Requested(StreamUsage),
    /// The upstream may have rejected the request for usage, so the original request is sent.
    Withdrawn {
        /// Whether the error named the field.
        is_named: bool,
    },
}

impl UsageRequest {
    /// Requests the usage unless the upstream is known to refuse it.
    pub(crate) async fn new(source: UsageSource<'_>) -> Self {
        match source.load().await {
            StreamUsage::Refused => Self::NotRequested,
            known => Self::Requested(known),
        }
    }

    pub(crate) fn is_requested(self) -> bool {
        matches!(self, Self::Requested(_))
    }

    /// Handles a rejection. If the field may be the reason, the request is repeated without it.
    pub(crate) fn note_refusal(&mut self, status: StatusCode, error: Option<&ProviderError>) {
        if let Self::Requested(known) = *self
            && is_about_usage(known, status, error)
        {
            *self = Self::Withdrawn { is_named: names_usage_field(error) };
        }
    }

    pub(crate) fn is_withdrawn(self) -> bool {
        matches!(self, Self::Withdrawn { .. })
    }

    /// Remembers what a response with this status shows about the upstream.
    pub(crate) async fn learn(self, source: UsageSource<'_>, status: StatusCode) {
        match self {
            _ if !status.is_success() => {}
            Self::Requested(StreamUsage::Unknown) => source.note_accepted(),
            Self::Withdrawn { is_named } => source.note_refusal(is_named).await,
            Self::Requested(_) | Self::NotRequested => {}
        }
    }
}

/// Returns the key under which the store contains this knowledge, among the other capabilities of the model.
fn store_key(model: &str) -> String {
    format!("{model}#usage")
}

/// Whether an error names the field that requests the usage of a stream.
pub(crate) fn names_usage_field(error: Option<&ProviderError>) -> bool {
    let names = |text: &str| ["stream_options", "include_usage"].iter().any(|name| text.contains(name));
    error.is_some_and(|error| names(&error.message) || error.code.as_deref().is_some_and(names))
}

/// Whether a response with this status can mean that the field is rejected. It must reject the request, and not the
/// sender.
pub(crate) fn may_be_about_usage(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY)
}

/// Whether this field may be the reason for a rejection. That is certain if the error names it. It is possible if the
/// upstream has never accepted such a request, and the rejection concerns neither the length nor the sender.
fn is_about_usage(known: StreamUsage, status: StatusCode, error: Option<&ProviderError>) -> bool {
    let is_other = error.is_some_and(|error| error.is_context_length() || error.is_about_the_account());
    may_be_about_usage(status) && !is_other && (known != StreamUsage::Accepted || names_usage_field(error))
}
