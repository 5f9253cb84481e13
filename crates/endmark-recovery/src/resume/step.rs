//! The output of a resume: the next request, or the outcome.

use super::shown::PromptExcerpt;
use crate::stitch::ReasoningSigns;
use crate::{CutKind, Seam};

/// The next step of the driver.
#[derive(Debug, Clone, PartialEq)]
pub enum ResumeStep {
    /// Ask the model for the rest.
    Ask(ResumeAsk),
    /// The resume is done, with this outcome.
    Done(ResumeOutcome),
}

/// One call to make (PC-5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumeAsk {
    /// The number of this continuation, from 1.
    pub attempt: u32,
    /// The kind of cut that the text has now.
    pub kind: CutKind,
    /// All joined text so far, which an unfinished assistant message continues. Replacement characters of a cut
    /// character are not included, unless they were sent.
    pub so_far: String,
    /// The prompt for the rest if the message cannot be continued (PC-3). Empty if the original request is to be
    /// repeated.
    pub prompt: String,
    /// The part of `so_far` that is shown with that prompt. The answer is joined by
    /// [`Join::Prompted`](crate::Join::Prompted).
    pub shown: PromptExcerpt,
    /// The reply to request.
    pub wanted: RequestedReply,
    /// The signs of reasoning in the request, from the policy.
    pub known: ReasoningSigns,
}

/// The reply that a call requests (PC-5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RequestedReply {
    /// The rest.
    Rest,
    /// The reply, because nothing arrived that could be continued. Repeat the original request, with a higher limit
    /// if the kind is [`CutKind::Empty`] or [`CutKind::Limit`]. The answer replaces the empty one.
    Again,
    /// The complete reply, because no continuation could be joined. The answer is accepted if it ended normally, is
    /// whole, has no less content than the cut text, and begins with the text that the client has.
    Restart,
}

/// How a resume ended (PC-5).
#[derive(Debug, Clone, PartialEq)]
pub enum ResumeOutcome {
    /// The text is whole, and its stop reason is a normal one.
    Whole {
        /// The whole text.
        text: String,
        /// The seams in order. Empty if nothing was joined.
        seams: Vec<Seam>,
        /// Number of requested continuations. 0 if the first reply was whole.
        attempts: u32,
        /// The kind of cut of the first reply.
        cut: Option<CutKind>,
        /// Whether the text is whole although the stream of its last reply broke or reached the limit.
        disclosed: bool,
        /// The length in characters of the cut text, if a regenerated reply replaced it and does not begin with
        /// exactly that text.
        replaced_chars: Option<usize>,
    },
    /// The provider refused, filtered or paused the reply. The first reply is forwarded unchanged.
    Passed,
    /// The text is not whole, and no further request is made.
    Exhausted(ResumeExhausted),
}

/// A reply that stayed cut (PC-5).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ResumeExhausted {
    /// Requested continuations.
    pub attempts: u32,
    /// All received text: the text joined at the best seams, and then the pieces that could not be joined, in order.
    pub merged_raw: String,
    /// Length of the verified beginning of `merged_raw` in bytes, at a character boundary.
    pub verified_len: usize,
    /// The reason why no further request is made.
    pub cause: ExhaustedCause,
    /// The cause in a sentence, with details.
    pub reason: String,
    /// The best of several possible texts, if the cause is that there are several.
    pub best: Option<String>,
}

/// The reason why no further request is made (PC-5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExhaustedCause {
    /// No attempts remain.
    Attempts,
    /// The model makes no progress: an identical continuation, nothing new, or the same cut again.
    NoProgress,
    /// Several seams with different values are possible.
    Ambiguous,
    /// The provider refused, filtered or paused a continuation, or permanently refused the request for it.
    Refused,
    /// No form of the request was accepted.
    Rejected,
    /// A budget does not permit another call.
    Budget,
    /// The client disconnected, the reply exceeded a limit on size or time, or the client has part of a continuation
    /// that could not be joined.
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

    /// Whether a correction may still be requested (PC-6). Refusals, budgets, limits and disconnected clients are
    /// final.
    pub fn allows_correction(self) -> bool {
        match self {
            Self::Attempts | Self::NoProgress | Self::Ambiguous | Self::Rejected => true,
            Self::Refused | Self::Budget | Self::Stopped => false,
        }
    }
}
