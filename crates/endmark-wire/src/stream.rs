//! A streamed reply in any format, event by event.

use std::fmt;

use crate::json::{Kind, Value};
use crate::reply::{Event, EventError, Received};
use crate::sse::Frame;

/// Any damaged JSON of a stream contains at least one of these characters.
const JSON_PUNCTUATION: [char; 5] = ['{', '}', '[', ']', '"'];

/// Reads a stream and assembles its reply (PC-9).
pub trait Reader: fmt::Debug + Send + Sync {
    /// Reads a frame. A comment results in an empty event.
    ///
    /// After a broken event, later events may lack its content. The content before it stays available, but no
    /// choice is mendable once another event is read.
    fn read_frame(&mut self, frame: &Frame) -> Result<Event, EventError>;

    /// Returns the reply received so far.
    fn received(&self) -> &Received;

    /// Returns an independent reader that continues from this state.
    fn fork(&self) -> Box<dyn Reader>;
}

/// The data of a frame, independent of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameData<'a> {
    /// No data, such as a comment.
    Nothing,
    /// `[DONE]`, which ends the streams of OpenAI and of some other servers.
    Done,
    /// A JSON object.
    Object(Value<'a>),
}

/// Returns the data of a frame. Records unreadable data in `received`.
pub(crate) fn frame_data<'a>(frame: &'a Frame, received: &mut Received) -> Result<FrameData<'a>, EventError> {
    match &frame.data {
        Some(_) if frame.damaged => Err(received.note_unreadable(EventError::NotUtf8)),
        Some(data) => parse_data(data, received),
        None => Ok(FrameData::Nothing),
    }
}

/// Parses the text after `data:`. Records unreadable data in `received`.
pub(crate) fn parse_data<'a>(data: &'a str, received: &mut Received) -> Result<FrameData<'a>, EventError> {
    received.next_event();
    match data.trim() {
        "" => return Ok(FrameData::Nothing),
        "[DONE]" => return Ok(FrameData::Done),
        _ => {}
    }
    let error = match Value::parse_str(data) {
        Ok(root) if root.kind() == Kind::Object => return Ok(FrameData::Object(root)),
        Ok(_) => EventError::NotAnObject,
        Err(_) if !data.contains(JSON_PUNCTUATION) => EventError::NotAChunk,
        Err(error) => EventError::NotJson(error),
    };
    Err(received.note_unreadable(error))
}
