//! How a reply's bytes came to an end, and what the provider said about it.

/// How the stream of a reply ended. Every verdict is computed from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// The protocol's own end was seen.
    Clean,
    /// The upstream reported an error in mid-reply.
    UpstreamError,
    /// No byte came for longer than the idle limit.
    Stalled,
    /// The bytes stopped without a terminal event: a reset, or a close.
    Dropped,
    /// The client went away.
    Cancelled,
    /// The reply grew over the configured size.
    OverCap,
    /// Whoever passes it on was stopped before it ended.
    Interrupted,
}

impl Ending {
    /// The literal name, as in the log.
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

/// Why the provider says the model stopped, whatever word its wire format has for it (PC-8).
///
/// It is a hint: providers are known to say it wrongly, and the text decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stop {
    /// The model ended its turn, or handed over a finished tool call.
    Normal,
    /// One of the client's own stop sequences was met.
    Sequence,
    /// The limit of output tokens was reached.
    Limit,
    /// Content filter, safety, recitation or refusal: never resumed.
    Refused,
    /// The provider paused a turn of its own (`pause_turn`): never resumed.
    Paused,
    /// The server stopped a reply that repeated itself: cut, and never resumed.
    Repetition,
    /// The provider's word is not known: passed on, disclosed, and never resumed.
    Unknown,
}

impl Stop {
    /// The literal name, as in the log.
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
