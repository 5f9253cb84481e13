//! How a reply ended up.

/// How a reply ended up, from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// Nothing was missing.
    Whole,
    /// The rest was asked for and joined.
    Resumed,
    /// The form was corrected.
    Corrected,
    /// Generated again: the text is another one than was received.
    Restarted,
    /// Cut, and left so.
    Cut,
    /// Cut, and the rest was asked for in vain.
    Exhausted,
}

impl Outcome {
    /// The literal name, in headers, streams and the log.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Resumed => "resumed",
            Self::Corrected => "corrected",
            Self::Restarted => "restarted",
            Self::Cut => "cut",
            Self::Exhausted => "exhausted",
        }
    }

    /// Whether the client has a whole reply.
    pub(crate) fn is_delivered_whole(self) -> bool {
        match self {
            Self::Whole | Self::Resumed | Self::Corrected | Self::Restarted => true,
            Self::Cut | Self::Exhausted => false,
        }
    }
}
