//! The client's side of a stream in any format: frames that pass, frames that are held back, and their replacements.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::hash::Hash;

use serde_json::value::RawValue;

use crate::reply::{Event, StoredItem, ToolCall, Usage};
use crate::sse::{Frame, comment};

/// How a choice should report its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
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
    pub end: Option<End>,
    /// Endmark's own statement about it.
    pub endmark: Option<&'a RawValue>,
    /// Whether all of its text that the client lacked was written, so that held text is dropped.
    pub rewritten: bool,
}

/// The end of a stream.
#[derive(Debug, Clone, Default)]
pub struct Closing<'a> {
    /// The choices whose end differs from the one that is held back. Held frames of other choices pass unchanged.
    pub choices: &'a [ChoiceEnd<'a>],
    /// The tokens of all calls, if there was more than one.
    pub usage: Option<Usage>,
    /// Whether the stream's own last event was lost after the end of the reply. It is written if the format has one.
    pub is_end_lost: bool,
}

/// Writes the client's side of a stream: upstream frames unchanged, and replacements for frames that are held back.
///
/// All returned bytes are ready to be sent, and are never retracted. It accepts only complete frames, because the
/// bytes after half a frame would become part of it. If the client has the beginning of a part, only the rest is
/// written.
///
/// The order of calls: [`Writer::pass`] and [`Writer::hold`] for every frame while the upstream sends. Then either
/// [`Writer::release`], or any of [`Writer::write_text`], [`Writer::write_arguments`] and [`Writer::write_tool_call`], and
/// [`Writer::close`] or [`Writer::write_error`] at the end.
pub trait Writer: fmt::Debug + Send + Sync {
    /// Appends a frame unchanged to the client's bytes. Held frames go first if the order of all events matters in
    /// the format.
    fn pass(&mut self, frame: &Frame, event: &Event, client: &mut Vec<u8>);

    /// Holds back a frame from the client until it is known how its reply ends.
    fn hold(&mut self, frame: Frame, event: &Event);

    /// Returns whether anything is held back.
    fn holds(&self) -> bool;

    /// Returns whether the client's side can still be written.
    ///
    /// If not, the stream can only pass, or end in an error. That is so past the limit on remembered bytes, and if
    /// the client has the beginning of something that cannot be completed here. Examples are a thought without its
    /// signature, or the output of one of the server's tools.
    fn can_write(&self) -> bool {
        true
    }

    /// Returns everything held back, unchanged.
    fn release(&mut self) -> Vec<u8>;

    /// Returns the next characters of a choice's text.
    fn write_text(&mut self, choice: u32, text: &str) -> Vec<u8>;

    /// Returns the next characters of a call's arguments. Returns `None` if the format does not send them in pieces.
    /// In that case [`Writer::write_tool_call`] writes the complete call.
    fn write_arguments(&mut self, choice: u32, call: &ToolCall, arguments: &str) -> Option<Vec<u8>>;

    /// Returns whether [`Writer::write_arguments`] can continue a call of which the client has the beginning.
    fn can_continue(&self, choice: u32, call: &ToolCall) -> bool;

    /// Returns a complete tool call that the client has not begun to receive.
    fn write_tool_call(&mut self, choice: u32, call: &ToolCall) -> Vec<u8>;

    /// Returns the provider's signature of the text that was written here, if clients send signatures back.
    fn write_signature(&mut self, _choice: u32, _signature: &str) -> Vec<u8> {
        Vec::new()
    }

    /// Records which of the client's stop sequences ended a choice, for formats with a field for it.
    fn set_stop_sequence(&mut self, _choice: u32, _sequence: &str) {}

    /// Returns whether the arguments of a call arrive at once, as an object. A client that runs calls on arrival must
    /// not receive one before it is known to be complete.
    fn calls_come_whole(&self) -> bool {
        false
    }

    /// Returns whether [`Writer::write_tool_call`] can write a cut call: the end of the reply discloses the cut.
    fn shows_cut_calls(&self) -> bool {
        true
    }

    /// Records the id of the response that is written, for a client that has no part of the reply yet.
    fn set_answer_id(&mut self, _id: &str) {}

    /// Records which calls stay cut, before the stream ends.
    ///
    /// Returns the outcome of each call whose received part is not shown. If the end of a reply does not distinguish
    /// a cut call from a finished one, the client must not receive the call's end.
    fn leave_cut(&mut self, _choice: u32, _calls: &BTreeSet<u32>) -> Vec<(u32, CutCall)> {
        Vec::new()
    }

    /// Returns the end of the stream.
    fn close(&mut self, closing: &Closing<'_>) -> Vec<u8>;

    /// Returns the end of a broken stream in the provider's own shape, so that no client mistakes it for a whole one.
    /// A held error of the upstream is used instead. Held frames other than an end come first.
    fn write_error(&mut self, error: &StreamError<'_>) -> Vec<u8>;

    /// Returns the items that were written or completed here, once the stream is closed. The provider stores
    /// different ones or none, and later requests may refer to them by id alone.
    fn changed_items(&self) -> Vec<StoredItem> {
        Vec::new()
    }

    /// Returns a heartbeat that clients ignore.
    fn keep_alive(&self) -> Vec<u8> {
        comment("endmark is asking for the rest")
    }
}

/// The outcome of a call that stays cut, if the client does not get all of the received part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutCall {
    /// The client has nothing of it, and gets nothing.
    LeftOut,
    /// The client has its beginning, and treats it as finished unless the stream ends in an error.
    Begun,
}

/// Why a stream broke off.
#[derive(Debug, Clone, Copy)]
pub struct StreamError<'a> {
    /// What happened, and what to do about it.
    pub message: &'a str,
    /// The kind of error, such as `endmark_reply_cut`.
    pub kind: &'a str,
    /// The HTTP status, for formats that repeat it in the body.
    pub status: u16,
    /// Endmark's own statement about the reply.
    pub endmark: Option<&'a RawValue>,
    /// The choices that ended nevertheless.
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

/// Frames that are held back, each with its content.
#[derive(Debug, Clone, Default)]
pub(crate) struct HeldFrames {
    frames: VecDeque<(Frame, Event)>,
    /// Whether they are ordered by group.
    gathered: bool,
}

impl HeldFrames {
    pub(crate) fn push(&mut self, frame: Frame, event: &Event) {
        self.gathered = false;
        self.frames.push_back((frame, event.clone()));
    }

    /// Moves the frames of each group after its first one, in the order in which the groups begin. A frame without a
    /// group keeps its place between groups. One call is enough until more is held.
    pub(crate) fn gather<K: Hash + Eq>(&mut self, group: impl Fn(&Frame, &Event) -> Option<K>) {
        if std::mem::replace(&mut self.gathered, true) {
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

    /// Removes and returns the first frames for as long as `is` accepts them.
    pub(crate) fn take_while(&mut self, is: impl Fn(&Frame, &Event) -> bool) -> Vec<(Frame, Event)> {
        let count = self.frames.iter().take_while(|(frame, event)| is(frame, event)).count();
        self.take_first(count)
    }

    /// Holds these before all others.
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

    /// Returns the error that the upstream sent.
    pub(crate) fn write_error(&self) -> Option<&Frame> {
        self.frames.iter().find(|(_, event)| event.error.is_some()).map(|(frame, _)| frame)
    }
}
