//! Which upstream is asked for the rest of a cut reply.

use crate::Ending;

/// Broken streams in a row after which an upstream is not asked to go on: one may be the network's fault.
const BREAKS_BEFORE_LEAVING: u32 = 2;

/// Decides, ending after ending, whether the upstream that began a reply is still the one to finish it.
///
/// A reply that came to an orderly end, as one that was cut by its limit, says nothing against its upstream.
/// One that fell silent, reported an error or sent what cannot be read is left at once, since finding out costs
/// the client the same wait again; one that broke off is asked once more.
///
/// ```
/// use endmark_recovery::Ending;
/// use endmark_recovery::failover::Finishing;
/// let mut finishing = Finishing::default();
/// assert!(!finishing.leaves(Ending::Dropped));
/// assert!(finishing.leaves(Ending::Dropped));
/// assert!(Finishing::default().leaves(Ending::Stalled));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Finishing {
    breaks: u32,
}

impl Finishing {
    /// Takes how the last stream of the upstream ended; answers whether another is to be asked from now on.
    pub fn leaves(&mut self, ending: Ending) -> bool {
        match ending {
            Ending::Clean | Ending::Cancelled | Ending::OverCap | Ending::Interrupted => false,
            Ending::Stalled | Ending::UpstreamError => true,
            Ending::Dropped => {
                self.breaks += 1;
                self.breaks >= BREAKS_BEFORE_LEAVING
            }
        }
    }
}
