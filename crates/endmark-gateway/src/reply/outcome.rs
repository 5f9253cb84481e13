//! The outcome of a reply.

/// The outcome of a reply, from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// Nothing was missing.
    Whole,
    /// The rest was requested and joined.
    Resumed,
    /// The form was corrected.
    Corrected,
    /// Generated again: the text differs from the received one.
    Restarted,
    /// Cut, and delivered cut.
    Cut,
    /// Cut, and the rest was requested without success.
    Exhausted,
}

impl Outcome {
    /// Returns the literal name, in headers, streams and the log.
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
