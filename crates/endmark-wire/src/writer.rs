//! The client's side of a stream in any format: frames that pass, frames that are held back, and frames that
//! replace them.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::hash::Hash;

use serde_json::value::RawValue;

use crate::reply::{Event, StoredItem, ToolCall, Usage};
use crate::sse::{Frame, comment};

/// How a choice should report its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReportedEnd {
    /// The model ended its turn.
    Turn,
    /// The model called tools.
    ToolCalls,
    /// The reply is cut at its limit.
    Cut,
}

/// The end of one choice.
#[derive(Debug, Clone, Copy)]
pub struct ChoiceEnd<'a> {
    /// The number of the choice.
    pub choice: u32,
    /// How the choice ended. `None` keeps the provider's own finish reason.
    pub end: Option<ReportedEnd>,
    /// Endmark's own statement about the choice.
    pub endmark: Option<&'a RawValue>,
    /// Whether all text that the client lacked was written, so that the held text is dropped.
    pub is_rewritten: bool,
}

/// The end of a stream.
#[derive(Debug, Clone, Default)]
pub struct StreamEnd<'a> {
    /// The choices that end differently from the held frames. Held frames of other choices pass unchanged.
    pub choices: &'a [ChoiceEnd<'a>],
    /// The tokens of all calls, if there was more than one.
    pub usage: Option<Usage>,
    /// Whether the reply ended but the stream's last event was lost. The writer adds that event if the format
    /// has one.
    pub is_end_lost: bool,
}

/// Writes the client's side of a stream: upstream frames unchanged, and replacements for frames that are held
/// back.
///
/// All returned bytes are ready to be sent and are never retracted. The writer accepts only complete frames,
/// because bytes after an incomplete frame would become part of it. If the client has the beginning of a
/// part, only the rest is written.
///
/// The order of calls is: [`Writer::pass`] or [`Writer::hold`] for every frame while the upstream sends. Then
/// either [`Writer::release`], or any of [`Writer::write_text`], [`Writer::write_arguments`] and
/// [`Writer::write_tool_call`]. At the end, [`Writer::close`] or [`Writer::write_error`].
pub trait Writer: fmt::Debug + Send + Sync {
    /// Appends a frame unchanged to the client's bytes. If the order of all events matters in the format, the
    /// held frames come first.
    fn pass(&mut self, frame: &Frame, event: &Event, client: &mut Vec<u8>);

    /// Holds a frame back until the end of its reply is known.
    fn hold(&mut self, frame: Frame, event: &Event);

    /// Returns whether any frame is held back.
    fn is_holding(&self) -> bool;

    /// Returns whether Endmark can still write to the client's stream.
    ///
    /// Otherwise the stream can only pass, or end in an error. This is the case after the limit on remembered
    /// bytes, and after the beginning of something that only the server can complete. Examples are a thought
    /// without its signature, or the output of one of the server's tools.
    fn can_write(&self) -> bool {
        true
    }

    /// Returns all held frames, unchanged.
    fn release(&mut self) -> Vec<u8>;

    /// Returns the bytes that append to a choice's text.
    fn write_text(&mut self, choice: u32, text: &str) -> Vec<u8>;

    /// Returns the bytes that append to a call's arguments. Returns `None` if the format does not send
    /// arguments in pieces. In that case [`Writer::write_tool_call`] writes the complete call.
    fn write_arguments(&mut self, choice: u32, call: &ToolCall, arguments: &str) -> Option<Vec<u8>>;

    /// Returns whether [`Writer::write_arguments`] can continue a call that the client has begun to receive.
    fn can_continue(&self, choice: u32, call: &ToolCall) -> bool;

    /// Returns the bytes of a complete tool call that the client has not begun to receive.
    fn write_tool_call(&mut self, choice: u32, call: &ToolCall) -> Vec<u8>;

    /// Returns the bytes of the provider's signature of the written text, if clients send signatures back.
    fn write_signature(&mut self, _choice: u32, _signature: &str) -> Vec<u8> {
        Vec::new()
    }

    /// Records which of the client's stop sequences ended a choice, for formats with a field for it.
    fn set_stop_sequence(&mut self, _choice: u32, _sequence: &str) {}

    /// Returns whether the arguments of a call arrive as one object. A client that runs calls on arrival must
    /// not receive such a call before it is known to be complete.
    fn calls_arrive_complete(&self) -> bool {
        false
    }

    /// Returns whether [`Writer::write_tool_call`] can write a cut call, because the end of the reply
    /// discloses the cut.
    fn shows_cut_calls(&self) -> bool {
        true
    }

    /// Records the id of the written response, for a client that has received no part of the reply.
    fn set_response_id(&mut self, _id: &str) {}

    /// Records which calls remain cut, before the stream ends.
    ///
    /// Returns the outcome of each call that the client does not receive as far as it arrived. If the end of
    /// a reply does not distinguish a cut call from a finished one, the client must not receive the call's
    /// end.
    fn note_cut_calls(&mut self, _choice: u32, _calls: &BTreeSet<u32>) -> Vec<(u32, CutCall)> {
        Vec::new()
    }

