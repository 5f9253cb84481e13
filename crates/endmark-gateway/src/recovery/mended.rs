//! The outcome of one part of a reply.

use bytes::Bytes;
use endmark_recovery::{CONTROL_CHARACTERS, CutKind};

use super::bound::Bound;
use super::suspect::Following;
use crate::reply::Outcome;

/// The stop reason to report for a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finish {
    /// The provider's own reason.
    AsItWas,
    /// A normal end.
    Normal,
    /// A cut, in the protocol's own word.
    Cut,
}

/// A fault in the form of a whole part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FormFault {
    /// It violates its schema.
    Schema,
    /// It is whole only if raw control characters in JSON strings are accepted.
    ControlCharacters,
    /// It violates the required grammar.
    Malformed,
}

impl FormFault {
    /// Returns the reason to disclose. A schema has a field of its own.
    fn reason(self) -> Option<&'static str> {
        match self {
            Self::Schema => None,
            Self::ControlCharacters => Some(CONTROL_CHARACTERS),
            Self::Malformed => Some(MALFORMED),
        }
    }
}

/// The reason of a part that no continuation could make valid in the required grammar.
pub(crate) const MALFORMED: &str = "malformed";

/// The reason of a reply that was cut where further calls may be missing.
pub(crate) const CALLS_MAY_BE_MISSING: &str = "calls_may_be_missing";

