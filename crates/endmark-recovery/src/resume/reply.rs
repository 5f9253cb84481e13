//! The input of the state machines: replies as received, and failed calls.

use endmark_text::Verdict;

use crate::judge::is_at_limit;
use crate::{AskedFrom, Ending, Evidence, Stop};

/// One reply or continuation as the driver received it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The text, or the arguments of the tool call.
    pub text: String,
    /// How the stream ended.
    pub ending: Ending,
    /// The provider's reason for stopping, if any.
    pub stop: Option<Stop>,
    /// Output tokens, as the provider counted them.
    pub output_tokens: Option<u64>,
    /// The limit of output tokens that was sent upstream.
    pub limit: Option<u64>,
    /// Whether the model reasoned.
    pub reasoned: bool,
}

impl Reply {
    /// Makes a reply that ended normally by its protocol, with unknown token counts.
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

    /// Creates a reply whose stream ended in another way, before the provider reported a stop reason.
    pub fn broken_off(text: impl Into<String>, ending: Ending) -> Self {
        Self { text: text.into(), ending, stop: None, output_tokens: None, limit: None, reasoned: false }
    }

    /// Whether the reply reached its limit, according to the provider, or by its token count after a normal stop.
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

    /// Returns the evidence for judging this reply, with the verdict of the required grammar, if any (PC-8).
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

/// How a continuation is joined to the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Join {
    /// Unchanged. The server certainly continues the same message, and its echo is already removed. Only the grammar
    /// is checked.
    Exact,
    /// At a seam that must be found (PC-4).
    Stitched(AskedFrom),
    /// At the position where the answer provably continues (PC-4). It answers the prompt of the
    /// [`ResumeAsk`](crate::ResumeAsk), with the text that the prompt showed.
    Prompted,
    /// At a seam that must be found. The server received an unfinished message without an instruction, and only its
    /// answer shows whether it continues that message.
    Shown,
    /// Does the same as `Shown`, for a server that is known to continue the same message.
    InMessage,
}

impl Join {
    /// Returns the literal name, as in the log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Stitched(_) | Self::Prompted | Self::Shown | Self::InMessage => "stitched",
        }
    }
}

/// The reason why a call returned no reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskFailure {
    /// The call was rejected before anything was generated. It does not count as an attempt, and the driver asks in
    /// another way.
    #[error("the request was refused: {0}")]
    Rejected(String),
    /// The upstream failed. The call counts as an attempt.
    #[error("no answer arrived: {0}")]
    Lost(String),
    /// The answer was not a reply. The call counts as an attempt, and the driver asks in another way.
    #[error("the answer does not continue the text: {0}")]
    Unfit(String),
    /// The answer contains content that cannot be joined with text. The call counts as an attempt, and no further
    /// request is made, because it would be answered in the same way.
    #[error("the answer cannot be joined: {0}")]
    Unusable(String),
    /// The server rejects all forms of the request. No further request is made.
    #[error("the request was refused permanently: {0}")]
    Final(String),
    /// A budget does not permit the call. The call is not made, and no further request is made.
    #[error("no budget is left: {0}")]
    Budget(String),
}

impl AskFailure {
    /// Whether the call counts as an attempt, because it was made and may have been processed.
    pub(crate) fn is_attempt(&self) -> bool {
        match self {
            Self::Lost(_) | Self::Unfit(_) | Self::Unusable(_) => true,
            Self::Rejected(_) | Self::Final(_) | Self::Budget(_) => false,
        }
    }
}
