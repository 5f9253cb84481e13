//! Takes a reply through its stages: truncation resume, schema validation, formatting correction (PC-6).

mod outcome;

pub use outcome::{
    CorrectionAsk, MAX_CORRECTION_ATTEMPTS, PipelineOutcome, PipelinePolicy, PipelineResult, PipelineStep,
};
