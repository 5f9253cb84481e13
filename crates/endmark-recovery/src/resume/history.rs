//! The received pieces with their verdicts and reasons, which the log keeps (PC-7).

use crate::{Ending, Join, Judgement, Seam, Stop};

/// One call and its result.
#[derive(Debug, Clone, PartialEq)]
pub struct PieceRecord {
    /// What the call was for.
    pub role: PieceRole,
    /// The number of the continuation or correction, from 1. 0 for the first reply.
    pub attempt: u32,
    /// The text as received. Empty if the call failed.
    pub text: String,
    /// How its stream ended.
    pub ending: Ending,
    /// The provider's reason for stopping, if any.
    pub stop: Option<Stop>,
    /// The verdict on the text with this piece (PC-8). A piece that could not be joined leaves the cut unchanged.
    pub judgement: Judgement,
    /// The reason for the verdict, in one sentence.
    pub reason: String,
    /// How the piece was joined. `None` for a first reply, a correction or a failed call.
    pub join: Option<Join>,
    /// The seam, if it was joined.
    pub seam: Option<Seam>,
}

impl PieceRecord {
    /// Returns the number of received bytes.
    pub fn received_bytes(&self) -> usize {
        self.text.len()
    }
}

/// What a call was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PieceRole {
    /// The reply itself.
    First,
    /// The reply again, because the first one contained nothing to continue.
    Again,
    /// The rest of a cut reply.
    Continuation,
    /// A correction of the reply's JSON (PC-6).
    Correction,
}

impl PieceRole {
    /// Returns the literal name, as in the log.
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Again => "again",
            Self::Continuation => "continuation",
            Self::Correction => "correction",
        }
    }
}
