//! The output of a resume: what to request next, or how it ended.

use super::shown::PromptExcerpt;
use crate::stitch::ReasoningSigns;
use crate::{CutKind, Seam};

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum ResumeStep {
    /// Ask the model for the rest.
    Ask(ResumeAsk),
    /// Nothing. This is how it ended.
    Done(ResumeOutcome),
}

/// One call to make (PC-5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumeAsk {
    /// The number of this continuation, from 1.
    pub attempt: u32,
    /// The kind of cut that the text has now.
    pub kind: CutKind,
    /// Everything joined so far: what an unfinished assistant message continues. Replacement characters of a cut
    /// character are not included, unless they were sent.
    pub so_far: String,
    /// The prompt for the rest if the message cannot be continued (PC-3). It is empty if the original request is to
    /// be repeated.
    pub prompt: String,
    /// How much of `so_far` is shown with that prompt. Its answer is joined by
    /// [`Join::Prompted`](crate::Join::Prompted).
    pub shown: PromptExcerpt,
    /// What is requested.
    pub wanted: RequestedReply,
    /// The signs of reasoning in the request, from the policy.
    pub known: ReasoningSigns,
}

/// What a call requests (PC-5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RequestedReply {
    /// The rest.
    Rest,
    /// The reply, since nothing arrived that could be continued: the original request again, with a higher limit if
    /// the kind is [`CutKind::Empty`] or [`CutKind::Limit`]. The answer replaces the empty one.
    Again,
    /// The whole reply again, since no continuation could be joined. The answer is accepted if it ended normally, is
    /// whole, has no less content than the cut text, and begins with what the client has.
    Restart,
}

/// How a resume ended (PC-5).
#[derive(Debug, Clone, PartialEq)]
pub enum ResumeOutcome {
    /// The text is whole: its stop reason is a normal one.
    Whole {
        /// The whole text.
        text: String,
        /// The seams, in order; empty if nothing was joined.
        seams: Vec<Seam>,
        /// Requested continuations; 0 if the first reply was whole.
        attempts: u32,
        /// The kind of cut of the first reply.
        cut: Option<CutKind>,
        /// Whether the last reply was dropped or stopped by its limit, although the text is whole.
        disclosed: bool,
        /// The length in characters of the cut text, if the reply was regenerated and does not begin with exactly
        /// that text.
        replaced_chars: Option<usize>,
    },
    /// Refused, filtered or paused by the provider: the first reply is passed on unchanged.
    Passed,
    /// Not whole, and no further request is made.
    Exhausted(ResumeExhausted),
}

/// A reply that stayed cut (PC-5).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ResumeExhausted {
    /// Requested continuations.
    pub attempts: u32,
    /// Everything received: the text joined at the best seams, then the pieces that could not be joined, in order.
    pub merged_raw: String,
    /// Length of the verified beginning of `merged_raw` in bytes, at a character boundary.
    pub verified_len: usize,
    /// Why no further request is made.
    pub cause: ExhaustedCause,
    /// The cause in a sentence, with details.
    pub reason: String,
    /// The best of several plausible texts, if the cause is that there are several.
    pub best: Option<String>,
}

/// Why no further request is made (PC-5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExhaustedCause {
    /// All attempts are used up.
    Attempts,
    /// The model makes no progress: an identical continuation, nothing new, or the same cut again.
    NoProgress,
    /// Several seams are plausible and give different values.
    Ambiguous,
    /// The provider refused, filtered or paused a continuation, or permanently refused the request for it.
    Refused,
    /// No form of the request was accepted.
    Rejected,
    /// A budget does not permit another call.
    Budget,
    /// The client is gone, the reply exceeded a limit of size or time, or the client has part of a continuation that
    /// could not be joined.
    Stopped,
}

impl ExhaustedCause {
    /// Returns the literal name, as in the log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Attempts => "attempts",
            Self::NoProgress => "no_progress",
            Self::Ambiguous => "ambiguous",
            Self::Refused => "refused",
            Self::Rejected => "rejected",
            Self::Budget => "budget",
            Self::Stopped => "stopped",
        }
    }

    /// Whether a correction may still be requested (PC-6). Refusals, budgets, limits and lost clients are final.
    pub fn allows_correction(self) -> bool {
        match self {
            Self::Attempts | Self::NoProgress | Self::Ambiguous | Self::Rejected => true,
            Self::Refused | Self::Budget | Self::Stopped => false,
        }
    }
}
