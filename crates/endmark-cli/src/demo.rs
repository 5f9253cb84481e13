//! The demonstration: a scripted upstream that cuts its replies, and a real gateway in front of it.

mod exchange;
mod scripted_upstream;
mod story;

pub(crate) use exchange::ReceivedReply;
pub(crate) use story::{PlayedStory, Scene, run_story};
