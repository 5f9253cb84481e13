//! Records the received pieces for the log, with their verdicts and reasons (PC-7).

use crate::{Ending, Join, Judgement, Seam, Stop};

/// One call to the model, and its result.
#[derive(Debug, Clone, PartialEq)]
pub struct PieceRecord {
    /// The purpose of the call.
    pub role: PieceRole,
    /// The number of the continuation or correction, from 1. It is 0 for the first reply.
    pub attempt: u32,
    /// The text as received. It is empty if the call failed.
    pub text: String,
    /// How its stream ended.
    pub ending: Ending,
    /// The provider's reason for stopping, or `None` if it reported none.
    pub stop: Option<Stop>,
    /// The verdict on the text including this piece (PC-8). If the piece could not be joined, the cut
    /// remains.
    pub judgement: Judgement,
    /// The reason for the verdict, in one sentence.
    pub reason: String,
    /// How the piece was joined. `None` for a first reply, a correction or a failed call.
    pub join: Option<Join>,
    /// The seam of the piece, or `None` if it was not joined.
    pub seam: Option<Seam>,
}

impl PieceRecord {
    /// Returns the length of the received text in bytes.
    pub fn received_bytes(&self) -> usize {
        self.text.len()
    }
}

/// The purpose of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PieceRole {
    /// To get the reply.
    First,
    /// To get the reply again, because the first one contained nothing that could be continued, or could not
    /// be completed.
    Again,
    /// To get the rest of a cut reply.
    Continuation,
    /// To correct the JSON of the reply (PC-6).
    Correction,
}

impl PieceRole {
    /// Returns the name that the log uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Again => "again",
            Self::Continuation => "continuation",
            Self::Correction => "correction",
        }
    }
}
