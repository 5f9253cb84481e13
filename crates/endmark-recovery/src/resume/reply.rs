//! What a driver feeds to the machines: replies as they were received, and calls that failed.

use endmark_text::Verdict;

use crate::judge::is_at_limit;
use crate::{AskedFrom, Ending, Evidence, Stop};

/// One reply, or one continuation, as the driver received it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The text, or the arguments of the tool call.
    pub text: String,
    /// How the stream ended.
    pub ending: Ending,
    /// Why the provider says it stopped; none if it said nothing.
    pub stop: Option<Stop>,
    /// Output tokens, as the provider counted them.
    pub output_tokens: Option<u64>,
    /// The limit of output tokens that was sent upstream.
    pub limit: Option<u64>,
    /// Whether the model reasoned.
    pub reasoned: bool,
}

impl Reply {
    /// A reply that ended with the protocol's own end; nothing is known of its tokens.
    pub fn stopped(text: impl Into<String>, stop: Stop) -> Self {
        Self {
            text: text.into(),
            ending: Ending::Clean,
            stop: Some(stop),
            output_tokens: None,
            limit: None,
            reasoned: false,
        }
    }

    /// A reply whose stream ended in another way, before the provider said why it stopped.
    pub fn broken(text: impl Into<String>, ending: Ending) -> Self {
        Self { text: text.into(), ending, stop: None, output_tokens: None, limit: None, reasoned: false }
    }

    /// Whether it reached its limit: as the provider says, or as its tokens count where it says that it stopped normally.
    ///
    /// ```
    /// use endmark_recovery::{Reply, Stop};
    ///
    /// let counted = Reply { output_tokens: Some(20), ..Reply::stopped("{}", Stop::Normal) };
    /// assert!(!counted.is_at_limit());
    /// assert!(Reply { limit: Some(20), ..counted }.is_at_limit());
    /// ```
    pub fn is_at_limit(&self) -> bool {
        is_at_limit(&self.evidence(None, false))
    }

    /// What this reply is judged by, with the verdict of the demanded grammar, if one is demanded (PC-8).
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

/// How a continuation is joined to what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Join {
    /// As it is: the server is proven to go on with the very message, and its echo is already stripped.
    /// Only the grammar is checked.
    Exact,
    /// At a seam that has to be found (PC-4).
    Stitched(AskedFrom),
    /// The answer to the prompt of the [`ResumeAsk`](crate::ResumeAsk), which was shown together with what that says: joined
    /// where it proves to go on (PC-4).
    Prompted,
    /// At a seam that has to be found, in an unfinished message that the server was shown, without a word of what to do with it: that it goes on
    /// with it, its answer shows.
    Shown,
    /// The same where the server is known to go on with the very message.
    InMessage,
}

impl Join {
    /// The literal name, as in the log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Stitched(_) | Self::Prompted | Self::Shown | Self::InMessage => "stitched",
        }
    }
}

/// Why a call brought no reply at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskFailure {
    /// It was refused before anything was generated: the driver asks again in another way, and the call is
    /// no attempt.
    #[error("the request was refused: {0}")]
    Rejected(String),
    /// The upstream is gone; the call was an attempt.
    #[error("no answer came: {0}")]
    Lost(String),
    /// What came is none of the reply's, and was an attempt: the driver asks again in another way.
    #[error("what came does not go on from there: {0}")]
    Unfit(String),
    /// What came holds what no text can be joined with, and was an attempt: asked again the same would come, so nothing
    /// more is asked.
    #[error("what came cannot be joined: {0}")]
    Unusable(String),
    /// The server refused the request for what it is, however it is asked: nothing more is asked.
    #[error("the request was refused for good: {0}")]
    Final(String),
    /// A budget does not allow the call: it is not made, and nothing more is asked.
    #[error("no budget is left: {0}")]
    Budget(String),
}

impl AskFailure {
    /// Whether the call was an attempt: it was made, and may have been worked on.
    pub(crate) fn is_attempt(&self) -> bool {
        match self {
            Self::Lost(_) | Self::Unfit(_) | Self::Unusable(_) => true,
            Self::Rejected(_) | Self::Final(_) | Self::Budget(_) => false,
        }
    }
}
