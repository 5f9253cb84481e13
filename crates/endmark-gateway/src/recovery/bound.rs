//! The cost bounds that can end a recovery.

use std::fmt;

/// A bound of a recovery's cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecoveryBound {
    /// The token limit for all continuations of a reply if the client set an output limit.
    ClientLimit,
    /// The token limit for all continuations of a request.
    ExtraTokens,
    /// The time limit of a recovery if the client set an output limit.
    Seconds,
    /// The time limit of a request.
    TotalSeconds,
    /// A continuation repeated itself.
    Repetition,
}

impl fmt::Display for RecoveryBound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::ClientLimit => "[resume] client_limit_factor",
            Self::ExtraTokens => "[resume] max_extra_tokens",
            Self::Seconds => "[resume] max_seconds",
            Self::TotalSeconds => "[limits] total_seconds",
            Self::Repetition => "a continuation that repeated itself",
        })
    }
}
