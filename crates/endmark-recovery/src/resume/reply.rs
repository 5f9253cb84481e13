//! The input of the state machines: received replies and failed calls.

use endmark_text::Verdict;

use crate::judge::is_at_limit;
use crate::{AskedFrom, Ending, Evidence, Stop};

/// A reply or continuation, as the driver received it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The text, or the arguments of a tool call.
    pub text: String,
    /// How the stream ended.
    pub ending: Ending,
    /// The provider's reason for stopping, or `None` if it reported none.
    pub stop: Option<Stop>,
    /// Number of output tokens, as counted by the provider.
    pub output_tokens: Option<u64>,
    /// The limit of output tokens in the upstream request.
    pub limit: Option<u64>,
    /// Whether the reply contains reasoning.
    pub reasoned: bool,
}

impl Reply {
    /// Creates a reply with a clean end and unknown token counts.
    pub fn with_stop(text: impl Into<String>, stop: Stop) -> Self {
        Self {
            text: text.into(),
            ending: Ending::Clean,
            stop: Some(stop),
            output_tokens: None,
            limit: None,
            reasoned: false,
        }
    }

    /// Creates a reply that ended like this before the provider reported a stop reason.
    pub fn broken_off(text: impl Into<String>, ending: Ending) -> Self {
        Self { text: text.into(), ending, stop: None, output_tokens: None, limit: None, reasoned: false }
    }

    /// Whether the reply reached its limit, according to the provider, or according to the token count after
    /// a normal stop.
    ///
    /// ```
    /// use endmark_recovery::{Reply, Stop};
    ///
    /// let counted = Reply { output_tokens: Some(20), ..Reply::with_stop("{}", Stop::Normal) };
    /// assert!(!counted.is_at_limit());
    /// assert!(Reply { limit: Some(20), ..counted }.is_at_limit());
    /// ```
    pub fn is_at_limit(&self) -> bool {
        is_at_limit(&self.evidence(None, false))
    }

    /// Returns the evidence for judging this reply (PC-8). `grammar` is the verdict of the required format,
    /// if any, and `marker` is whether that format is an end marker.
    pub(crate) fn evidence<'a>(&self, grammar: Option<&'a Verdict>, marker: bool) -> Evidence<'a> {
        Evidence {
            ending: self.ending,
            stop: self.stop,
            grammar,
            marker,
            output_tokens: self.output_tokens,
            limit: self.limit,
            has_text: !self.text.trim().is_empty(),
            reasoned: self.reasoned,
        }
    }
}

/// How to join a continuation to the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Join {
    /// Append it. The server certainly continues the same message, and any repeated part is already removed.
    /// Only the grammar is checked.
    Exact,
    /// Find the seam (PC-4).
    Stitched(AskedFrom),
    /// Find where the answer provably continues the text (PC-4). It is the answer to the prompt of the
    /// [`ResumeAsk`](crate::ResumeAsk).
    Prompted,
    /// Find the seam. The server received an unfinished message without an instruction, and only its answer
    /// shows whether it continues that message.
    Shown,
    /// Like `Shown`, but the server is known to continue the same message.
    InMessage,
}

impl Join {
    /// Returns the name that the log uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Stitched(_) | Self::Prompted | Self::Shown | Self::InMessage => "stitched",
        }
    }
}

/// Why a call returned no reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskFailure {
    /// The call was rejected before any text was generated. It does not count as an attempt. The driver tries
    /// another form of the request.
    #[error("the request was refused: {0}")]
    Rejected(String),
    /// The upstream failed. The call counts as an attempt.
    #[error("no answer arrived: {0}")]
    Lost(String),
    /// The answer was not a reply. The call counts as an attempt. The driver tries another form of the
    /// request.
    #[error("the answer does not continue the text: {0}")]
    Unfit(String),
    /// The answer contains content that cannot be joined with text. The call counts as an attempt. No further
    /// request is made, because the model would answer in the same way.
    #[error("the answer cannot be joined: {0}")]
    Unusable(String),
    /// The server rejects every form of the request. No further request is made.
    #[error("the request was refused permanently: {0}")]
    Final(String),
    /// A budget does not permit the call. It is not made, and no further request is made.
    #[error("no budget is left: {0}")]
    Budget(String),
}

impl AskFailure {
    /// Whether the call counts as an attempt, because it was made and the upstream may have processed it.
    pub(crate) fn is_attempt(&self) -> bool {
        match self {
            Self::Lost(_) | Self::Unfit(_) | Self::Unusable(_) => true,
            Self::Rejected(_) | Self::Final(_) | Self::Budget(_) => false,
        }
    }
}
