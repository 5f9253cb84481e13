//! What became of one part of a reply.

use bytes::Bytes;
use endmark_recovery::{CONTROL_CHARACTERS, CutKind};

use super::bound::Bound;
use super::suspect::Following;
use crate::reply::Outcome;

/// What is to be said about why a part ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finish {
    /// What the provider said.
    AsItWas,
    /// That it ended normally.
    Normal,
    /// That it is cut, in the protocol's own word.
    Cut,
}

/// A fault in the form of a whole part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FormFault {
    /// It is not as its schema demands.
    Schema,
    /// It is whole only because raw control characters in JSON strings are accepted.
    ControlCharacters,
    /// It breaks the demanded grammar.
    Malformed,
}

impl FormFault {
    /// The reason that is disclosed; a schema has a field of its own.
    fn reason(self) -> Option<&'static str> {
        match self {
            Self::Schema => None,
            Self::ControlCharacters => Some(CONTROL_CHARACTERS),
            Self::Malformed => Some("malformed"),
        }
    }
}

/// A part of a reply after all that could be done for it.
#[derive(Debug)]
pub(crate) enum Mended {
    /// It needed nothing.
    Untouched,
    /// It is whole as it came, and something of it is to be disclosed.
    Whole {
        finish: Finish,
        /// How the reply was cut behind it, where it was, and why that matters.
        cut_behind: Option<(CutKind, String)>,
        fault: Option<FormFault>,
    },
    /// Its rest was received and joined.
    Resumed {
        kind: CutKind,
        text: String,
        answered: Answered,
        whole: AnsweredWhole,
        fault: Option<FormFault>,
        /// Bytes of the answers that are not in the text: what was repeated, and what reads as words about the text.
        left_out: usize,
        /// How many characters the cut text had that this one replaced, where the reply was generated again.
        replaced_chars: Option<usize>,
    },
    /// Its form was corrected.
    Corrected {
        /// How it was cut before, or the reply behind it.
        kind: Option<CutKind>,
        reason: Option<String>,
        text: String,
        finish: Finish,
        answered: Answered,
        whole: AnsweredWhole,
    },
    /// It is cut, and nobody was asked for its rest.
    Cut { kind: CutKind, reason: String, finish: Finish },
    /// It is cut, and its rest was asked for in vain.
    Exhausted {
        kind: CutKind,
        reason: String,
        finish: Finish,
        /// The text to hand over, where it is another than was received.
        text: Option<String>,
        answered: Answered,
    },
}

/// What came of asking for a part's rest, whether or not that made it whole.
#[derive(Debug, Default)]
pub(crate) struct Answered {
    /// Calls made to resume it.
    pub(crate) attempts: u32,
    /// The other upstream that was asked, if one was.
    pub(crate) upstream: Option<String>,
    /// Tool calls that the rest of the text turned out to be.
    pub(crate) following: Option<Following>,
    /// What the provider signed the rest of the text with, or a call that was asked for anew.
    pub(crate) signature: Option<String>,
    /// The bound that ended it, if one did.
    pub(crate) bound: Option<Bound>,
}

/// What an answer has that makes a part whole.
#[derive(Debug, Default)]
pub(crate) struct AnsweredWhole {
    /// Which of the client's stop sequences the rest of the text ends at.
    pub(crate) sequence: Option<String>,
    /// The reply that stands in the place of one of which no text came, as it came.
    pub(crate) anew: Option<Bytes>,
}

/// What the client is given of a part.
#[derive(Debug, Default)]
pub(crate) struct Given {
    /// The text, where it is another than was received.
    pub(crate) text: Option<String>,
    pub(crate) following: Option<Following>,
    pub(crate) signature: Option<String>,
    pub(crate) whole: AnsweredWhole,
}

