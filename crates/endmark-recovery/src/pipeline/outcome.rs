//! The policy, the steps and the outcome of a pipeline (PC-6).

use crate::{CutKind, PieceRecord, ResumeAsk, ResumeExhausted, ResumePolicy, SchemaProblem, Seam};

/// Corrections that are requested by default (PC-6).
pub const MAX_CORRECTION_ATTEMPTS: u32 = 1;

/// The policy of a pipeline (PC-6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelinePolicy {
    /// The policy of its first stage.
    pub resume: ResumePolicy,
    /// The most corrections that are requested. Use 0 if none is possible, as in a stream that the client already
    /// has.
    pub max_corrections: u32,
    /// Whether a correction may change or drop what was received complete, although the schema does not require it.
    pub may_change: bool,
}

impl Default for PipelinePolicy {
    fn default() -> Self {
        Self { resume: ResumePolicy::default(), max_corrections: MAX_CORRECTION_ATTEMPTS, may_change: false }
    }
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum PipelineStep {
    /// Ask the model for the rest.
    Resume(ResumeAsk),
    /// Ask the model for a corrected document.
    Correct(CorrectionAsk),
    /// Nothing. This is how it ended.
    Done(PipelineOutcome),
}

/// One correction to request (PC-6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorrectionAsk {
    /// The number of this correction, from 1.
    pub attempt: u32,
    /// The prompt: the problems in a stable order, and the demand for the whole document.
    pub prompt: String,
    /// The text to show the model as its own reply.
    pub text: String,
}

/// How a reply ended after all stages (PC-6).
#[derive(Debug, Clone, PartialEq)]
pub struct PipelineOutcome {
    /// What to deliver: the whole text, or the verified beginning of one that stayed cut.
    pub text: String,
    /// The kind of the text.
    pub result: PipelineResult,
    /// Requested continuations.
    pub attempts: u32,
    /// Requested corrections.
    pub corrections: u32,
    /// The kind of cut of the first reply.
    pub cut: Option<CutKind>,
    /// Whether the text was dropped or stopped by its limit, although it is whole (PC-8).
    pub disclosed: bool,
    /// The seams of the resume, in order.
    pub seams: Vec<Seam>,
    /// The problems that validation found in the delivered text, or, for a corrected one, in the text before the
    /// correction.
    pub problems: Vec<SchemaProblem>,
    /// Every call, in order, for the log.
    pub pieces: Vec<PieceRecord>,
}

/// The kind of a text that leaves the pipeline (PC-6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PipelineResult {
    /// Whole as received.
    Whole,
    /// Whole after a resume.
    Resumed,
    /// Whole and valid: a regenerated reply replaced the cut text.
    Restarted {
        /// The length of the cut text in characters.
        replaced_chars: usize,
    },
    /// Whole and valid after a correction.
    Corrected,
    /// Whole, but neither valid nor corrected: the text is the original one.
    Invalid,
    /// Not whole: the text is the verified beginning.
    Exhausted(ResumeExhausted),
    /// Refused, filtered or paused by the provider: the text is the first reply, unchanged.
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
