#![doc = include_str!("../README.md")]

mod correction;
mod ending;
pub mod failover;
mod judge;
mod looping;
mod pipeline;
mod prompt;
pub mod resume;
pub mod stitch;
#[cfg(test)]
mod tests;
mod validate;

pub use correction::{build_correction_prompt, extract_json};
pub use ending::{Ending, Stop};
pub use judge::{CutKind, Evidence, Judgement, judge};
pub use looping::{LoopDetector, ends_in_a_loop};
pub use pipeline::{
    CONTROL_CHARACTERS, CorrectionRequest, DEFAULT_MAX_CORRECTIONS, Pipeline, PipelineOutcome,
    PipelinePolicy, PipelineResult, PipelineStep,
};
pub use prompt::{
    INSTRUCTION_PLACEHOLDER, PromptTemplateError, TOKEN_PLACEHOLDER, build_resume_prompt,
    check_prompt_template,
};
pub use resume::{
    AskFailure, ExhaustedCause, Join, MAX_RESUME_ATTEMPTS, OnAmbiguous, PieceRecord, PieceRole,
    PromptExcerpt, PromptedStream, Reply, RequestedReply, Restart, Resume, ResumeAsk, ResumeError,
    ResumeExhausted, ResumeOutcome, ResumePolicy, ResumeStep, Strategies, StrategiesError, Strategy,
    resume_if_truncated, resume_if_truncated_async,
};
pub use stitch::{
    AskedFrom, MergeError, Merged, Outcome, ReasoningSigns, Seam, SeamStyle, StitchError, Stitched,
    continue_message, continue_shown, merge_chunks, stitch,
};
pub use validate::{SchemaProblem, Validate};
