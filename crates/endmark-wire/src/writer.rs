//! The client's side of a stream in any format: what passes, what is held back, and what is said in its place.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::hash::Hash;

use serde_json::value::RawValue;

use crate::reply::{Event, StoredItem, ToolCall, Usage};
use crate::sse::{Frame, comment};

/// How a choice is to say that it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// The model ended its turn.
    Turn,
    /// It handed over tool calls.
    ToolCalls,
    /// It is cut at its limit.
    Cut,
}

/// The end of one choice.
#[derive(Debug, Clone, Copy)]
pub struct ChoiceEnd<'a> {
    /// Which choice.
    pub choice: u32,
    /// How it ended; none where the provider's own word stays.
    pub end: Option<End>,
    /// What Endmark has to say of it.
    pub endmark: Option<&'a RawValue>,
    /// All of its text that the client had not got was written, so that what is held back of it is left out.
    pub rewritten: bool,
}

/// The end of a stream.
#[derive(Debug, Clone, Default)]
pub struct Closing<'a> {
    /// The choices that end otherwise than they were held back; of others what is held passes as it came.
    pub choices: &'a [ChoiceEnd<'a>],
    /// The tokens of all calls, where there was more than one.
    pub usage: Option<Usage>,
    /// The stream's own last event was lost behind the end of the reply: it is written, where the format has one.
    pub end_lost: bool,
}

/// Writes the client's side of a stream: frames of the upstream as they came, and what takes the place of
/// those that are held back.
///
/// Everything it gives is ready to be sent. It takes whole frames alone: what is cut inside one must not pass,
/// or what is written behind it becomes a part of it. Bytes once given are never taken back: of a part the client has
/// a beginning of, only what follows is written.
///
/// The order of calls: [`Writer::pass`] and [`Writer::hold`] for every frame as long as the upstream speaks;
/// then either [`Writer::release`], or any of [`Writer::text`], [`Writer::arguments`] and
/// [`Writer::tool_call`], and [`Writer::close`] or [`Writer::error`] at the end.
pub trait Writer: fmt::Debug + Send + Sync {
    /// Adds a frame as it is to what goes to the client; before it those held back, where the order of all events
    /// counts in the format.
    fn pass(&mut self, frame: &Frame, event: &Event, client: &mut Vec<u8>);

    /// A frame that the client does not get before it is known how its reply ends.
    fn hold(&mut self, frame: Frame, event: &Event);

    /// Whether anything is held back.
    fn holds(&self) -> bool;

    /// Whether the client's side can still be written. It can only pass, or end in an error, past the limit on
    /// what is remembered of it; and where the client has the beginning of something that cannot be completed
    /// here, as a thought without its signature or what a tool of the server's was about to say.
    fn can_write(&self) -> bool {
        true
    }

    /// What is held back, as it came.
    fn release(&mut self) -> Vec<u8>;

    /// The next characters of a choice's text.
    fn text(&mut self, choice: u32, text: &str) -> Vec<u8>;

    /// The next characters of a call's arguments; none where the format has no pieces of them: such a call
    /// is written whole, by [`Writer::tool_call`].
    fn arguments(&mut self, choice: u32, call: &ToolCall, arguments: &str) -> Option<Vec<u8>>;

    /// Whether a call that the client has a beginning of can go on by [`Writer::arguments`].
    fn goes_on(&self, choice: u32, call: &ToolCall) -> bool;

    /// A whole tool call that the client has nothing of.
    fn tool_call(&mut self, choice: u32, call: &ToolCall) -> Vec<u8>;

    /// What the provider signed the text with that was written here, where clients send that back.
    fn signature(&mut self, _choice: u32, _signature: &str) -> Vec<u8> {
        Vec::new()
    }

    /// Notes which of the client's stop sequences a choice ends at, for formats that have a field for it.
    fn stops_at(&mut self, _choice: u32, _sequence: &str) {}

    /// Whether the arguments of a call come all at once, as an object. A client that runs calls as they come must not have
    /// one before it is known that it is not cut.
    fn calls_come_whole(&self) -> bool {
        false
    }

    /// Whether a call that is cut can be written by [`Writer::tool_call`]: how the reply ends tells that it is.
    fn shows_cut_calls(&self) -> bool {
        true
    }

