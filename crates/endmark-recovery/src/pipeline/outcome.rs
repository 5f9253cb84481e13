//! What a pipeline may do, what it answers, and how it ends (PC-6).

use crate::{CutKind, PieceRecord, ResumeAsk, ResumeExhausted, ResumePolicy, SchemaProblem, Seam};

/// How many corrections are asked for by default (PC-6).
pub const MAX_CORRECTION_ATTEMPTS: u32 = 1;

/// What a pipeline may do (PC-6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelinePolicy {
    /// What its first stage may do.
    pub resume: ResumePolicy,
    /// How many corrections are asked for at most; 0 where none is possible, as in a stream that the client
    /// has already.
    pub max_corrections: u32,
    /// Whether a correction may change or drop what was received complete, though the schema does not demand it.
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
    /// Nothing: this is how it ended.
    Done(PipelineOutcome),
}

/// One correction to ask for (PC-6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorrectionAsk {
    /// The how many-th correction this is, from 1.
    pub attempt: u32,
    /// What to ask: the problems in a stable order, and that the whole document is wanted.
    pub prompt: String,
    /// The text to show the model as its own reply.
    pub text: String,
}

/// How a reply ended after all stages (PC-6).
#[derive(Debug, Clone, PartialEq)]
pub struct PipelineOutcome {
    /// What to hand over: the whole text, or the true beginning of one that stayed cut.
    pub text: String,
    /// What it is.
    pub result: PipelineResult,
    /// How many continuations were asked for.
    pub attempts: u32,
    /// How many corrections were asked for.
    pub corrections: u32,
    /// What kind of cut the first reply had.
    pub cut: Option<CutKind>,
    /// The text was dropped or stopped by its limit, and is whole all the same (PC-8).
    pub disclosed: bool,
    /// The seams of the resume, first to last.
    pub seams: Vec<Seam>,
    /// What validation found wrong with the text that is handed over; for a corrected one, with the text that
    /// was corrected.
    pub problems: Vec<SchemaProblem>,
    /// Every call, in order, for the log.
    pub pieces: Vec<PieceRecord>,
}

/// What a text that leaves the pipeline is (PC-6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PipelineResult {
    /// Whole as it came.
    Whole,
    /// Whole after a resume.
    Resumed,
    /// Whole and valid: the reply was generated again, and replaced a cut text.
    Restarted {
        /// How many characters the cut text had.
        replaced_chars: usize,
    },
    /// Whole and valid after a correction.
    Corrected,
    /// Whole, but not valid, and not corrected: the text is the original one.
    Invalid,
    /// Not whole: the text is the true beginning.
    Exhausted(ResumeExhausted),
    /// Refused, filtered or paused by the provider: the text is the first reply as it is.
    Passed,
}

impl PipelineResult {
    /// The literal name, as in the log.
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
