#![doc = include_str!("../README.md")]

mod checked;
mod control;
mod expected;
mod finding;
mod fit;
mod form;
mod join;
mod location;
mod loss;
mod merge;
mod named_run;
mod placeholder;
mod plan;
mod progress;
mod protocol;
mod read;
mod recovery;
mod report;
mod team;
#[cfg(test)]
mod tests;
mod transcript;
mod unknown_fields;
mod vocabulary;
mod write;

pub use checked::{CheckedFinding, CheckedResult};
pub use expected::{Basis, Expected};
pub use finding::{Cwe, Evidence, Field, Finding, FindingId, OtherField, Severity};
pub use fit::{
    DroppedParts, FittedResults, MeasuredReceipt, Receipt, RewriteRefusal, SHARE_PERCENT, TOKENS_PER_FINDING,
    TOKENS_PER_RESULT, compress, estimate_tokens, exceeds_budget_share, fit,
};
pub use form::{FindingForm, ResultForm};
pub use location::{FileLines, LineRange, Location};
pub use merge::{DeliveredResult, MergedFinding, MergedResults, Team};
pub use plan::{AgentPlan, PastRunPlan, Plan};
pub use progress::{CHECKPOINT_TURNS, MissingCheckpoints, missing_checkpoints};
pub use protocol::{Protocol, ProtocolFormat};
pub use read::read;
pub use recovery::{
    Assignment, MAX_FINDINGS_OF_RETRY, PastRun, Recovery, RecoveryPolicy, RecoveryState, Run, RunKind,
    UNNAMED_DIMENSIONS,
};
pub use report::{
    AgentDisclosure, DimensionCoverage, Disclosure, FinalReport, ReportedFinding, ReportedPlace,
    RunDisclosure, Unrecovered,
};
pub use transcript::{
    AgentResult, Checkpoint, Cut, FindingState, Position, ReadFinding, Remark, RemarkKind, Transcript,
};
pub use write::WriteParameters;
