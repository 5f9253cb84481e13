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
mod drive;
mod expected;
mod mend;
mod mended;
mod passing;
mod patience;
mod record;
mod resume_rule;
mod schema;
mod site;
mod store_patience;
mod stream_usage;
mod suspect;

pub(crate) use account::Account;
pub(crate) use allowance::Allowance;
pub(crate) use capabilities::Capabilities;
pub(crate) use case::{Case, Sender};
pub(crate) use mend::{judgement, mend};
pub(crate) use mended::{CALLS_MAY_BE_MISSING, Finish, MALFORMED, MendedPart};
pub(crate) use schema::{Schema, SchemaError};
pub(crate) use store_patience::StorePatience;
pub(crate) use stream_usage::{Counting, StreamUsages, UsageSource, may_be_about_usage};
pub(crate) use suspect::{
    BEHIND_CALLS, CallsAfter, HALVED, LaterCalls, PrecedingCalls, REPEATED, SURPLUS, Suspect, UNSHOWN,
    has_made_up_arguments,
};
