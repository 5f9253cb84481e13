//! Selects the upstream that completes a cut reply.

use crate::Ending;

/// Consecutive broken streams after which another upstream is used. The network may have caused a single one.
const BREAKS_BEFORE_LEAVING: u32 = 2;

/// Decides after each stream whether the same upstream continues the reply.
///
/// An orderly end, such as a cut at the limit, is not a reason to change. After a stall, a reported error or
/// unreadable data, the upstream is changed at once, because another attempt may cost the client the same wait. After
/// a broken stream, the upstream gets one more attempt.
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
    /// Records how the last stream of the upstream ended. Returns whether another upstream is used from now on.
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
