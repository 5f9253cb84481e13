//! Selects the upstream that completes a cut reply.

use crate::Ending;

/// Number of consecutive broken streams after which another upstream is used. The network may have caused a
/// single break.
const BREAKS_BEFORE_SWITCH: u32 = 2;

/// Decides after each stream whether the same upstream continues the reply.
///
/// After a clean end, such as a cut at the output limit, the upstream stays the same. After a stall, a
/// reported error or unreadable data, the upstream changes immediately: another attempt could cost the client
/// the same wait again. After a broken stream, the same upstream gets one more attempt.
///
/// ```
/// use endmark_recovery::Ending;
/// use endmark_recovery::failover::UpstreamSwitch;
/// let mut switch = UpstreamSwitch::default();
/// assert!(!switch.should_switch(Ending::Dropped));
/// assert!(switch.should_switch(Ending::Dropped));
/// assert!(UpstreamSwitch::default().should_switch(Ending::Stalled));
/// ```
#[derive(Debug, Clone, Default)]
pub struct UpstreamSwitch {
    breaks: u32,
}

impl UpstreamSwitch {
    /// Records how the last stream of the upstream ended. Returns whether to use another upstream from now
    /// on.
    pub fn should_switch(&mut self, ending: Ending) -> bool {
        match ending {
            Ending::Clean | Ending::Cancelled | Ending::OverCap | Ending::Interrupted => false,
            Ending::Stalled | Ending::UpstreamError => true,
            Ending::Dropped => {
                self.breaks += 1;
                self.breaks >= BREAKS_BEFORE_SWITCH
            }
        }
    }
}
