//! A reply as the stages and recovery use it: its parts, its outcome, and the client that reads it.

mod client;
mod cut_json;
mod flow;
mod outcome;
mod slot;

pub(crate) use client::{ClientGone, ClientStream, LiveSlot, Waiter};
pub(crate) use cut_json::ends_too_early;
pub(crate) use flow::{Flow, Heard};
pub(crate) use outcome::Outcome;
pub(crate) use slot::{Part, Slot};
