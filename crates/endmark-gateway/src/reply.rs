//! The data about a reply that stages and recovery share: the parts, the outcome, and the client that reads it.

mod client;
mod cut_json;
mod flow;
mod outcome;
mod slot;

pub(crate) use client::{ClientGone, ClientStream, LiveSlot, WaitingClient};
pub(crate) use cut_json::ends_too_early;
pub(crate) use flow::{Flow, LastDelivery};
pub(crate) use outcome::Outcome;
pub(crate) use slot::{ReplyPart, Slot};
