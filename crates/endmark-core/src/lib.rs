//! The pure core of Endmark: every decision about cut replies, and no I/O.
//!
//! An *end mark* (∎) is the sign a printer sets where a text is complete. This crate decides whether a
//! text has one: it [detects](detect) a cut, builds the prompt that asks for the rest, [stitches](mod@stitch)
//! the answer to what is already there, [closes](complete()) what stays cut and marks what is unfinished in
//! it, and says so where that cannot be done with certainty.
//!
//! It knows no file, socket, clock, thread or async runtime. A state machine is fed what happened and
//! answers what to do next; the gateway and the command are thin drivers of the same machines.

mod complete;
mod correction;
pub mod detect;
mod ending;
pub mod failover;
pub mod findings;
mod format;
mod judge;
#[cfg(test)]
mod literal_names;
#[cfg(test)]
mod outcomes;
mod pipeline;
mod prompt;
mod resume;
pub mod stitch;
mod validate;
mod verdict;

pub use complete::{CompleteError, Completed, Unfinished, UnfinishedKind, complete};
pub use correction::{build_correction_prompt, extract_json};
pub use ending::{Ending, Stop};
pub use format::{Format, FormatError};
pub use judge::{CutKind, Evidence, Judgement, judge};
pub use pipeline::{
    CorrectionAsk, MAX_CORRECTION_ATTEMPTS, Pipeline, PipelineOutcome, PipelinePolicy, PipelineResult,
    PipelineStep,
};
pub use prompt::{
    INSTRUCTION_PLACEHOLDER, PromptTemplateError, TOKEN_PLACEHOLDER, build_resume_prompt,
    check_prompt_template,
};
pub use resume::{
    AskFailure, ExhaustedCause, Join, MAX_RESUME_ATTEMPTS, OnAmbiguous, PieceRecord, PieceRole,
    PromptedStream, Reply, Resume, ResumeAsk, ResumeExhausted, ResumeOutcome, ResumePolicy, ResumeStep,
    Shown, Strategies, StrategiesError, Strategy, Wanted, resume_if_truncated,
};
pub use stitch::{
    AskedFrom, MergeError, Merged, Outcome, Seam, SeamStyle, StitchError, Stitched, continue_message,
    continue_shown, merge_chunks, stitch,
};
pub use validate::{SchemaProblem, Validate};
pub use verdict::{Detection, Hint, InToken, Markup, Open, Truncation, Verdict};
