//! The policy, the steps and the outcome of a pipeline (PC-6).

use crate::{CutKind, PieceRecord, ResumeAsk, ResumeExhausted, ResumePolicy, SchemaProblem, Seam};

/// Default maximum number of corrections (PC-6).
pub const DEFAULT_MAX_CORRECTIONS: u32 = 1;

/// The policy of a pipeline (PC-6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelinePolicy {
    /// The policy of the resume.
    pub resume: ResumePolicy,
    /// Maximum number of corrections. Set it to 0 if no correction is possible, as in a stream that the
    /// client has already received.
    pub max_corrections: u32,
    /// Whether a correction may change or drop complete received values although the schema does not require
    /// this.
    pub may_change: bool,
}

impl Default for PipelinePolicy {
    fn default() -> Self {
        Self { resume: ResumePolicy::default(), max_corrections: DEFAULT_MAX_CORRECTIONS, may_change: false }
    }
}

/// The next step for the driver.
#[derive(Debug, Clone, PartialEq)]
pub enum PipelineStep {
    /// Ask the model for the rest.
    Resume(ResumeAsk),
    /// Ask the model for a corrected document.
    Correct(CorrectionRequest),
    /// The pipeline has ended with this outcome.
    Done(PipelineOutcome),
}

/// A correction to request (PC-6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorrectionRequest {
    /// The number of this correction, from 1.
    pub attempt: u32,
    /// The prompt. It lists the problems in a stable order, and requests the whole document.
    pub prompt: String,
    /// The text to present to the model as its own reply.
    pub text: String,
}

/// The outcome of a reply after all stages (PC-6).
#[derive(Debug, Clone, PartialEq)]
pub struct PipelineOutcome {
    /// The text to deliver: the whole text, or the verified beginning of a text that remained cut.
    pub text: String,
    /// The kind of the text.
    pub result: PipelineResult,
    /// Number of requested continuations.
    pub attempts: u32,
    /// Number of requested corrections.
    pub corrections: u32,
    /// The kind of cut of the first reply, if it was cut.
    pub cut: Option<CutKind>,
    /// Whether the text is whole although its stream broke or reached the limit (PC-8).
    pub disclosed: bool,
    /// The seams in the text, in order.
    pub seams: Vec<Seam>,
    /// The problems that validation found in the delivered text, or in the text before a correction.
    pub problems: Vec<SchemaProblem>,
    /// All calls in order, for the log.
    pub pieces: Vec<PieceRecord>,
}

/// What the pipeline did to the text (PC-6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PipelineResult {
    /// The text was whole as received.
    Whole,
    /// The text is whole after a resume.
    Resumed,
    /// A regenerated reply, whole and valid, replaced the cut text.
    Restarted {
        /// Length of the replaced text in characters.
        replaced_chars: usize,
    },
    /// The text is whole and valid after a correction.
    Corrected,
    /// The original text is delivered. It is whole but invalid, and could not be corrected.
    Invalid,
    /// The text is still cut. Its verified beginning is delivered.
    Exhausted(ResumeExhausted),
    /// The provider refused, filtered or paused the reply. The first reply is delivered unchanged.
    Passed,
}

impl PipelineResult {
    /// Returns the name that the log uses.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Resumed => "resumed",
            Self::Restarted { .. } => "restarted",
            Self::Corrected => "corrected",
            Self::Invalid => "invalid",
            Self::Exhausted(_) => "exhausted",
            Self::Passed => "passed",
        }
    }
}
