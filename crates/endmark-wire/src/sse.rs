//! Server-sent events: a decoder that keeps every byte, and an encoder.

mod decode;
mod encode;
mod frame;

pub use decode::{Decoder, FrameTooLong, Tail};
pub use encode::{comment, data_frame, event_frame};
pub use frame::Frame;

#[cfg(test)]
mod tests;
