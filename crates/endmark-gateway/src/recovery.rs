//! Recovery of one cut part of a reply: whether to, how to ask, what it may cost, and what is written down.

mod account;
mod ask;
mod call;
mod capabilities;
mod continuation;
mod drive;
mod flow;
mod mend;
mod passing;
mod record;
mod schema;
mod when;

pub(crate) use account::Account;
pub(crate) use ask::Following;
pub(crate) use capabilities::Capabilities;
pub(crate) use flow::{ClientGone, Flow};
pub(crate) use mend::{Finish, Mended, Suspect, judgement, mend};
pub(crate) use schema::{Schema, SchemaError};
