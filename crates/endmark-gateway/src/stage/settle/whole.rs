//! A reply that came as a whole, written down.

use crate::ledger::Ended;
use crate::stage::mend::whole::Mended;

/// A whole reply of which all is written down.
pub(crate) struct Settled {
    pub(crate) mended: Mended,
}

/// Writes down how a request ended.
pub(crate) fn whole(mended: Mended) -> Settled {
    mended.observed.exchange.calls.watch.end(Ended::Replied(mended.disclosure.outcome()));
    Settled { mended }
}
