#![doc = include_str!("../README.md")]

mod artifact;
mod checks;
mod criteria;
mod finding;
mod guard;
mod outcome;
mod phrases;
mod render;
mod retry_prompt;
mod run;
mod streams;
mod usage;

pub use artifact::{Artifact, ArtifactKind};
pub use checks::mid_sentence::stops_in_mid_sentence;
pub use criteria::{Criteria, CriteriaError, Template};
pub use finding::{Assessment, Check, Finding, Verdict};
pub use guard::Guard;
pub use outcome::{AttemptFacts, AttemptVerdict, Ceiling, Decision, Reason, State, decide};
pub use render::{AssessedArtifact, github, junit, sarif};
pub use retry_prompt::RetryPrompt;
pub use run::{AttemptResult, EarlierProgress, Notice, RiskRule, Run, RunEvent, RunLimits, RunStep};
pub use streams::{Agent, AgentStream, AttemptEnd, AttemptJudgement, ProcessEnd, StopCause};
pub use usage::{AgentUsage, ContextRisk, TokenUsage, risk};
