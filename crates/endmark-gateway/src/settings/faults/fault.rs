//! What can go wrong, where and how often.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use http::StatusCode;

use super::parse::{self, FaultError};

/// The faults to rehearse, and which replies they fall on.
///
/// Faults stand behind commas, each `KIND` or `KIND@…`, with any of these behind it: a number (after so many
/// events of a stream), `512b` (after so many bytes), `25%` (of the replies), `2s` or `200ms` (a time), `always`
/// (also where Endmark itself asks again).
///
/// Faults without a share divide among themselves what the others leave of the replies.
///
/// ```
/// use endmark_gateway::FaultPlan;
/// let plan: FaultPlan = "cut@20, drop@10%, 429@5%@2s, slow@200ms@5%".parse()?;
/// assert_eq!(plan.to_string(), "cut@20, drop@10%, 429@5%@2s, slow@200ms@5%");
/// let error = "cut@twenty".parse::<FaultPlan>().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "`twenty` in the fault `cut@twenty` is none of: 20 (events), 512b (bytes), 25% (of replies), 200ms or 2s, always"
/// );
/// # Ok::<(), endmark_gateway::FaultError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FaultPlan {
    pub(crate) faults: Vec<Fault>,
}

impl FaultPlan {
    /// Whether nothing is to go wrong.
    pub fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }
}

impl FromStr for FaultPlan {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        Ok(Self { faults: parse::faults(text)? })
    }
}

impl fmt::Display for FaultPlan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written: Vec<&str> = self.faults.iter().map(|fault| fault.written.as_str()).collect();
        formatter.write_str(&written.join(", "))
    }
}

/// Between whom faults strike.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FaultSide {
    /// Between the upstream and the gateway: what it does about them is seen.
    #[default]
    Upstream,
    /// Between the gateway and its client: what the application does about them is seen.
    Client,
}

/// A side that there is not.
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

/// One fault, as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: Kind,
    pub(crate) place: Place,
    /// Of all replies, in hundredths of a percent; none: what the others leave.
    pub(crate) share: Option<u32>,
    /// Whether it also falls on what Endmark itself asks for.
    pub(crate) always: bool,
    pub(crate) written: String,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The reply ends as if its limit had been reached: `finish_reason` is `length`.
    Cut,
    /// The connection is closed in mid-body.
    Drop,
    /// The connection is reset in mid-body.
    Reset,
    /// The body ends in order, with neither a finish reason nor `[DONE]`.
    End,
    /// Nothing more comes, and the connection stays open.
    Stall,
    /// An error event takes the place of the rest.
    Error,
    /// One event is broken JSON.
    Malformed,
    /// `[DONE]` is left out.
    NoDone,
    /// Every event comes late.
    Slow(Duration),
    /// An error takes the place of the reply.
    Status(StatusCode, Option<Duration>),
}

/// Where it goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// After so many events; of a body that is no stream, after so many times four bytes.
    Events(usize),
    /// After so many bytes of the body.
    Bytes(usize),
    /// Wherever it falls, near the beginning.
    Anywhere,
}
