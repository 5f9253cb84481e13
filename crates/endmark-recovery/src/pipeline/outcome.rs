//! The policy, the steps and the outcome of a pipeline (PC-6).

use crate::{CutKind, PieceRecord, ResumeAsk, ResumeExhausted, ResumePolicy, SchemaProblem, Seam};

/// Corrections that are requested by default (PC-6).
pub const MAX_CORRECTION_ATTEMPTS: u32 = 1;

/// The policy of a pipeline (PC-6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelinePolicy {
    /// The policy of its first stage.
    pub resume: ResumePolicy,
    /// Maximum number of corrections. It is 0 if no correction is possible, as in a stream that the client has
    /// already received.
    pub max_corrections: u32,
    /// Whether a correction may change or drop complete received values although the schema does not require it.
    pub may_change: bool,
}

impl Default for PipelinePolicy {
    fn default() -> Self {
        Self { resume: ResumePolicy::default(), max_corrections: MAX_CORRECTION_ATTEMPTS, may_change: false }
    }
}

/// The next step of the driver.
#[derive(Debug, Clone, PartialEq)]
pub enum PipelineStep {
    /// Ask the model for the rest.
    Resume(ResumeAsk),
    /// Ask the model for a corrected document.
    Correct(CorrectionAsk),
    /// The pipeline is done, with this outcome.
    Done(PipelineOutcome),
}

/// One correction to request (PC-6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorrectionAsk {
    /// The number of this correction, from 1.
    pub attempt: u32,
    /// The prompt: the problems in a stable order, and a request for the whole document.
    pub prompt: String,
    /// The text to show the model as its own reply.
    pub text: String,
}

/// How a reply ended after all stages (PC-6).
#[derive(Debug, Clone, PartialEq)]
pub struct PipelineOutcome {
    /// The text to deliver: the whole text, or the verified beginning of a text that stayed cut.
    pub text: String,
    /// The kind of the text.
    pub result: PipelineResult,
    /// Requested continuations.
    pub attempts: u32,
    /// Requested corrections.
    pub corrections: u32,
    /// The kind of cut of the first reply.
    pub cut: Option<CutKind>,
    /// Whether the text is whole although its stream broke or reached the limit (PC-8).
    pub disclosed: bool,
    /// The seams of the resume, in order.
    pub seams: Vec<Seam>,
    /// The problems that validation found in the delivered text, or in the text before a correction.
    pub problems: Vec<SchemaProblem>,
    /// All calls in order, for the log.
    pub pieces: Vec<PieceRecord>,
}

/// The kind of a text that leaves the pipeline (PC-6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PipelineResult {
    /// The text was whole as received.
    Whole,
    /// The text is whole after a resume.
    Resumed,
    /// A regenerated reply, which is whole and valid, replaced the cut text.
    Restarted {
        /// The length of the cut text in characters.
        replaced_chars: usize,
    },
    /// The text is whole and valid after a correction.
    Corrected,
    /// The text is whole but invalid, and could not be corrected. It is the original text.
    Invalid,
    /// The text is not whole. It is the verified beginning.
    Exhausted(ResumeExhausted),
    /// The provider refused, filtered or paused the reply. The text is the first reply, unchanged.
    Passed,
}

impl PipelineResult {
    /// Returns the literal name, as in the log.
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
