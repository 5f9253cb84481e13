//! A streamed reply in any format, event by event.

use std::fmt;

use crate::json::{Kind, Value};
use crate::reply::{Event, EventError, Received};
use crate::sse::Frame;

/// Data has some of these where it is JSON, however it was broken.
const JSON_MARKS: [char; 5] = ['{', '}', '[', ']', '"'];

/// Reads a stream, and keeps what has come of it (PC-9).
pub trait Reader: fmt::Debug + Send + Sync {
    /// Reads a frame; a comment says nothing.
    ///
    /// A broken event ends what can be said of the reply: what came before it is kept, but what it held is
    /// missing in all that follows. Once more is read, no choice is mendable.
    fn frame(&mut self, frame: &Frame) -> Result<Event, EventError>;

    /// What has come so far.
    fn received(&self) -> &Received;

    /// A reader that goes on from here by itself.
    fn fork(&self) -> Box<dyn Reader>;
}

/// What the data of a frame is, besides an event of its format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Data<'a> {
    /// Nothing, as a comment.
    Nothing,
    /// `[DONE]`, which OpenAI ends its streams with, and other servers theirs.
    Done,
    /// An object.
    Object(Value<'a>),
}

/// The data of a frame; what cannot be read is noted in what has come so far.
pub(crate) fn data_of<'a>(frame: &'a Frame, received: &mut Received) -> Result<Data<'a>, EventError> {
    match &frame.data {
        Some(_) if frame.damaged => Err(received.unreadable(EventError::NotUtf8)),
        Some(data) => data_in(data, received),
        None => Ok(Data::Nothing),
    }
}

/// The same for what stands behind `data:`.
pub(crate) fn data_in<'a>(data: &'a str, received: &mut Received) -> Result<Data<'a>, EventError> {
    received.next_event();
    match data.trim() {
        "" => return Ok(Data::Nothing),
        "[DONE]" => return Ok(Data::Done),
        _ => {}
    }
    let error = match Value::parse_str(data) {
        Ok(root) if root.kind() == Kind::Object => return Ok(Data::Object(root)),
        Ok(_) => EventError::NoObject,
        Err(_) if !data.contains(JSON_MARKS) => EventError::NoChunk,
        Err(error) => EventError::NotJson(error),
    };
    Err(received.unreadable(error))
}
