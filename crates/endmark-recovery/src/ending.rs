//! How the bytes of a reply ended, and the provider's report about it.

/// How the stream of a reply ended. All verdicts depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// The protocol's own end arrived.
    Clean,
    /// The upstream reported an error in the middle of the reply.
    UpstreamError,
    /// No byte arrived within the idle limit.
    Stalled,
    /// The bytes stopped without a terminal event: a reset or a close.
    Dropped,
    /// The client disconnected.
    Cancelled,
    /// The reply exceeded the configured size.
    OverCap,
    /// The process that forwarded the reply was stopped.
    Interrupted,
}

impl Ending {
    /// Returns the literal name, as in the log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::UpstreamError => "upstream_error",
            Self::Stalled => "stalled",
            Self::Dropped => "dropped",
            Self::Cancelled => "cancelled",
            Self::OverCap => "over_cap",
            Self::Interrupted => "interrupted",
        }
    }
}

/// The provider's reason for stopping, independent of the words of its wire format (PC-8).
///
/// The reason is a hint. Providers sometimes report a wrong one, and the text decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stop {
    /// The model ended its turn, or completed a tool call.
    Normal,
    /// The model reached one of the client's stop sequences.
    Sequence,
    /// The model reached the limit of output tokens.
    Limit,
    /// Content filter, safety, recitation or refusal: never resumed.
    Refused,
    /// The provider paused a turn of its own (`pause_turn`): never resumed.
    Paused,
    /// The server stopped a reply that repeated itself: cut, and never resumed.
    Repetition,
    /// An unknown reason. It is forwarded and disclosed, and the reply is never resumed.
    Unknown,
}

impl Stop {
    /// Returns the literal name, as in the log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Sequence => "sequence",
            Self::Limit => "limit",
            Self::Refused => "refused",
            Self::Paused => "paused",
            Self::Repetition => "repetition",
            Self::Unknown => "unknown",
        }
    }
}
