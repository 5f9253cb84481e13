//! A streamed reply in any format, event by event.

use std::fmt;

use crate::json::{Kind, Value};
use crate::reply::{Event, EventError, Received};
use crate::sse::Frame;

/// Characters of which JSON data contains some, however it was broken.
const JSON_MARKS: [char; 5] = ['{', '}', '[', ']', '"'];

/// Reads a stream, and stores the received reply (PC-9).
pub trait Reader: fmt::Debug + Send + Sync {
    /// Reads a frame. A comment is an empty event.
    ///
    /// After a broken event the reply is incomplete. The part before it is stored, but everything after it lacks its
    /// content. Once another event is read, no choice is mendable.
    fn read_frame(&mut self, frame: &Frame) -> Result<Event, EventError>;

    /// Returns the reply received so far.
    fn received(&self) -> &Received;

    /// Returns an independent reader that continues from this state.
    fn fork(&self) -> Box<dyn Reader>;
}

/// The data of a frame, before its format reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Data<'a> {
    /// No data, such as a comment.
    Nothing,
    /// `[DONE]`, which ends the streams of OpenAI and of some other servers.
    Done,
    /// A JSON object.
    Object(Value<'a>),
}

/// Returns the data of a frame. Unreadable data is noted in `received`.
pub(crate) fn frame_data<'a>(frame: &'a Frame, received: &mut Received) -> Result<Data<'a>, EventError> {
    match &frame.data {
        Some(_) if frame.damaged => Err(received.note_unreadable(EventError::NotUtf8)),
        Some(data) => parse_data(data, received),
        None => Ok(Data::Nothing),
    }
}

/// Does the same for the text after `data:`.
pub(crate) fn parse_data<'a>(data: &'a str, received: &mut Received) -> Result<Data<'a>, EventError> {
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
    Err(received.note_unreadable(error))
}
