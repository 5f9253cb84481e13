//! What a resume answers: what to ask next, or how it ended.

use super::shown::Shown;
use crate::stitch::ReasoningSigns;
use crate::{CutKind, Seam};

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum ResumeStep {
    /// Ask the model for the rest.
    Ask(ResumeAsk),
    /// Nothing: this is how it ended.
    Done(ResumeOutcome),
}

/// One call to make (PC-5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumeAsk {
    /// The how many-th continuation this is, from 1.
    pub attempt: u32,
    /// What kind of cut the text has now.
    pub kind: CutKind,
    /// Everything joined so far: what an unfinished assistant message continues. The replacement character a server left for a cut character is not in it, unless it was sent.
    pub so_far: String,
    /// The prompt that asks for the rest where the message cannot be continued (PC-3); empty if the original
    /// request is to be asked again.
    pub prompt: String,
    /// How much of `so_far` is shown together with that prompt; its answer is joined by
    /// [`Join::Prompted`](crate::Join::Prompted).
    pub shown: Shown,
    /// What is asked for.
    pub wanted: Wanted,
    /// The signs of reasoning that the request has, from the policy.
    pub known: ReasoningSigns,
}

/// What a call asks for (PC-5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wanted {
    /// The rest.
    Rest,
    /// The reply, since nothing came that could be continued: the original request again, with a higher limit where the
    /// kind is [`CutKind::Empty`] or [`CutKind::Limit`]. The answer replaces the empty one.
    Again,
    /// All of the reply again, since no continuation could be joined: the same. The answer is accepted if it ended normally, is
    /// whole and not poorer than the cut text, and begins with what the client has.
    Restart,
}

/// How a resume ended (PC-5).
#[derive(Debug, Clone, PartialEq)]
pub enum ResumeOutcome {
    /// The text is whole: its stop reason is a normal one.
    Whole {
        /// The whole text.
        text: String,
        /// The seams, first to last; none if nothing was joined.
        seams: Vec<Seam>,
        /// How many continuations were asked for; 0 if the first reply was whole.
        attempts: u32,
        /// What kind of cut the first reply had.
        cut: Option<CutKind>,
        /// The last reply was dropped or stopped by its limit, and the text is whole all the same.
        disclosed: bool,
        /// How many characters the cut text had that this one replaced, where the reply was generated again and does not begin
        /// with exactly that text.
        replaced_chars: Option<usize>,
    },
    /// Refused, filtered or paused by the provider: the first reply is passed on as it is.
    Passed,
    /// Not whole, and nothing more is asked.
    Exhausted(ResumeExhausted),
}

/// A reply that stayed cut (PC-5).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ResumeExhausted {
    /// How many continuations were asked for.
    pub attempts: u32,
    /// Everything received, joined at the best seams: what was joined, then what fitted nowhere, in the order
    /// it came.
    pub merged_raw: String,
    /// The first bytes of `merged_raw` that are verified; the end of a character.
    pub verified_len: usize,
    /// Why nothing more is asked.
    pub cause: ExhaustedCause,
    /// The same in a sentence, with its particulars.
    pub reason: String,
    /// The best of several plausible texts, where the cause is that there are several.
    pub best: Option<String>,
}

/// Why nothing more is asked (PC-5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExhaustedCause {
    /// All attempts are used up.
    Attempts,
    /// The model makes no progress: an identical continuation, nothing new, or the same cut again.
    NoProgress,
    /// Several seams are plausible and give different values.
    Ambiguous,
    /// The provider refused, filtered or paused a continuation, or refused the request for it for good.
    Refused,
    /// No way of asking was accepted.
    Rejected,
    /// A budget does not allow another call.
    Budget,
    /// The client is gone, the reply took more room or time than it may, or the client has part of a continuation that could
    /// not be joined: more would help nobody.
    Stopped,
}

impl ExhaustedCause {
    /// The literal name, as in the log.
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

    /// Whether a correction may still be asked for (PC-6): a refusal stands, and a budget, a client or a
    /// size that is gone stays gone.
    pub fn allows_correction(self) -> bool {
        match self {
            Self::Attempts | Self::NoProgress | Self::Ambiguous | Self::Rejected => true,
            Self::Refused | Self::Budget | Self::Stopped => false,
        }
    }
}
