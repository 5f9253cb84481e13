//! What of a request is changed before it goes upstream, while nothing of it was sent.

mod history;
mod passing;

pub(crate) use passing::change_passing;

use super::identify::Identified;
use crate::exchange::Changed;

/// A request as it goes upstream.
pub(crate) struct Shaped {
    pub(super) identified: Identified,
    pub(super) changed: Changed,
}

/// Changes of a request what has to be changed, where its mode allows that.
pub(crate) fn shape(mut identified: Identified) -> Shaped {
    let admitted = &mut identified.admitted;
    let mut changed = Changed::default();
    if admitted.wanted.mends() {
        let upstream = &admitted.destination.upstream.name;
        let credential = identified.credential.as_deref();
        changed = history::change(&admitted.gateway, upstream, credential, &mut admitted.request);
    }
    changed.note(&admitted.gateway.metrics, &admitted.destination.upstream.name, &identified.id);
    Shaped { identified, changed }
}
