//! The outcome of one part of a reply.

use bytes::Bytes;
use endmark_recovery::{CONTROL_CHARACTERS, CutKind};

use super::bound::RecoveryBound;
use super::suspect::LaterCalls;
use crate::reply::Outcome;

/// The stop reason to report for a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReportedFinish {
    /// The provider's own stop reason.
    Unchanged,
    /// A normal end.
    Normal,
    /// A cut, in the terms of the protocol.
    Cut,
}

/// A format error in a part that is not cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FormatFault {
    /// The part violates its schema.
    Schema,
    /// The part is valid only if raw control characters in JSON strings are accepted.
    ControlCharacters,
    /// The part violates the required grammar.
    Malformed,
}

impl FormatFault {
    /// Returns the reason to disclose. A schema violation has a field of its own.
    fn reason(self) -> Option<&'static str> {
        match self {
            Self::Schema => None,
            Self::ControlCharacters => Some(CONTROL_CHARACTERS),
            Self::Malformed => Some(MALFORMED),
        }
    }
}

/// The reason for a part that still violates the required grammar after all continuations.
pub(crate) const MALFORMED: &str = "malformed";

/// The reason for a reply that was cut where further tool calls may be missing.
pub(crate) const CALLS_MAY_BE_MISSING: &str = "calls_may_be_missing";

/// A part of a reply after recovery.
#[derive(Debug)]
pub(crate) enum MendedPart {
    /// The part needed no recovery.
    Untouched,
    /// The part was whole as received, but there is something to disclose.
    Whole {
        finish: ReportedFinish,
        /// How the reply was cut after this part, if further tool calls may be missing.
        cut_after: Option<CutKind>,
        fault: Option<FormatFault>,
    },
    /// The rest was received and joined.
    Resumed {
        kind: CutKind,
        text: String,
        answered: RestResult,
        whole: CompletingResponse,
        finish: ReportedFinish,
        fault: Option<FormatFault>,
        /// Number of received bytes that are not in the text: repetitions, and remarks about the text.
        omitted_bytes: usize,
        /// The length of the cut text in characters, if the reply was regenerated.
        replaced_chars: Option<usize>,
    },
    /// The format was corrected.
    Corrected {
        /// How this part or the reply after it was cut.
        kind: Option<CutKind>,
        text: String,
        finish: ReportedFinish,
        answered: RestResult,
        whole: CompletingResponse,
    },
    /// The part is cut, and the rest was not requested.
    Cut { kind: CutKind, reason: String, finish: ReportedFinish },
    /// The part is cut, and requesting the rest failed.
    Exhausted {
        kind: CutKind,
        reason: String,
        finish: ReportedFinish,
        /// The text to deliver, if it differs from the received text.
        text: Option<String>,
        answered: RestResult,
    },
}

/// The result of requesting the rest of a cut part.
#[derive(Debug, Default)]
pub(crate) struct RestResult {
    /// Number of calls made to resume the part.
    pub(crate) attempts: u32,
    /// The other upstream that was called, if any.
    pub(crate) upstream: Option<String>,
    /// Tool calls that the response contained instead of the rest of the text, or after it.
    pub(crate) later_calls: Option<LaterCalls>,
    /// The provider's signature for the rest of the text, or for a repeated tool call.
    pub(crate) signature: Option<String>,
    /// The bound that ended the recovery, if any.
    pub(crate) bound: Option<RecoveryBound>,
    /// Whether the part is a tool call and further tool calls may be missing after it. It is false if a
    /// response shows that the model wanted no more.
    pub(crate) may_lack_calls: bool,
}

/// The content of a response that completes a part.
#[derive(Debug, Default)]
pub(crate) struct CompletingResponse {
    /// The client's stop sequence that ended the text.
    pub(crate) sequence: Option<String>,
    /// The raw reply that replaces a reply without text.
    pub(crate) replacement_body: Option<Bytes>,
}

/// The part as delivered to the client.
#[derive(Debug, Default)]
pub(crate) struct DeliveredPart {
    /// The text, if it differs from the received text.
    pub(crate) text: Option<String>,
    pub(crate) following: Option<LaterCalls>,
    pub(crate) signature: Option<String>,
    pub(crate) whole: CompletingResponse,
}

