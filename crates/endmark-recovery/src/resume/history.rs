//! What was received in pieces, what it was judged and why: what the log keeps of a resume (PC-7).

use crate::{Ending, Join, Judgement, Seam, Stop};

/// One call and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct PieceRecord {
    /// What was asked for.
    pub role: PieceRole,
    /// Which continuation or correction it is, from 1; 0 for the first reply.
    pub attempt: u32,
    /// The text as it was received; empty if the call failed.
    pub text: String,
    /// How its stream ended.
    pub ending: Ending,
    /// Why the provider says it stopped; none if it said nothing.
    pub stop: Option<Stop>,
    /// What the text was judged with this piece in its place (PC-8). A piece that could not be joined leaves
    /// the cut as it was.
    pub judged: Judgement,
    /// Why, in one sentence.
    pub why: String,
    /// How it was joined; none for a first reply, a correction or a failed call.
    pub join: Option<Join>,
    /// The seam, if it was joined.
    pub seam: Option<Seam>,
}

impl PieceRecord {
    /// How many bytes were received.
    pub fn received_bytes(&self) -> usize {
        self.text.len()
    }
}

/// What a call asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PieceRole {
    /// The reply itself.
    First,
    /// The reply again, since nothing had come that could be continued.
    Again,
    /// The rest of a cut reply.
    Continuation,
    /// The reply's JSON, corrected (PC-6).
    Correction,
}

impl PieceRole {
    /// The literal name, as in the log.
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Again => "again",
            Self::Continuation => "continuation",
            Self::Correction => "correction",
        }
    }
}
