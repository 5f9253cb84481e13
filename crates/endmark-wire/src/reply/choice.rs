//! One choice of a reply, from a whole response or put together from a stream.

use endmark_context::count::TextTally;
use endmark_recovery::{Ending, Stop};

use super::{Finish, Place, ToolCall};
use crate::finish_reasons::Meaning;

/// One choice of a reply, as far as it was received.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own to the choice")]
pub struct Choice {
    /// Its number among the choices of the reply.
    pub index: u32,
    /// The text, without reasoning and refusals; empty if there is none.
    pub text: String,
    /// Where in the text its last part begins, in formats whose parts stand for themselves: a remark before a search, and
    /// the answer behind it. A demanded grammar or schema is that of the last part.
    pub last_part: usize,
    /// The tool calls, in the order in which they began.
    pub tool_calls: Vec<ToolCall>,
    /// Where in the text the last of them stands, in formats that tell the order.
    pub last_call_at: usize,
    /// Whether reasoning came with it.
    pub reasoned: bool,
    /// Whether a part of the server's own stands in it, as what a search of its found, or a call of another tool than a
    /// function. What the choice says beside can be judged, and not gone on with: no request can show such a part.
    pub beside: bool,
    /// Whether the last thing that came is one of those, or a thought behind a text or a call: the rest of the reply is that
    /// of what no request can show.
    pub ends_unshown: bool,
    /// Whether the model refused, in a field of its own or by its stop reason.
    pub refused: bool,
    /// How it ended; none while it has not.
    pub finish: Option<Finish>,
    /// Whether `text` and `tool_calls` are all that was received of them, character for character. If not (too long
    /// to be kept, a chunk that could not be read, a call in pieces) the choice can only be passed on, and both may be
    /// empty.
    pub mendable: bool,
    /// Whether every character of them is one that came. Half a surrogate pair is none, and stands as U+FFFD: such a
    /// choice can be judged, and not gone on with.
    pub exact: bool,
    /// Half a character came last of it, and is no part of the text: the other half may come in the next piece.
    pub half_open: bool,
    /// Whether it states itself that more was to come: of a call, in formats whose calls can come in pieces, or of a response
    /// that is still in progress.
    pub unfinished: bool,
    /// The provider's own way to go on with it, if it gave one; of several the last.
    pub continuation: Option<Continuation>,
    /// What the provider signed the text with (Gemini's `thoughtSignature`); of several the last.
    pub signature: Option<String>,
    /// How many bytes of text and arguments were received, kept or not.
    pub received: usize,
    /// What the model wrote, kept or not: text, arguments, reasoning and refusals, and media among them. Its tokens are
    /// estimated from it if no server counts them.
    pub written: TextTally,
    /// Searches of the web among the items of the provider's own tools, in formats whose counts lack them.
    pub web_searches: u64,
}

/// A provider's own token for going on with a choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Continuation {
    /// The token, as it came.
    pub token: String,
    /// How many bytes of the text it goes on behind.
    pub text: usize,
}

impl Choice {
    /// A choice of which nothing has come yet.
    pub fn new(index: u32) -> Self {
        Self {
            index,
            text: String::new(),
            last_part: 0,
            tool_calls: Vec::new(),
            last_call_at: 0,
            reasoned: false,
            beside: false,
            ends_unshown: false,
            refused: false,
            finish: None,
            mendable: true,
            exact: true,
            half_open: false,
            unfinished: false,
            continuation: None,
            signature: None,
            received: 0,
            written: TextTally::default(),
            web_searches: 0,
        }
    }

    /// How it ended if its stream ended like this: a word for a failure is an error of the upstream's.
    pub fn ended_by(&self, ending: Ending) -> Ending {
        if self.finish.as_ref().is_some_and(|finish| finish.stop.is_none()) {
            Ending::UpstreamError
        } else {
            ending
        }
    }

    /// What the word for its end means; `None` while it has not ended.
    pub fn meaning(&self) -> Option<Meaning> {
        self.finish.as_ref().map(|finish| finish.meaning)
    }

    /// The word by which it ended, if that is not known.
    pub fn unknown_end(&self) -> Option<&str> {
        let finish = self.finish.as_ref().filter(|finish| finish.stop == Some(Stop::Unknown));
        finish.map(|finish| finish.word.as_str())
    }

    /// Whether more can be joined to it.
    pub fn can_go_on(&self) -> bool {
        self.mendable && !self.beside && self.is_exact()
    }

    /// Whether a client that has all of it has these very characters, and not half a one.
    pub fn is_exact(&self) -> bool {
        self.exact && !self.half_open
    }

    /// The text behind the last call, if there is any: the model went on after the call, so that one is complete.
    ///
    /// ```
    /// use endmark_wire::reply::{Choice, ToolCall};
    ///
    /// let mut choice = Choice { text: "I look. Now".into(), last_call_at: 7, ..Choice::new(0) };
    /// assert_eq!(choice.behind_calls(), None);
    /// choice.tool_calls.push(ToolCall::default());
    /// assert_eq!(choice.behind_calls(), Some(" Now"));
    /// ```
    pub fn behind_calls(&self) -> Option<&str> {
        let behind = self.text.get(self.last_call_at..).filter(|_| !self.tool_calls.is_empty());
        behind.filter(|text| !text.trim().is_empty())
    }

    /// Whether a client adds the next piece of this call to what it has of it: where some of the calls share an index, or have
    /// none, that is certain of the last one alone.
    pub fn takes_more(&self, call: &ToolCall) -> bool {
        let is_last = self.tool_calls.last().is_some_and(|last| last.index == call.index);
        is_last || self.tool_calls.iter().all(|call| call.place == Place::Number)
    }

    /// Notes that the text and the arguments are all that the model wrote, but for its thoughts.
    pub(crate) fn wrote_these(&mut self) {
        let arguments = self.tool_calls.iter().map(|call| &call.arguments);
        for text in std::iter::once(&self.text).chain(arguments) {
            self.received += text.len();
            self.written.add(text);
        }
    }

    /// Notes that a thought came.
    pub(crate) fn thinks(&mut self) {
        self.reasoned = true;
        self.ends_unshown = self.beside || !self.text.trim().is_empty() || !self.tool_calls.is_empty();
    }

    /// Notes that a part came that no request can show.
    pub(crate) fn shows_no_more(&mut self) {
        (self.beside, self.ends_unshown) = (true, true);
    }

    /// Notes how the choice ended.
    pub(crate) fn end(&mut self, finish: Option<Finish>) {
        if let Some(finish) = finish {
            self.refused |= finish.stop == Some(endmark_recovery::Stop::Refused);
            self.finish = Some(finish);
        }
    }
}