impl Mended {
    /// None where the part needed nothing.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        match self {
            Self::Untouched => None,
            Self::Whole { .. } => Some(Outcome::Whole),
            Self::Resumed { replaced_chars: Some(_), .. } => Some(Outcome::Restarted),
            Self::Resumed { .. } => Some(Outcome::Resumed),
            Self::Corrected { .. } => Some(Outcome::Corrected),
            Self::Cut { .. } => Some(Outcome::Cut),
            Self::Exhausted { .. } => Some(Outcome::Exhausted),
        }
    }

    /// Whether the client has the whole of a part for which something was done.
    pub(crate) fn is_delivered_whole(&self) -> bool {
        self.outcome().is_some_and(Outcome::is_delivered_whole)
    }

    /// Whether the client is left with a cut part.
    pub(crate) fn is_left_cut(&self) -> bool {
        self.outcome().is_some_and(|outcome| !outcome.is_delivered_whole())
    }

    /// Whether its rest was asked for in vain, or calls may be missing after it.
    pub(crate) fn is_incomplete(&self) -> bool {
        match self {
            Self::Untouched | Self::Resumed { .. } | Self::Cut { .. } => false,
            Self::Whole { cut_behind, .. } => cut_behind.is_some(),
            // A reason is only there for a whole call after which the reply was cut.
            Self::Corrected { reason, .. } => reason.is_some(),
            Self::Exhausted { .. } => true,
        }
    }

    /// Whether a bound of what it may cost ended its recovery.
    pub(crate) fn is_bounded(&self) -> bool {
        matches!(self, Self::Exhausted { answered, .. } if answered.bound.is_some())
    }

    /// How the part was cut, or the reply behind it.
    pub(crate) fn kind(&self) -> Option<CutKind> {
        match self {
            Self::Untouched => None,
            Self::Whole { cut_behind, .. } => cut_behind.as_ref().map(|(kind, _)| *kind),
            Self::Corrected { kind, .. } => *kind,
            Self::Resumed { kind, .. } | Self::Cut { kind, .. } | Self::Exhausted { kind, .. } => Some(*kind),
        }
    }

    /// Why it is not whole, or the reply behind it.
    pub(crate) fn reason(&self) -> Option<&str> {
        match self {
            Self::Untouched => None,
            Self::Corrected { reason, .. } => reason.as_deref(),
            Self::Cut { reason, .. }
            | Self::Exhausted { reason, .. }
            | Self::Whole { cut_behind: Some((_, reason)), .. } => Some(reason),
            Self::Resumed { fault, .. } | Self::Whole { fault, .. } => fault.and_then(FormFault::reason),
        }
    }

    /// What became of it, as a sentence of the log.
    pub(crate) fn report(&self) -> String {
        match self {
            Self::Resumed { replaced_chars: Some(received), text, .. } => {
                let delivered = text.chars().count();
                format!(
                    "the reply was generated again: {received} characters had been received, and {delivered} are delivered"
                )
            }
            _ => self.reason().unwrap_or("the rest was received and joined").to_owned(),
        }
    }

    /// What is to be said about why it ended.
    pub(crate) fn finish(&self) -> Finish {
        match self {
            Self::Untouched => Finish::AsItWas,
            Self::Resumed { .. } => Finish::Normal,
            Self::Whole { finish, .. }
            | Self::Corrected { finish, .. }
            | Self::Cut { finish, .. }
            | Self::Exhausted { finish, .. } => *finish,
        }
    }

    /// Calls made to resume it.
    pub(crate) fn attempts(&self) -> u32 {
        match self {
            Self::Untouched | Self::Whole { .. } | Self::Cut { .. } => 0,
            Self::Resumed { answered, .. }
            | Self::Corrected { answered, .. }
            | Self::Exhausted { answered, .. } => answered.attempts,
        }
    }

    /// The other upstream that was asked for the rest, if one was.
    pub(crate) fn upstream(&self) -> Option<&str> {
        match self {
            Self::Untouched | Self::Whole { .. } | Self::Cut { .. } => None,
            Self::Resumed { answered, .. }
            | Self::Corrected { answered, .. }
            | Self::Exhausted { answered, .. } => answered.upstream.as_deref(),
        }
    }

    /// Whether it is whole, and not as its schema or grammar demands.
    pub(crate) fn is_invalid(&self) -> bool {
        matches!(self, Self::Whole { fault: Some(_), .. } | Self::Resumed { fault: Some(_), .. })
    }

    /// Bytes of the answers that are not in the text.
    pub(crate) fn left_out(&self) -> usize {
        if let Self::Resumed { left_out, .. } = self { *left_out } else { 0 }
    }

    /// The text to hand over, where it is another than was received.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Untouched | Self::Whole { .. } | Self::Cut { .. } => None,
            Self::Resumed { text, .. } | Self::Corrected { text, .. } => Some(text),
            Self::Exhausted { text, .. } => text.as_deref(),
        }
    }

    /// What the client is given of it.
    pub(crate) fn given(self) -> Given {
        let (text, answered, whole) = match self {
            Self::Untouched | Self::Whole { .. } | Self::Cut { .. } => return Given::default(),
            Self::Resumed { text, answered, whole, .. } | Self::Corrected { text, answered, whole, .. } => {
                (Some(text), answered, whole)
            }
            Self::Exhausted { text, answered, .. } => (text, answered, AnsweredWhole::default()),
        };
        Given { text, following: answered.following, signature: answered.signature, whole }
    }
}
