//! Changes a request before it is sent upstream.

mod history;
mod passing;

pub(crate) use passing::change_passing;

use endmark_wire::request::Request;

use super::admit::{AdmittedRequest, own_header};
use super::identify::IdentifiedRequest;
use crate::exchange::Changed;
use crate::ledger::Calls;
use crate::rescue::Refusal;
use crate::shaping::{
    CappedRequest, Compaction, CondensedRequest, Subject, Summariser, cap_results, compact,
};

/// A request in the form in which it is sent upstream.
pub(crate) struct ShapedRequest {
    pub(super) identified_request: IdentifiedRequest,
    /// The record of the request's calls, if it already exists.
    pub(super) calls: Option<Calls>,
    pub(super) changed: Changed,
    /// The request before its older part was condensed.
    pub(super) uncondensed: Option<Request>,
    /// Whether the request may be condensed if the provider rejects it as too long.
    pub(super) may_condense: bool,
}

/// Makes the necessary changes, if the mode permits them. Repairs calls that servers cannot parse, caps large
/// results, and condenses the older part if the history is too long.
/// # Errors
/// [`Refusal::BadRequest`] if the header that controls compaction is invalid.
pub(crate) async fn shape(mut identified: IdentifiedRequest) -> Result<ShapedRequest, Refusal> {
    let mut changed = Changed::default();
    let mut uncondensed = None;
    let wish = wish(&identified.admitted)?;
    let mends = identified.admitted.requested_mode.mends();
    if mends {
        let IdentifiedRequest { admitted, credential, .. } = &mut identified;
        let upstream = &admitted.destination.upstream.name;
        changed =
            history::change(&admitted.gateway, upstream, credential.as_deref(), &mut admitted.request).await;
    }
    let may_condense = wish != CompactionWish::Off && (mends || wish == CompactionWish::On);
    let window = match wish {
        CompactionWish::On => true,
        CompactionWish::Settings => mends && identified.admitted.gateway.settings.compact.window.enabled,
        CompactionWish::Off => false,
    };
    // The record of calls is needed at this point only if a model writes the summary.
    let asks = may_condense && identified.admitted.destination.summary.is_some();
    let calls = asks.then(|| identified.calls());
    let subject = identified.subject(calls.as_ref());
    let request = &identified.admitted.request;
    let capped = if mends { cap_results(&subject, request).await } else { None };
    let Compaction { condensed, stop_reason: stopped } = if may_condense {
        compact(&subject, capped.as_ref().map_or(request, |capped| &capped.request), window).await
    } else {
        Compaction::default()
    };
    changed.compaction_stopped = stopped;
    let request = &mut identified.admitted.request;
    if let Some(CappedRequest { request: shorter, results, offers_reading }) = capped {
        *request = shorter;
        (changed.capped, changed.offers_reading) = (results, offers_reading);
    }
    if let Some(CondensedRequest { request: shorter, summary }) = condensed {
        uncondensed = Some(std::mem::replace(request, shorter));
        changed.summary = Some(summary);
    }
    let admitted = &identified.admitted;
    changed.note(&admitted.gateway.metrics, &admitted.destination.upstream.name, &identified.id);
    Ok(ShapedRequest { identified_request: identified, calls, changed, uncondensed, may_condense })
}

/// The compaction that a client wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CompactionWish {
    On,
    Off,
    /// As the settings define.
    Settings,
}

fn wish(admitted: &AdmittedRequest) -> Result<CompactionWish, Refusal> {
    match own_header(&admitted.client.headers, "x-endmark-compact")? {
        None => Ok(CompactionWish::Settings),
        Some("on") => Ok(CompactionWish::On),
        Some("off") => Ok(CompactionWish::Off),
        Some(other) => Err(Refusal::BadRequest(format!("x-endmark-compact is `{other}`: use on or off"))),
    }
}

impl IdentifiedRequest {
    fn subject<'a>(&'a self, calls: Option<&'a Calls>) -> Subject<'a> {
        let gateway = &*self.admitted.gateway;
        Subject {
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
