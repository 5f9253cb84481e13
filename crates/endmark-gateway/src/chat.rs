//! OpenAI Chat Completions through the gateway: admitted, observed, judged, made whole, disclosed.

mod admit;
mod client;
mod deliver;
mod disclose;
mod exchange;
mod history;
mod identity;
mod observe;
mod refused;
mod settle;
mod slot;
mod streamed;
mod suspects;
mod whole;

pub(crate) use admit::admit;
pub(crate) use client::LiveSlot;
pub(crate) use deliver::deliver;
pub(crate) use disclose::Outcome;
pub(crate) use exchange::{Destination, Exchange};
pub(crate) use refused::refused;
pub(crate) use slot::{Part, Slot};
pub(crate) use streamed::streamed;
pub(crate) use whole::whole;