    /// Returns the bytes that end the stream.
    fn close(&mut self, closing: &StreamEnd<'_>) -> Vec<u8>;

    /// Returns the bytes that end a broken stream in the provider's own shape, so that no client treats it as
    /// complete. A held error of the upstream is used instead. Held frames other than an end come first.
    fn write_error(&mut self, error: &StreamError<'_>) -> Vec<u8>;

    /// Returns the items that Endmark wrote or completed, once the stream is closed. The provider stores them
    /// in another form or not at all, and later requests may refer to them by id alone.
    fn changed_items(&self) -> Vec<StoredItem> {
        Vec::new()
    }

    /// Returns a heartbeat that clients ignore.
    fn keep_alive(&self) -> Vec<u8> {
        comment("endmark is asking for the rest")
    }
}

/// The outcome of a call that remains cut, if the client does not receive it as far as it arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutCall {
    /// The client receives nothing of it.
    Omitted,
    /// The client has received its beginning. It treats the call as finished unless the stream ends in an
    /// error.
    Started,
}

/// The reason why a stream broke off.
#[derive(Debug, Clone, Copy)]
pub struct StreamError<'a> {
    /// What happened, and how to resolve it.
    pub message: &'a str,
    /// The kind of error, such as `endmark_reply_cut`.
    pub kind: &'a str,
    /// The HTTP status, for formats that repeat it in the body.
    pub status: u16,
    /// Endmark's own statement about the reply.
    pub endmark: Option<&'a RawValue>,
    /// The choices that ended before the stream broke off.
    pub choices: &'a [ChoiceEnd<'a>],
}

impl StreamError<'_> {
    /// Returns `,"endmark":{…}`, or an empty string.
    pub(crate) fn endmark_field(&self) -> String {
        endmark_field(self.endmark)
    }
}

/// Returns `,"endmark":{…}`, or an empty string.
pub(crate) fn endmark_field(endmark: Option<&RawValue>) -> String {
    endmark.map(|endmark| format!(",\"endmark\":{}", endmark.get())).unwrap_or_default()
}

/// The frames that are held back, each with its content.
#[derive(Debug, Clone, Default)]
pub(crate) struct HeldFrames {
    frames: VecDeque<(Frame, Event)>,
    /// Whether the frames are ordered by group.
    is_grouped: bool,
}

impl HeldFrames {
    pub(crate) fn push(&mut self, frame: Frame, event: &Event) {
        self.is_grouped = false;
        self.frames.push_back((frame, event.clone()));
    }

    /// Makes the frames of each group consecutive. The groups keep the order of their first frames, and a
    /// frame without a group is a group of its own. Does nothing if no frame was added after the last call.
    pub(crate) fn group_frames<K: Hash + Eq>(&mut self, group: impl Fn(&Frame, &Event) -> Option<K>) {
        if std::mem::replace(&mut self.is_grouped, true) {
            return;
        }
        let mut groups: Vec<Vec<(Frame, Event)>> = Vec::new();
        let mut known: HashMap<K, usize> = HashMap::new();
        for (frame, event) in self.take() {
            let next = groups.len();
            let place = group(&frame, &event).map_or(next, |group| *known.entry(group).or_insert(next));
            match groups.get_mut(place) {
                Some(group) => group.push((frame, event)),
                None => groups.push(vec![(frame, event)]),
            }
        }
        self.frames = groups.into_iter().flatten().collect();
    }

    /// Removes and returns the first `count` frames.
    pub(crate) fn take_first(&mut self, count: usize) -> Vec<(Frame, Event)> {
        self.frames.drain(..count.min(self.frames.len())).collect()
    }

    /// Removes and returns the leading frames that `is` accepts.
    pub(crate) fn take_while(&mut self, is: impl Fn(&Frame, &Event) -> bool) -> Vec<(Frame, Event)> {
        let count = self.frames.iter().take_while(|(frame, event)| is(frame, event)).count();
        self.take_first(count)
    }

    /// Puts these frames before all held frames.
    pub(crate) fn put_first(&mut self, frames: Vec<(Frame, Event)>) {
        for frame in frames.into_iter().rev() {
            self.frames.push_front(frame);
        }
    }

    /// Returns the contents of the held frames.
    pub(crate) fn events(&self) -> impl Iterator<Item = &Event> {
        self.frames.iter().map(|(_, event)| event)
    }

    /// Returns the held frames.
    pub(crate) fn frames(&self) -> impl Iterator<Item = &Frame> {
        self.frames.iter().map(|(frame, _)| frame)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Removes and returns all held frames, in order.
    pub(crate) fn take(&mut self) -> Vec<(Frame, Event)> {
        std::mem::take(&mut self.frames).into()
    }

    pub(crate) fn put_back(&mut self, frames: Vec<(Frame, Event)>) {
        self.frames = frames.into();
    }

    /// Returns the held frame with an error of the upstream.
    pub(crate) fn upstream_error(&self) -> Option<&Frame> {
        self.frames.iter().find(|(_, event)| event.error.is_some()).map(|(frame, _)| frame)
    }
}
