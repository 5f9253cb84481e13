//! The outcome of a reply.

/// The outcome of a reply, from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// The reply was complete.
    Whole,
    /// The rest was requested and joined.
    Resumed,
    /// The format was corrected.
    Corrected,
    /// The reply was regenerated, so its text differs from the received one.
    Restarted,
    /// The reply is cut, and was delivered cut.
    Cut,
    /// The reply is cut, and requesting the rest failed.
    Exhausted,
}

impl Outcome {
    /// Returns the name of the outcome in headers, streams and the log.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Resumed => "resumed",
            Self::Corrected => "corrected",
            Self::Restarted => "restarted",
            Self::Cut => "cut",
            Self::Exhausted => "exhausted",
        }
    }

    /// Whether the client gets the complete reply.
    pub(crate) fn is_delivered_whole(self) -> bool {
        match self {
            Self::Whole | Self::Resumed | Self::Corrected | Self::Restarted => true,
            Self::Cut | Self::Exhausted => false,
        }
    }
}
