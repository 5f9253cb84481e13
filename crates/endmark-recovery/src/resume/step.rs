//! The output of a resume: the next request or the outcome.

use super::prompt_excerpt::PromptExcerpt;
use crate::stitch::ReasoningSigns;
use crate::{CutKind, Seam};

/// The next step for the driver.
#[derive(Debug, Clone, PartialEq)]
pub enum ResumeStep {
    /// Ask the model for the rest.
    Ask(ResumeAsk),
    /// The resume has ended with this outcome.
    Done(ResumeOutcome),
}

/// A call to make (PC-5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumeAsk {
    /// The number of this continuation, from 1.
    pub attempt: u32,
    /// The current kind of cut of the text.
    pub kind: CutKind,
    /// The joined text so far. As an unfinished assistant message, it can be continued. It does not contain
    /// the replacement characters of an incomplete character, unless the client has received them.
    pub so_far: String,
    /// The prompt for the rest, for servers that cannot continue a message (PC-3). It is empty if the
    /// original request must be repeated.
    pub prompt: String,
    /// The part of `so_far` that must be shown with the prompt. The answer to the prompt must be joined with
    /// [`Join::Prompted`](crate::Join::Prompted).
    pub shown: PromptExcerpt,
    /// What the call requests.
    pub wanted: RequestedReply,
    /// The signs of reasoning in the request, from the policy.
    pub known: ReasoningSigns,
}

/// What a call requests (PC-5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RequestedReply {
    /// The rest.
    Rest,
    /// The reply again, because nothing was received that could be continued. Repeat the original request,
    /// with a higher limit if the kind is [`CutKind::Empty`] or [`CutKind::Limit`]. The answer replaces the
    /// empty reply.
    Again,
    /// The complete reply again, because no continuation could be joined. The answer must end normally, be
    /// whole, not be clearly shorter than the cut text, and begin with the text that the client has received.
    Restart,
}

/// The outcome of a resume (PC-5).
#[derive(Debug, Clone, PartialEq)]
pub enum ResumeOutcome {
    /// The text is whole. Report a normal stop reason.
    Whole {
        /// The whole text.
        text: String,
        /// The seams in order. It is empty if nothing was joined.
        seams: Vec<Seam>,
        /// Number of requested continuations. It is 0 if the first reply was whole.
        attempts: u32,
        /// The kind of cut of the first reply, or `None` if it was whole.
        cut: Option<CutKind>,
        /// Whether the text is whole although the stream of its last reply broke or reached the limit.
        disclosed: bool,
        /// Length in characters of the cut text that a regenerated reply replaced. `None` if there was no
        /// regenerated reply, or if it begins with exactly the cut text.
        replaced_chars: Option<usize>,
    },
    /// The provider refused, filtered or paused the reply. The first reply is to be forwarded unchanged.
    Passed,
    /// The text is still cut, and no further request is made.
    Exhausted(ResumeExhausted),
}

/// A reply that remained cut (PC-5).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ResumeExhausted {
    /// Number of requested continuations.
    pub attempts: u32,
    /// All received text: the joined text, and then the pieces that could not be joined, in order.
    pub merged_raw: String,
    /// Length in bytes of the verified beginning of `merged_raw`, at a character boundary.
    pub verified_len: usize,
    /// Why no further request is made.
    pub cause: ExhaustedCause,
    /// The cause as a sentence, with details.
    pub reason: String,
    /// If the cause is ambiguity: the best of the possible texts.
    pub best: Option<String>,
}

/// Why no further request is made (PC-5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExhaustedCause {
    /// No attempts are left.
    Attempts,
    /// The model makes no progress: the continuation is identical to the last one, adds nothing, or is cut at
    /// the same place.
    NoProgress,
    /// Several seams with different values are possible, or the best seam is uncertain.
    Ambiguous,
    /// The provider refused, filtered or paused a continuation, or permanently refused to continue.
    Refused,
    /// The server rejected every form of the request.
    Rejected,
    /// A budget does not permit another call.
    Budget,
    /// The client disconnected, the reply exceeded a size or time limit, or the client has received part of a
    /// continuation that could not be joined.
    Stopped,
}

impl ExhaustedCause {
    /// Returns the name that the log uses.
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

    /// Whether a correction may still be requested (PC-6). It may not after refusals, exhausted budgets,
    /// exceeded limits, or if the client has disconnected.
    pub fn allows_correction(self) -> bool {
        match self {
            Self::Attempts | Self::NoProgress | Self::Ambiguous | Self::Rejected => true,
            Self::Refused | Self::Budget | Self::Stopped => false,
        }
    }
}
