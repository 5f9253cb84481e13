//! One choice of a reply, from a whole response or put together from a stream.

use super::{Finish, ToolCall};

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
    /// Whether reasoning came with it.
    pub reasoned: bool,
    /// Whether the last thing that came is a thought behind a text: the rest of the reply is the thought's, which no request
    /// can show.
    pub ends_in_thought: bool,
    /// Whether the model refused, in a field of its own or by its stop reason.
    pub refused: bool,
    /// How it ended; none while it has not.
    pub finish: Option<Finish>,
    /// Whether `text` and `tool_calls` are all that was received, character for character. If not (too long
    /// to be kept, a chunk that could not be read, a call of another tool than a function) the choice can only be
    /// passed on, and both may be empty.
    pub mendable: bool,
    /// Whether every character of them is one that came. Half a surrogate pair is none, and stands as U+FFFD: such a
    /// choice can be judged, and not gone on with.
    pub exact: bool,
    /// Half a character came last of it, and is no part of the text: the other half may come in the next piece.
    pub half_open: bool,
    /// Whether it says itself that more of a call was to come, in formats whose calls can come in pieces.
    pub unfinished: bool,
    /// The provider's own way to go on with it, if it gave one; of several the last.
    pub continuation: Option<Continuation>,
    /// What the provider signed the text with (Gemini's `thoughtSignature`); of several the last.
    pub signature: Option<String>,
    /// How many bytes of text and arguments were received, kept or not.
    pub received: usize,
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
            reasoned: false,
            ends_in_thought: false,
            refused: false,
            finish: None,
            mendable: true,
            exact: true,
            half_open: false,
            unfinished: false,
            continuation: None,
            signature: None,
            received: 0,
        }
    }

    /// Whether more can be joined to it.
    pub fn can_go_on(&self) -> bool {
        self.mendable && self.is_exact()
    }

    /// Whether a client that has all of it has these very characters, and not half a one.
    pub fn is_exact(&self) -> bool {
        self.exact && !self.half_open
    }

    /// Notes that a thought came.
    pub(crate) fn thinks(&mut self) {
        self.reasoned = true;
        self.ends_in_thought = !self.text.trim().is_empty();
    }

    /// Notes how the choice ended.
    pub(crate) fn end(&mut self, finish: Option<Finish>) {
        if let Some(finish) = finish {
            self.refused |= finish.stop == Some(endmark_core::Stop::Refused);
            self.finish = Some(finish);
        }
    }
}
