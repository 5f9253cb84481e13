//! Converts the outcome of a resume to a `Result` (PC-5).

use super::step::{ResumeExhausted, ResumeOutcome};

/// Why there is no whole text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResumeError {
    /// The provider refused, filtered or paused the reply. The first reply is to be forwarded unchanged.
    #[error("the provider refused, filtered or paused the reply, which is passed on unchanged")]
    Passed,
    /// The reply remained cut. The value contains all received text, and the length of its verified
    /// beginning.
    #[error("the reply stays cut: {0}")]
    Exhausted(ResumeExhausted),
}

impl ResumeOutcome {
    /// Returns the whole text, or an error with the reason why it is missing.
    ///
    /// ```
    /// use endmark_recovery::{AskFailure, Reply, ResumeError, ResumePolicy, Stop, resume_if_truncated};
    ///
    /// let first = Reply::with_stop("The quick brown fox ju", Stop::Limit);
    /// let outcome = resume_if_truncated(ResumePolicy::default(), None, first, |_ask| {
    ///     Err(AskFailure::Budget("two cents a reply".to_owned()))
    /// });
    /// let Err(ResumeError::Exhausted(cut)) = outcome.into_text() else { panic!("whole") };
    /// assert_eq!(&cut.merged_raw[..cut.verified_len], "The quick brown fox ju");
    /// ```
    pub fn into_text(self) -> Result<String, ResumeError> {
        match self {
            Self::Whole { text, .. } => Ok(text),
            Self::Passed => Err(ResumeError::Passed),
            Self::Exhausted(exhausted) => Err(ResumeError::Exhausted(exhausted)),
        }
    }
}
