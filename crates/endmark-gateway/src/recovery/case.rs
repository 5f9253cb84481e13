//! What recovery has to know of the request whose reply it mends, and no more.

use std::sync::Arc;

use endmark_store::Recorder;
use endmark_wire::request::Request;

use super::capabilities::Capabilities;
use super::store_patience::StorePatience;
use super::stream_usage::{StreamUsages, UsageSource};
use crate::faults::Rehearsal;
use crate::ledger::Calls;
use crate::metrics::Metrics;
use crate::settings::{Mode, Settings};
use crate::stopping::Stopping;
use crate::upstream::{Client, Destination, Standing};

/// A request whose reply may be cut.
pub(crate) struct Case<'a> {
    /// The id that `endmark log show` explains.
    pub(crate) id: &'a str,
    /// The task that it belongs to.
    pub(crate) task_id: &'a str,
    /// Which turn of the conversation is being answered, from 1.
    pub(crate) turn_number: u32,
    pub(crate) mode: Mode,
    /// Whether the client itself limited its reply.
    pub(crate) sets_limit: bool,
    /// Whether it is the last request of a session whose budget is used up: its limit is the gateway's.
    pub(crate) is_closing: bool,
    /// A tool that the client does not know, and that the model may not call any more: calls of it are not part of the reply.
    pub(crate) withdrawn: Option<&'static str>,
    /// The request as the upstream got it that answers.
    pub(crate) request: &'a Request,
    /// That upstream.
    pub(crate) destination: &'a Destination,
    /// The one that can stand in for it.
    pub(crate) fallback: Option<&'a Destination>,
    /// What further calls are sent with.
    pub(crate) sender: Sender<'a>,
    /// The calls made for it.
    pub(crate) calls: &'a Calls,
    pub(crate) recorder: &'a Recorder,
    /// How long its reply may still wait for the store.
    pub(crate) store_patience: &'a StorePatience,
    pub(crate) settings: &'a Settings,
    pub(crate) capabilities: &'a Capabilities,
    pub(crate) stream_usages: &'a StreamUsages,
    pub(crate) metrics: &'a Arc<Metrics>,
    pub(crate) stopping: &'a Arc<Stopping>,
}

/// What sends a call, and knows how its upstream fares.
#[derive(Clone, Copy)]
pub(crate) struct Sender<'a> {
    pub(crate) client: &'a Client,
    pub(crate) standing: &'a Standing,
    /// What goes wrong on command.
    pub(crate) rehearsal: &'a Rehearsal,
}

impl Case<'_> {
    /// The name of the upstream that answers.
    pub(super) fn upstream_name(&self) -> &str {
        &self.destination.upstream.name
    }

    /// What is known of the usage that this upstream reports in streams of this model.
    pub(crate) fn usage_source<'a>(&'a self, upstream: &'a str, model: &'a str) -> UsageSource<'a> {
        let Self { stream_usages: usages, recorder, store_patience, .. } = *self;
        UsageSource { usages, recorder, store_patience, upstream, model }
    }
}
