//! Recovers one cut part of a reply: decides whether and how to request the rest, limits the cost, and records the
//! outcome.

mod account;
mod allowance;
mod ask;
mod bound;
mod call;
mod capabilities;
mod case;
mod continuation;
#[cfg(test)]
mod cost_tests;
mod cut_record;
mod drive;
mod expected_answer;
mod mend;
mod mended_part;
mod rest_upstream;
mod resume_rule;
mod retry_waits;
mod schema;
mod store_wait_limit;
mod stream_passer;
mod stream_usage;
mod suspect;

pub(crate) use account::TokenAccount;
pub(crate) use allowance::Allowance;
pub(crate) use capabilities::Capabilities;
pub(crate) use case::{RecoveryCase, UpstreamSender};
pub(crate) use mend::{judgement, mend};
pub(crate) use mended_part::{CALLS_MAY_BE_MISSING, MALFORMED, MendedPart, ReportedFinish};
pub(crate) use schema::{Schema, SchemaError};
pub(crate) use store_wait_limit::StoreWaitLimit;
pub(crate) use stream_usage::{StreamUsages, UsageRequest, UsageSource, may_be_about_usage};
pub(crate) use suspect::{
    CallsAfter, HALF_SURROGATE, LaterCalls, PrecedingContent, REPETITION, SURPLUS_CHOICES, Suspect,
    TEXT_AFTER_CALLS, UNREPRESENTABLE_CONTENT, has_invented_arguments,
};
