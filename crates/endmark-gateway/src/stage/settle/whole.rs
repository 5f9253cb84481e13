//! Records a reply that is not a stream.

use crate::ledger::RequestEnd;
use crate::stage::mend::whole::MendedWhole;

/// A reply that is not a stream, after its outcome was recorded.
pub(crate) struct RecordedReply {
    pub(crate) mended_reply: MendedWhole,
}

/// Records how a request ended.
pub(crate) fn settle_reply(mended: MendedWhole) -> RecordedReply {
    mended.observed.exchange.calls.watch.end(RequestEnd::Replied(mended.disclosure.outcome()));
    RecordedReply { mended_reply: mended }
}
