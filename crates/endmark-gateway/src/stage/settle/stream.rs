//! A reply that came as a stream, written down.

use endmark_recovery::Ending;

use crate::exchange::Exchange;
use crate::ledger::Ended;
use crate::stage::mend::stream::Mended;

/// A stream of which all is written down.
pub(crate) struct Settled {
    pub(crate) mended: Mended,
    /// What its server was to say behind the reply did not come.
    pub(crate) end_lost: bool,
}

/// Writes down how a request ended, and under which id its reply goes on.
pub(crate) fn stream(exchange: &Exchange, mended: Mended) -> Settled {
    exchange.calls.watch.end(Ended::Replied(mended.result.worst));
    let observed = &mended.observed;
    // However the bytes ended. In what follows the last whole frame it may stand all the same.
    let lacks_end = exchange.request.format().facts().wants_last_event
        && !observed.reader.received().is_done()
        && observed.residue.is_empty();
    // Behind an error that the client was told of nothing is made up.
    let end_lost = observed.error.is_none() && (observed.ending != Ending::Clean || lacks_end);
    if end_lost && mended.result.failed.is_none() {
        mended.note_lost_end(exchange);
    }
    mended.note_successor(exchange);
    Settled { mended, end_lost }
}

impl Mended {
    /// The reply is all there, and what its server was to say behind it is not: its last event, or what it counted.
    fn note_lost_end(&self, exchange: &Exchange) {
        let every_choice_ended =
            self.observed.reader.received().choices().iter().all(|choice| choice.finish.is_some());
        if every_choice_ended {
            let upstream = exchange.upstream_name();
            tracing::info!(
                request = exchange.id,
                upstream,
                ending = self.observed.ending.name(),
                "a stream broke off behind the end of its reply"
            );
            exchange.gateway.metrics.end_lost(upstream);
        }
    }

    /// The client goes on from the id that its stream began with; its server has all of the reply under that of the last
    /// answer. A call's result goes to the response that has the call.
    fn note_successor(&self, exchange: &Exchange) {
        let is_whole = self.result.failed.is_none() && self.result.worst.is_delivered_whole();
        let has_calls =
            self.observed.reader.received().choices().iter().any(|choice| !choice.tool_calls.is_empty());
        if let (Some(id), Some(last)) = (self.observed.reader.received().id(), &self.account.last_id)
            && is_whole
            && !has_calls
            && self.account.last_upstream.as_deref() == Some(exchange.upstream_name())
        {
            let credential = exchange.calls.credential();
            exchange.gateway.successors.note(exchange.upstream_name(), credential, id, last);
        }
    }
}
