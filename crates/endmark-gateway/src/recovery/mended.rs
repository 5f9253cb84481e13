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
            Self::Malformed => Some(MALFORMED),
        }
    }
}

/// The reason of a part that no continuation could make what the demanded grammar allows.
pub(crate) const MALFORMED: &str = "malformed";

/// The reason of a reply that was cut where further calls may be missing.
pub(crate) const CALLS_MAY_BE_MISSING: &str = "calls_may_be_missing";

/// A part of a reply after all that could be done for it.
#[derive(Debug)]
pub(crate) enum Mended {
    /// It needed nothing.
    Untouched,
    /// It is whole as it came, and something of it is to be disclosed.
    Whole {
        finish: Finish,
        /// How the reply was cut after it, where further calls may be missing.
        cut_after: Option<CutKind>,
        fault: Option<FormFault>,
    },
    /// Its rest was received and joined.
    Resumed {
        kind: CutKind,
        text: String,
        answered: Answered,
        whole: AnsweredWhole,
        finish: Finish,
        fault: Option<FormFault>,
        /// Bytes of the answers that are not in the text: what was repeated, and what reads as words about the text.
        left_out: usize,
        /// How many characters the cut text had that this one replaced, where the reply was generated again.
        replaced_chars: Option<usize>,
    },
    /// Its form was corrected.
    Corrected {
        /// How it was cut before, or the reply after it.
        kind: Option<CutKind>,
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
    /// Further calls may be missing after the part, which is a call: the answers do not show that the model made no more.
    pub(crate) may_lack_calls: bool,
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
            Self::Resumed { replaced_chars: Some(_), .. } => Some(Outcome::Restarted),
            Self::Resumed { .. } => Some(Outcome::Resumed),
            Self::Corrected { .. } => Some(Outcome::Corrected),
            // What breaks the demanded grammar is as useless to its client as what is cut.
            Self::Whole { fault: Some(FormFault::Malformed), .. }
            | Self::Whole { cut_after: Some(_), .. }
            | Self::Cut { .. } => Some(Outcome::Cut),
            Self::Whole { .. } => Some(Outcome::Whole),
            Self::Exhausted { .. } => Some(Outcome::Exhausted),
        }
    }

    /// Whether the client has the whole of a part for which something was done, whatever may be missing after it.
    pub(crate) fn is_delivered_whole(&self) -> bool {
        matches!(self, Self::Whole { .. } | Self::Resumed { .. } | Self::Corrected { .. })
    }

    /// Whether the client is left with a cut part.
    pub(crate) fn is_left_cut(&self) -> bool {
        matches!(self, Self::Cut { .. } | Self::Exhausted { .. })
    }

    /// Whether it is a whole call, and further ones may be missing after it.
    pub(crate) fn may_lack_calls(&self) -> bool {
        match self {
            Self::Untouched | Self::Cut { .. } | Self::Exhausted { .. } => false,
            Self::Whole { cut_after, .. } => cut_after.is_some(),
            Self::Resumed { answered, .. } | Self::Corrected { answered, .. } => answered.may_lack_calls,
        }
    }

    /// Whether its rest was asked for in vain, or calls may be missing after it.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.may_lack_calls() || matches!(self, Self::Exhausted { .. })
    }

    /// Whether a bound of what it may cost ended its recovery.
    pub(crate) fn is_bounded(&self) -> bool {
        matches!(self, Self::Exhausted { answered, .. } if answered.bound.is_some())
    }

    /// How the part was cut, or the reply behind it.
    pub(crate) fn kind(&self) -> Option<CutKind> {
        match self {
            Self::Untouched => None,
            Self::Whole { fault: Some(FormFault::Malformed), .. } => Some(CutKind::Format),
            Self::Whole { cut_after: kind, .. } | Self::Corrected { kind, .. } => *kind,
            Self::Resumed { kind, .. } | Self::Cut { kind, .. } | Self::Exhausted { kind, .. } => Some(*kind),
        }
    }

    /// Why it is not whole, or the reply behind it.
    pub(crate) fn reason(&self) -> Option<&str> {
        match self {
            _ if self.may_lack_calls() => Some(CALLS_MAY_BE_MISSING),
            Self::Untouched | Self::Corrected { .. } => None,
            Self::Cut { reason, .. } | Self::Exhausted { reason, .. } => Some(reason),
            Self::Resumed { fault, .. } | Self::Whole { fault, .. } => fault.and_then(FormFault::reason),
        }
    }

    /// What became of it, as a sentence of the log.
    pub(crate) fn report(&self) -> String {
        match self {
            Self::Resumed { replaced_chars: Some(received), text, .. } => {
                let delivered = text.chars().count();
                let lacks = if self.may_lack_calls() { "; further calls may be missing" } else { "" };
                format!(
                    "the reply was generated again: {received} characters had been received, and {delivered} are delivered{lacks}"
                )
            }
            Self::Resumed { .. } if self.may_lack_calls() => {
                "the rest of the call was received and joined; further calls may be missing after it"
                    .to_owned()
            }
            Self::Corrected { .. } if self.may_lack_calls() => {
                "the call was corrected; further calls may be missing after it".to_owned()
            }
            Self::Corrected { .. } => "its form was corrected".to_owned(),
            _ => self.reason().unwrap_or("the rest was received and joined").to_owned(),
        }
    }

    /// What is to be said about why it ended.
    pub(crate) fn finish(&self) -> Finish {
        match self {
            Self::Untouched => Finish::AsItWas,
            Self::Whole { finish, .. }
            | Self::Resumed { finish, .. }
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
