//! The data about a request that recovery needs.

use std::sync::Arc;

use endmark_store::Recorder;
use endmark_wire::request::Request;

use super::capabilities::Capabilities;
use super::store_wait_limit::StoreWaitLimit;
use super::stream_usage::{StreamUsages, UsageSource};
use crate::ledger::Calls;
use crate::metrics::Metrics;
use crate::settings::{ResumeMode, Settings};
use crate::stopping::Stopping;
use crate::upstream::{Client, Destination, UpstreamHealth};

/// A request whose reply may be cut.
// Fields: borrowed from the request, so that recovery cannot access the rest of it.
pub(crate) struct RecoveryCase<'a> {
    /// The id that `endmark log show` accepts.
    pub(crate) id: &'a str,
    /// The task of the request.
    pub(crate) task_id: &'a str,
    /// The number of the conversation's turn that the reply answers, from 1.
    pub(crate) turn_number: u32,
    pub(crate) mode: ResumeMode,
    /// Whether the client set an output limit.
    pub(crate) sets_limit: bool,
    /// Whether this is the closing request of a session with an exhausted budget. In that case the gateway set the
    /// output limit.
    pub(crate) is_closing: bool,
    /// The name of a tool that the gateway offered and then withdrew. Calls of this tool are not part of the
    /// reply.
    pub(crate) withdrawn_tool: Option<&'static str>,
    /// The request that the upstream received.
    pub(crate) request: &'a Request,
    /// The upstream that answered.
    pub(crate) destination: &'a Destination,
    pub(crate) fallback: Option<&'a Destination>,
    /// Sends the further calls.
    pub(crate) sender: UpstreamSender<'a>,
    /// The upstream calls of the request.
    pub(crate) calls: &'a Calls,
    pub(crate) recorder: &'a Recorder,
    /// Remaining time that the reply may wait for the store.
    pub(crate) store_wait_limit: &'a StoreWaitLimit,
    pub(crate) settings: &'a Settings,
    pub(crate) capabilities: &'a Capabilities,
    pub(crate) stream_usages: &'a StreamUsages,
    pub(crate) metrics: &'a Arc<Metrics>,
    pub(crate) stopping: &'a Arc<Stopping>,
}

/// Sends calls, and records the health of upstreams.
#[derive(Clone, Copy)]
pub(crate) struct UpstreamSender<'a> {
    pub(crate) client: &'a Client,
    pub(crate) upstream_health: &'a UpstreamHealth,
}

impl RecoveryCase<'_> {
    /// Returns the name of the upstream that answers.
    pub(super) fn upstream_name(&self) -> &str {
        &self.destination.upstream.name
    }

    /// Returns what is known about usage in this model's streams at this upstream.
    pub(crate) fn usage_source<'a>(&'a self, upstream: &'a str, model: &'a str) -> UsageSource<'a> {
        let Self { stream_usages: usages, recorder, store_wait_limit: store_patience, .. } = *self;
        UsageSource { usages, recorder, store_wait_limit: store_patience, upstream, model }
    }
}