/// A part of a reply after recovery.
#[derive(Debug)]
pub(crate) enum Mended {
    /// It needed nothing.
    Untouched,
    /// It was whole as received, and something is to be disclosed.
    Whole {
        finish: Finish,
        /// How the reply was cut after it, if further calls may be missing.
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
        /// Bytes of the answers that are not in the text: repetitions, and remarks about the text.
        left_out: usize,
        /// The length in characters of the cut text, if the reply was regenerated.
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
    /// It is cut, and its rest was not requested.
    Cut { kind: CutKind, reason: String, finish: Finish },
    /// It is cut, and its rest was requested without success.
    Exhausted {
        kind: CutKind,
        reason: String,
        finish: Finish,
        /// The text to deliver, if it differs from the received one.
        text: Option<String>,
        answered: Answered,
    },
}

/// The result of asking for a part's rest, whether or not that made it whole.
#[derive(Debug, Default)]
pub(crate) struct Answered {
    /// Calls made to resume it.
    pub(crate) attempts: u32,
    /// The other upstream that was called, if any.
    pub(crate) upstream: Option<String>,
    /// Tool calls that the rest of the text turned out to be.
    pub(crate) following: Option<Following>,
    /// The provider's signature of the rest of the text, or of a call that was requested again.
    pub(crate) signature: Option<String>,
    /// The bound that ended it, if any.
    pub(crate) bound: Option<Bound>,
    /// Whether further calls may be missing after the part, which is a call: the answers do not show that the model
    /// made no more.
    pub(crate) may_lack_calls: bool,
}

/// The content of an answer that makes a part whole.
#[derive(Debug, Default)]
pub(crate) struct AnsweredWhole {
    /// The client's stop sequence at which the rest of the text ends.
    pub(crate) sequence: Option<String>,
    /// The raw reply that replaces one without text.
    pub(crate) anew: Option<Bytes>,
}

/// What the client gets of a part.
#[derive(Debug, Default)]
pub(crate) struct Given {
    /// The text, if it differs from the received one.
    pub(crate) text: Option<String>,
    pub(crate) following: Option<Following>,
    pub(crate) signature: Option<String>,
    pub(crate) whole: AnsweredWhole,
}

impl Mended {
    /// Returns the outcome, or `None` if the part needed nothing.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        match self {
            Self::Untouched => None,
            Self::Resumed { replaced_chars: Some(_), .. } => Some(Outcome::Restarted),
            Self::Resumed { .. } => Some(Outcome::Resumed),
            Self::Corrected { .. } => Some(Outcome::Corrected),
            // A text that violates the required grammar is as useless as one that is cut.
            Self::Whole { fault: Some(FormFault::Malformed), .. }
            | Self::Whole { cut_after: Some(_), .. }
            | Self::Cut { .. } => Some(Outcome::Cut),
            Self::Whole { .. } => Some(Outcome::Whole),
            Self::Exhausted { .. } => Some(Outcome::Exhausted),
        }
    }

    /// Whether the client has the whole of a recovered part, whatever may be missing after it.
    pub(crate) fn is_delivered_whole(&self) -> bool {
        matches!(self, Self::Whole { .. } | Self::Resumed { .. } | Self::Corrected { .. })
    }

    /// Whether the client is left with a cut part.
    pub(crate) fn is_left_cut(&self) -> bool {
        matches!(self, Self::Cut { .. } | Self::Exhausted { .. })
    }

    /// Whether it is a whole call after which further ones may be missing.
    pub(crate) fn may_lack_calls(&self) -> bool {
        match self {
            Self::Untouched | Self::Cut { .. } | Self::Exhausted { .. } => false,
            Self::Whole { cut_after, .. } => cut_after.is_some(),
            Self::Resumed { answered, .. } | Self::Corrected { answered, .. } => answered.may_lack_calls,
        }
    }

    /// Whether its rest was requested without success, or calls may be missing after it.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.may_lack_calls() || matches!(self, Self::Exhausted { .. })
    }

    /// Whether a bound of the cost ended its recovery.
    pub(crate) fn is_bounded(&self) -> bool {
        matches!(self, Self::Exhausted { answered, .. } if answered.bound.is_some())
    }

    /// Returns how the part was cut, or the reply after it.
    pub(crate) fn kind(&self) -> Option<CutKind> {
        match self {
            Self::Untouched => None,
            Self::Whole { fault: Some(FormFault::Malformed), .. } => Some(CutKind::Format),
            Self::Whole { cut_after: kind, .. } | Self::Corrected { kind, .. } => *kind,
            Self::Resumed { kind, .. } | Self::Cut { kind, .. } | Self::Exhausted { kind, .. } => Some(*kind),
        }
    }

    /// Returns why it is not whole, or the reply after it.
    pub(crate) fn reason(&self) -> Option<&str> {
        match self {
            _ if self.may_lack_calls() => Some(CALLS_MAY_BE_MISSING),
            Self::Untouched | Self::Corrected { .. } => None,
            Self::Cut { reason, .. } | Self::Exhausted { reason, .. } => Some(reason),
            Self::Resumed { fault, .. } | Self::Whole { fault, .. } => fault.and_then(FormFault::reason),
        }
    }

    /// Returns its outcome as a sentence of the log.
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

    /// Returns the stop reason to report.
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

    /// Returns the calls made to resume it.
    pub(crate) fn attempts(&self) -> u32 {
        match self {
            Self::Untouched | Self::Whole { .. } | Self::Cut { .. } => 0,
            Self::Resumed { answered, .. }
            | Self::Corrected { answered, .. }
            | Self::Exhausted { answered, .. } => answered.attempts,
        }
    }

    /// Returns the other upstream that was asked for the rest, if any.
    pub(crate) fn upstream(&self) -> Option<&str> {
        match self {
            Self::Untouched | Self::Whole { .. } | Self::Cut { .. } => None,
            Self::Resumed { answered, .. }
            | Self::Corrected { answered, .. }
            | Self::Exhausted { answered, .. } => answered.upstream.as_deref(),
        }
    }

    /// Whether it is whole, but violates its schema or grammar.
    pub(crate) fn is_invalid(&self) -> bool {
        matches!(self, Self::Whole { fault: Some(_), .. } | Self::Resumed { fault: Some(_), .. })
    }

    /// Returns the bytes of the answers that are not in the text.
    pub(crate) fn left_out(&self) -> usize {
        if let Self::Resumed { left_out, .. } = self { *left_out } else { 0 }
    }

    /// Returns the text to deliver, if it differs from the received one.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Untouched | Self::Whole { .. } | Self::Cut { .. } => None,
            Self::Resumed { text, .. } | Self::Corrected { text, .. } => Some(text),
            Self::Exhausted { text, .. } => text.as_deref(),
        }
    }

    /// Returns what the client gets of it.
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