impl MendedPart {
    /// Returns the outcome, or `None` if the part needed no recovery.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        match self {
            Self::Untouched => None,
            Self::Resumed { replaced_chars: Some(_), .. } => Some(Outcome::Restarted),
            Self::Resumed { .. } => Some(Outcome::Resumed),
            Self::Corrected { .. } => Some(Outcome::Corrected),
            // A text that violates the required grammar is as useless as a cut text.
            Self::Whole { fault: Some(FormatFault::Malformed), .. }
            | Self::Whole { cut_after: Some(_), .. }
            | Self::Cut { .. } => Some(Outcome::Cut),
            Self::Whole { .. } => Some(Outcome::Whole),
            Self::Exhausted { .. } => Some(Outcome::Exhausted),
        }
    }

    /// Whether the client gets the complete part, even if tool calls after it may be missing.
    pub(crate) fn is_delivered_whole(&self) -> bool {
        matches!(self, Self::Whole { .. } | Self::Resumed { .. } | Self::Corrected { .. })
    }

    /// Whether the client gets a cut part.
    pub(crate) fn is_delivered_cut(&self) -> bool {
        matches!(self, Self::Cut { .. } | Self::Exhausted { .. })
    }

    /// Whether the part is a complete tool call, but further tool calls may be missing after it.
    pub(crate) fn may_lack_calls(&self) -> bool {
        match self {
            Self::Untouched | Self::Cut { .. } | Self::Exhausted { .. } => false,
            Self::Whole { cut_after, .. } => cut_after.is_some(),
            Self::Resumed { answered, .. } | Self::Corrected { answered, .. } => answered.may_lack_calls,
        }
    }

    /// Whether requesting the rest failed, or tool calls may be missing.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.may_lack_calls() || matches!(self, Self::Exhausted { .. })
    }

    /// Whether a cost bound ended the recovery.
    pub(crate) fn is_bounded(&self) -> bool {
        matches!(self, Self::Exhausted { answered, .. } if answered.bound.is_some())
    }

    /// Returns how this part or the reply after it was cut.
    pub(crate) fn kind(&self) -> Option<CutKind> {
        match self {
            Self::Untouched => None,
            Self::Whole { fault: Some(FormatFault::Malformed), .. } => Some(CutKind::Format),
            Self::Whole { cut_after: kind, .. } | Self::Corrected { kind, .. } => *kind,
            Self::Resumed { kind, .. } | Self::Cut { kind, .. } | Self::Exhausted { kind, .. } => Some(*kind),
        }
    }

    /// Returns why this part or the reply after it is not whole.
    pub(crate) fn reason(&self) -> Option<&str> {
        match self {
            _ if self.may_lack_calls() => Some(CALLS_MAY_BE_MISSING),
            Self::Untouched | Self::Corrected { .. } => None,
            Self::Cut { reason, .. } | Self::Exhausted { reason, .. } => Some(reason),
            Self::Resumed { fault, .. } | Self::Whole { fault, .. } => fault.and_then(FormatFault::reason),
        }
    }

    /// Describes the outcome in a sentence for the log.
    pub(crate) fn log_message(&self) -> String {
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
    pub(crate) fn finish(&self) -> ReportedFinish {
        match self {
            Self::Untouched => ReportedFinish::Unchanged,
            Self::Whole { finish, .. }
            | Self::Resumed { finish, .. }
            | Self::Corrected { finish, .. }
            | Self::Cut { finish, .. }
            | Self::Exhausted { finish, .. } => *finish,
        }
    }

    /// Returns the number of calls made to resume the part.
    pub(crate) fn attempts(&self) -> u32 {
        match self {
            Self::Untouched | Self::Whole { .. } | Self::Cut { .. } => 0,
            Self::Resumed { answered, .. }
            | Self::Corrected { answered, .. }
            | Self::Exhausted { answered, .. } => answered.attempts,
        }
    }

    /// Returns the other upstream from which the rest was requested, if any.
    pub(crate) fn upstream(&self) -> Option<&str> {
        match self {
            Self::Untouched | Self::Whole { .. } | Self::Cut { .. } => None,
            Self::Resumed { answered, .. }
            | Self::Corrected { answered, .. }
            | Self::Exhausted { answered, .. } => answered.upstream.as_deref(),
        }
    }

    /// Whether the part is whole but violates its schema or grammar.
    pub(crate) fn is_invalid(&self) -> bool {
        matches!(self, Self::Whole { fault: Some(_), .. } | Self::Resumed { fault: Some(_), .. })
    }

    /// Returns the number of received bytes that are not in the text.
    pub(crate) fn dropped_bytes(&self) -> usize {
        if let Self::Resumed { omitted_bytes: left_out, .. } = self { *left_out } else { 0 }
    }

    /// Returns the text to deliver, if it differs from the received text.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Untouched | Self::Whole { .. } | Self::Cut { .. } => None,
            Self::Resumed { text, .. } | Self::Corrected { text, .. } => Some(text),
            Self::Exhausted { text, .. } => text.as_deref(),
        }
    }

    /// Returns the part as delivered to the client.
    pub(crate) fn into_delivered(self) -> DeliveredPart {
        let (text, answered, whole) = match self {
            Self::Untouched | Self::Whole { .. } | Self::Cut { .. } => return DeliveredPart::default(),
            Self::Resumed { text, answered, whole, .. } | Self::Corrected { text, answered, whole, .. } => {
                (Some(text), answered, whole)
            }
            Self::Exhausted { text, answered, .. } => (text, answered, CompletingResponse::default()),
        };
        DeliveredPart { text, following: answered.later_calls, signature: answered.signature, whole }
    }
}
