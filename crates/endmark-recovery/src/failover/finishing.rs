//! Which upstream is asked for the rest of a cut reply.

use crate::Ending;

/// Consecutive broken streams after which an upstream is no longer asked: a single one may be the network's fault.
const BREAKS_BEFORE_LEAVING: u32 = 2;

/// Decides after each stream whether the upstream that began a reply continues it.
///
/// An orderly end, such as a cut at the limit, is not evidence against an upstream. An upstream that stalled,
/// reported an error or sent unreadable data is left at once, since another try may cost the client the same wait. An
/// upstream whose stream broke gets one more try.
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
    /// Records how the last stream of the upstream ended. Returns whether another upstream is asked from now on.
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
