//! How the stream of a reply ended, and why the provider stopped.

/// How the stream of a reply ended. All verdicts depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// The stream ended with the protocol's terminal event.
    Clean,
    /// The upstream reported an error in the middle of the reply.
    UpstreamError,
    /// No byte arrived within the idle limit.
    Stalled,
    /// The connection closed or was reset before a terminal event.
    Dropped,
    /// The client disconnected.
    Cancelled,
    /// The reply exceeded the configured maximum size.
    OverCap,
    /// The process that forwarded the reply stopped.
    Interrupted,
}

impl Ending {
    /// Returns the name that the log uses.
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

/// The provider's reason for stopping, independent of its wire format (PC-8).
///
/// Providers sometimes report a wrong reason, so it is only a hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stop {
    /// The model ended its turn, or completed a tool call.
    Normal,
    /// The model reached one of the client's stop sequences.
    Sequence,
    /// The model reached the limit of output tokens.
    Limit,
    /// A content filter, a safety rule, recitation or a refusal stopped the reply. Never resumed.
    Refused,
    /// The provider paused its own turn (`pause_turn`). Never resumed.
    Paused,
    /// The server stopped a reply that repeated itself. It counts as cut, but is never resumed.
    Repetition,
    /// An unknown reason. The reply is forwarded with this reason, and never resumed.
    Unknown,
}

impl Stop {
    /// Returns the name that the log uses.
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
