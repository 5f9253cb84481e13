//! Records a streamed reply.

use endmark_recovery::Ending;

use crate::exchange::Exchange;
use crate::ledger::RequestEnd;
use crate::stage::mend::stream::MendedStream;

/// A stream whose outcome was recorded.
pub(crate) struct RecordedStream {
    pub(crate) mended_stream: MendedStream,
    /// Whether the stream broke off before its last event or its usage.
    pub(crate) is_end_lost: bool,
}

/// Records how a request ended, and under which id its reply continues.
pub(crate) fn settle_stream(exchange: &Exchange, mended: MendedStream) -> RecordedStream {
    exchange.calls.watch.end(RequestEnd::Replied(mended.result.worst_outcome));
    let observed = &mended.observed;
    // Check this regardless of how the body ended, because the last event may be in the bytes after the last
    // complete frame.
    let lacks_end = exchange.attempt.request.format().facts().needs_last_event
        && !observed.reader.received().is_done()
        && observed.residue.is_empty();
    // If the client received an error, no end is added.
    let end_lost = observed.error.is_none() && (observed.ending != Ending::Clean || lacks_end);
    if end_lost && mended.result.failure.is_none() {
        mended.note_lost_end(exchange);
    }
    mended.note_successor(exchange);
    RecordedStream { mended_stream: mended, is_end_lost: end_lost }
}

impl MendedStream {
    /// Records that the reply is complete, but its last event or its usage is missing.
    fn note_lost_end(&self, exchange: &Exchange) {
        let every_choice_ended =
            self.observed.reader.received().choices().iter().all(|choice| choice.finish.is_some());
        if every_choice_ended {
            let upstream = exchange.upstream_name();
            tracing::info!(
                request = exchange.client.id,
                upstream,
                ending = self.observed.ending.name(),
                "a stream broke off after the end of its reply"
            );
            exchange.gateway.metrics.note_lost_end(upstream);
        }
    }

    /// Records the id of the complete response. The client will refer to the id at the beginning of its
    /// stream, but the server has the complete reply under the id of the last response. A tool result belongs
    /// to the response that contains the tool call, so a reply with tool calls has no successor.
    fn note_successor(&self, exchange: &Exchange) {
        let is_whole = self.result.failure.is_none() && self.result.worst_outcome.is_delivered_whole();
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
