//! Records a reply that is not streamed.

use crate::ledger::Ended;
use crate::stage::mend::whole::Mended;

/// A reply that is not streamed, after its outcome was recorded.
pub(crate) struct Settled {
    pub(crate) mended: Mended,
}

/// Records how a request ended.
pub(crate) fn whole(mended: Mended) -> Settled {
    mended.observed.exchange.calls.watch.end(Ended::Replied(mended.disclosure.outcome()));
    Settled { mended }
}
