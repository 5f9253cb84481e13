//! The demonstration: a scripted upstream that really cuts its replies, and the real gateway in front of it.

mod exchange;
mod scripted_upstream;
mod story;

pub(crate) use exchange::Received;
pub(crate) use story::{Scene, Told, tell};