    /// Notes the id of the answer that is written from, for a client that has nothing of a reply yet.
    fn answered_by(&mut self, _id: &str) {}

    /// Notes which calls stay cut, before the stream ends; says what becomes of each that is not shown as far as it came. Where
    /// the end of a reply does not tell a cut call from a finished one, the client must not have its end.
    fn leave_cut(&mut self, _choice: u32, _calls: &BTreeSet<u32>) -> Vec<(u32, CutCall)> {
        Vec::new()
    }

    /// The end of the stream.
    fn close(&mut self, closing: &Closing<'_>) -> Vec<u8>;

    /// The end of a stream that broke off, in the provider's own shape: nobody takes it for a whole one.
    /// An error that the upstream itself sent, and that is held back, stands in its place. Before it goes what is
    /// held back and is no end.
    fn error(&mut self, error: &StreamError<'_>) -> Vec<u8>;

    /// The items that were written or made whole here, once the stream is closed: its provider stores them otherwise, or not
    /// at all, and later requests may refer to them by id alone.
    fn changed_items(&self) -> Vec<StoredItem> {
        Vec::new()
    }

    /// A sign of life that clients ignore.
    fn keep_alive(&self) -> Vec<u8> {
        comment("endmark is asking for the rest")
    }
}

/// What becomes of a call that stays cut, and of which the client does not get as much as came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutCall {
    /// The client has nothing of it, and gets nothing.
    LeftOut,
    /// The client has its beginning, and takes it for finished unless the stream ends in an error.
    Begun,
}

/// Why a stream broke off.
#[derive(Debug, Clone, Copy)]
pub struct StreamError<'a> {
    /// What happened, and what to do about it.
    pub message: &'a str,
    /// The kind of error, as `endmark_reply_cut`.
    pub kind: &'a str,
    /// The HTTP status that it has in formats which repeat it in the body.
    pub status: u16,
    /// What Endmark has to say of the reply.
    pub endmark: Option<&'a RawValue>,
    /// The choices that ended all the same.
    pub choices: &'a [ChoiceEnd<'a>],
}

impl StreamError<'_> {
    /// `,"endmark":{…}`, or nothing.
    pub(crate) fn endmark_field(&self) -> String {
        endmark_field(self.endmark)
    }
}

/// `,"endmark":{…}`, or nothing.
pub(crate) fn endmark_field(endmark: Option<&RawValue>) -> String {
    endmark.map(|endmark| format!(",\"endmark\":{}", endmark.get())).unwrap_or_default()
}

/// Frames that are held back, with what each said.
#[derive(Debug, Clone, Default)]
pub(crate) struct Held {
    frames: VecDeque<(Frame, Event)>,
    /// They stand group by group.
    gathered: bool,
}

impl Held {
    pub(crate) fn push(&mut self, frame: Frame, event: &Event) {
        self.gathered = false;
        self.frames.push_back((frame, event.clone()));
    }

    /// Puts the frames of each group behind its first one, in the order in which the groups begin. What is in none stays
    /// between those that it stands between. Once is enough until more is held.
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

    /// The first so many frames, which are not held any more.
    pub(crate) fn take_first(&mut self, count: usize) -> Vec<(Frame, Event)> {
        self.frames.drain(..count.min(self.frames.len())).collect()
    }

    /// The first frames, as long as they are like this; they are not held any more.
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

    /// What the frames say that are held.
    pub(crate) fn events(&self) -> impl Iterator<Item = &Event> {
        self.frames.iter().map(|(_, event)| event)
    }

    /// The frames that are held.
    pub(crate) fn frames(&self) -> impl Iterator<Item = &Frame> {
        self.frames.iter().map(|(frame, _)| frame)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Everything that is held, in order; nothing is held then.
    pub(crate) fn take(&mut self) -> Vec<(Frame, Event)> {
        std::mem::take(&mut self.frames).into()
    }

    pub(crate) fn put_back(&mut self, frames: Vec<(Frame, Event)>) {
        self.frames = frames.into();
    }

    /// The error that the upstream sent.
    pub(crate) fn error(&self) -> Option<&Frame> {
        self.frames.iter().find(|(_, event)| event.error.is_some()).map(|(frame, _)| frame)
    }
}
