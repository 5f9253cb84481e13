//! Changes a request before it is sent upstream.

mod history;
mod pass_through_history;

pub(crate) use pass_through_history::change_pass_through_history;

use endmark_wire::request::Request;

use super::admit::{AdmittedRequest, own_header};
use super::identify::IdentifiedRequest;
use crate::exchange::RequestChanges;
use crate::ledger::Calls;
use crate::refusals::Refusal;
use crate::shaping::{
    CappedRequest, CompactionResult, CondensedRequest, ShapingContext, Summariser, cap_results, compact,
};

/// A request in the form in which it is sent upstream.
pub(crate) struct ShapedRequest {
    pub(super) identified_request: IdentifiedRequest,
    /// The record of the request's calls, if it already exists.
    pub(super) calls: Option<Calls>,
    pub(super) changes: RequestChanges,
    /// The request before the older part of its conversation was condensed.
    pub(super) uncondensed: Option<Request>,
    /// Whether the request may be condensed if the provider rejects it as too long.
    pub(super) may_condense: bool,
}

/// Makes the necessary changes, if the mode permits them. Repairs calls that servers cannot parse, caps large
/// results, and condenses the older part if the history is too long.
///
/// # Errors
/// [`Refusal::BadRequest`] if the header that controls compaction is invalid.
pub(crate) async fn shape(mut identified: IdentifiedRequest) -> Result<ShapedRequest, Refusal> {
    let mut changed = RequestChanges::default();
    let mut uncondensed = None;
    let wish = requested_compaction(&identified.admitted)?;
    let may_change = identified.admitted.requested_mode.corrects_faults();
    if may_change {
        let IdentifiedRequest { admitted, credential, .. } = &mut identified;
        let upstream = &admitted.destination.upstream.name;
        changed = history::change_history(
            &admitted.gateway,
            upstream,
            credential.as_deref(),
            &mut admitted.request,
        )
        .await;
    }
    let may_condense = wish != RequestedCompaction::Off && (may_change || wish == RequestedCompaction::On);
    let window = match wish {
        RequestedCompaction::On => true,
        RequestedCompaction::Settings => {
            may_change && identified.admitted.gateway.settings.compact.window.enabled
        }
        RequestedCompaction::Off => false,
    };
    // The record of calls is needed at this point only if a model writes the summary.
    let may_summarise = may_condense && identified.admitted.destination.summary_uri.is_some();
    let calls = may_summarise.then(|| identified.calls());
    let subject = identified.shaping_context(calls.as_ref());
    let request = &identified.admitted.request;
    let capped = if may_change { cap_results(&subject, request).await } else { None };
    let CompactionResult { condensed, stop_reason: stopped } = if may_condense {
        compact(&subject, capped.as_ref().map_or(request, |capped| &capped.request), window).await
    } else {
        CompactionResult::default()
    };
    changed.compaction_stopped = stopped;
    let request = &mut identified.admitted.request;
    if let Some(CappedRequest { request: shorter, results, offers_read_tool: offers_reading }) = capped {
        *request = shorter;
        (changed.capped_results, changed.offers_read_tool) = (results, offers_reading);
    }
    if let Some(CondensedRequest { request: shorter, summary }) = condensed {
        uncondensed = Some(std::mem::replace(request, shorter));
        changed.summary = Some(summary);
    }
    let admitted = &identified.admitted;
    changed.count_and_log(&admitted.gateway.metrics, &admitted.destination.upstream.name, &identified.id);
    Ok(ShapedRequest { identified_request: identified, calls, changes: changed, uncondensed, may_condense })
}

/// Whether the client requests compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestedCompaction {
    On,
    Off,
    /// As the settings define.
    Settings,
}

fn requested_compaction(admitted: &AdmittedRequest) -> Result<RequestedCompaction, Refusal> {
    match own_header(&admitted.client.headers, "x-endmark-compact")? {
        None => Ok(RequestedCompaction::Settings),
        Some("on") => Ok(RequestedCompaction::On),
        Some("off") => Ok(RequestedCompaction::Off),
        Some(other) => Err(Refusal::BadRequest(format!("x-endmark-compact is `{other}`: use on or off"))),
    }
}

impl IdentifiedRequest {
    fn shaping_context<'a>(&'a self, calls: Option<&'a Calls>) -> ShapingContext<'a> {
        let gateway = &*self.admitted.gateway;
        ShapingContext {
            shaping: &gateway.shaping,
            settings: &gateway.settings,
            store: &gateway.store,
            id: &self.id,
            credential: self.credential.as_deref(),
            session: &self.session,
            upstream: &self.admitted.destination.upstream.name,
            summariser: calls.map(|calls| Summariser {
                client: &gateway.client,
                destination: &self.admitted.destination,
                calls,
            }),
        }
    }
}
