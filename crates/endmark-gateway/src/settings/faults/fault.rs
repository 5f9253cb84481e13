//! Faults, their positions and their frequency.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use http::StatusCode;

use super::parse::{self, FaultError};

/// The faults to inject, and the replies that get them.
///
/// Faults are separated by commas. Each is `KIND` or `KIND@…` with any of these details: a number (after this
/// many events of a stream), `512b` (after this many bytes), `25%` (of the replies), `2s` or `200ms` (a
/// duration), `always` (also in Endmark's own continuation requests).
///
/// Faults without a share divide the remaining replies equally.
///
/// ```
/// use endmark_gateway::FaultPlan;
/// let plan: FaultPlan = "cut@20, drop@10%, 429@5%@2s, slow@200ms@5%".parse()?;
/// assert_eq!(plan.to_string(), "cut@20, drop@10%, 429@5%@2s, slow@200ms@5%");
/// let error = "cut@twenty".parse::<FaultPlan>().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "`twenty` in the fault `cut@twenty` is not one of: 20 (events), 512b (bytes), 25% (of replies), 200ms or 2s, always"
/// );
/// # Ok::<(), endmark_gateway::FaultError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FaultPlan {
    pub(crate) faults: Vec<Fault>,
}

impl FaultPlan {
    /// Whether the plan contains no faults.
    pub fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }
}

impl FromStr for FaultPlan {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        Ok(Self { faults: parse::parse_faults(text)? })
    }
}

impl fmt::Display for FaultPlan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written: Vec<&str> = self.faults.iter().map(|fault| fault.source_text.as_str()).collect();
        formatter.write_str(&written.join(", "))
    }
}

/// The side of the gateway on which faults occur.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FaultSide {
    /// Between the upstream and the gateway, to test how Endmark recovers.
    #[default]
    Upstream,
    /// Between the gateway and its client, to test how the application reacts.
    Client,
}

/// Error for an unknown side.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no side for faults: use upstream (Endmark has to mend them) or client (your application has to)"
)]
pub struct UnknownFaultSide(String);

impl FromStr for FaultSide {
    type Err = UnknownFaultSide;

    fn from_str(name: &str) -> Result<Self, UnknownFaultSide> {
        match name {
            "upstream" => Ok(Self::Upstream),
            "client" => Ok(Self::Client),
            other => Err(UnknownFaultSide(other.to_owned())),
        }
    }
}

/// A fault of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: FaultKind,
    pub(crate) position: FaultPosition,
    /// The share of all replies in hundredths of a percent. `None` means an equal part of the remaining replies.
    pub(crate) share: Option<u32>,
    /// Whether the fault also occurs in Endmark's own continuation requests.
    pub(crate) always: bool,
    pub(crate) source_text: String,
}

/// The kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// The reply ends as if it had reached its limit: `finish_reason` is `length`.
    Cut,
    /// The connection closes in the middle of the body.
    Drop,
    /// The connection is reset in the middle of the body.
    Reset,
    /// The body ends normally, but without a finish reason or `[DONE]`.
    End,
    /// Nothing more arrives, and the connection stays open.
    Stall,
    /// An error event replaces the rest of the stream.
    Error,
    /// One event is malformed JSON.
    Malformed,
    /// `[DONE]` is missing.
    NoDone,
    /// Every event arrives late.
    Slow(Duration),
    /// An error replaces the reply.
    Status(StatusCode, Option<Duration>),
}

/// The position of a fault in a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultPosition {
    /// After this many events. If the body is not a stream, each four bytes count as one event.
    Events(usize),
    /// After this many bytes of the body.
    Bytes(usize),
    /// Anywhere near the beginning.
    Anywhere,
}
