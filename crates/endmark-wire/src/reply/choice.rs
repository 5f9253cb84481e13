//! One choice of a reply, from a whole response or assembled from a stream.

use endmark_context::count::TextTally;
use endmark_recovery::{Ending, Stop};

use super::{Finish, PieceKey, ToolCall};
use crate::finish_reasons::FinishMeaning;

/// One choice of a reply, as received.
// Fields: one for each part of a reply in any format.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own to the choice")]
pub struct Choice {
    /// The number of the choice in the reply.
    pub index: u32,
    /// The text, without reasoning and refusals. Empty if the reply has no text.
    pub text: String,
    /// The start of the last part of the text, in formats with independent parts, such as a remark before a
    /// search and the answer after it. A requested grammar or schema applies to the last part.
    pub last_part_start: usize,
    /// The tool calls, in the order in which they began.
    pub tool_calls: Vec<ToolCall>,
    /// The position in the text at which the last call was made, in formats that report the order.
    pub last_call_at: usize,
    /// Whether the choice contains reasoning.
    pub has_reasoning: bool,
    /// Whether the choice has a part that only the server can produce, such as search results or a call of a
    /// tool that is not a function. Such a choice can be judged but not continued, because no request can
    /// contain that part.
    pub has_unrequestable_part: bool,
    /// Whether the choice ends in such a part, or in a thought after a text or a call. A continuation would
    /// follow something that no request can contain.
    pub ends_in_unshown_part: bool,
    /// Whether the model refused, by a field for refusals or by its finish reason.
    pub is_refused: bool,
    /// How the choice ended. `None` before its end.
    pub finish: Option<Finish>,
    /// Whether `text` and `tool_calls` are all that was received of them, character for character.
    ///
    /// If not, the choice can only be forwarded, and both may be empty. This happens if a reply is too long to be
    /// stored, a chunk cannot be read, or a call arrives in pieces.
    pub is_mendable: bool,
    /// Whether the text has exactly the characters that arrived. Half a surrogate pair is not a character and becomes
    /// U+FFFD. Such a choice can be judged but not continued.
    pub exact: bool,
    /// Whether the last received data is half a character. It is not part of the text, because the next piece
    /// may contain the other half.
    pub half_open: bool,
    /// Whether the choice itself states that more will follow: of a call that arrives in pieces, or of a
    /// response that is still in progress.
    pub is_unfinished: bool,
    /// The provider's own continuation token, if any. If there are several, the last one.
    pub continuation: Option<Continuation>,
    /// The provider's signature of the text (Gemini's `thoughtSignature`). If there are several, the last
    /// one.
    pub signature: Option<String>,
    /// The number of bytes of text and arguments that were received, kept or not.
    pub received_bytes: usize,
    /// A tally of everything that the model wrote, stored or not: text, arguments, reasoning, refusals and
    /// media. Tokens are estimated from it if no server counts them.
    pub written: TextTally,
    /// The number of web searches by the provider's own tools, in formats whose token counts lack this
    /// number.
    pub web_searches: u64,
}

/// A provider's own token for the continuation of a choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Continuation {
    /// The token, as received.
    pub token: String,
    /// The length in bytes of the text that it continues.
    pub text: usize,
}

impl Choice {
    /// Creates a choice without content.
    pub fn new(index: u32) -> Self {
        Self {
            index,
            text: String::new(),
            last_part_start: 0,
            tool_calls: Vec::new(),
            last_call_at: 0,
            has_reasoning: false,
            has_unrequestable_part: false,
            ends_in_unshown_part: false,
            is_refused: false,
            finish: None,
            is_mendable: true,
            exact: true,
            half_open: false,
            is_unfinished: false,
            continuation: None,
            signature: None,
            received_bytes: 0,
            written: TextTally::default(),
            web_searches: 0,
        }
    }

    /// Returns how the choice ended, given the end of its stream. A finish reason that means failure is an
    /// upstream error.
    pub fn ending_after(&self, ending: Ending) -> Ending {
        if self.finish.as_ref().is_some_and(|finish| finish.stop.is_none()) {
            Ending::UpstreamError
        } else {
            ending
        }
    }

    /// Returns the meaning of the finish reason, or `None` if the choice has not ended.
    pub fn meaning(&self) -> Option<FinishMeaning> {
        self.finish.as_ref().map(|finish| finish.meaning)
    }

    /// Returns the finish reason if its meaning is unknown.
    pub fn unknown_finish_reason(&self) -> Option<&str> {
        let finish = self.finish.as_ref().filter(|finish| finish.stop == Some(Stop::Unknown));
        finish.map(|finish| finish.reason.as_str())
    }

    /// Returns whether a continuation can be requested and joined.
    pub fn can_continue(&self) -> bool {
        self.is_mendable && !self.has_unrequestable_part && self.is_exact()
    }

    /// Returns whether a client that received the whole choice has exactly these characters, and no half
    /// character.
    pub fn is_exact(&self) -> bool {
        self.exact && !self.half_open
    }

    /// Returns the text after the last call, or `None` if no text follows it. The model wrote the text after the
    /// call, so the call is complete.
    ///
    /// ```
    /// use endmark_wire::reply::{Choice, ToolCall};
    ///
    /// let mut choice = Choice { text: "I look. Now".into(), last_call_at: 7, ..Choice::new(0) };
    /// assert_eq!(choice.text_after_calls(), None);
    /// choice.tool_calls.push(ToolCall::default());
    /// assert_eq!(choice.text_after_calls(), Some(" Now"));
    /// ```
    pub fn text_after_calls(&self) -> Option<&str> {
        let text_after = self.text.get(self.last_call_at..).filter(|_| !self.tool_calls.is_empty());
        text_after.filter(|text| !text.trim().is_empty())
    }

    /// Returns whether a client appends the next piece of this call to the received part. If calls share an
    /// index or have none, that is certain only for the last call.
    pub fn can_extend_call(&self, call: &ToolCall) -> bool {
        let is_last = self.tool_calls.last().is_some_and(|last| last.index == call.index);
        is_last || self.tool_calls.iter().all(|call| call.piece_key == PieceKey::Number)
    }

    /// Records that, apart from its thoughts, the model wrote only the text and the arguments.
    pub(crate) fn note_written(&mut self) {
        let arguments = self.tool_calls.iter().map(|call| &call.arguments);
        for text in std::iter::once(&self.text).chain(arguments) {
            self.received_bytes += text.len();
            self.written.add(text);
        }
    }

    /// Records that a thought arrived.
    pub(crate) fn note_thought(&mut self) {
        self.has_reasoning = true;
        self.ends_in_unshown_part =
            self.has_unrequestable_part || !self.text.trim().is_empty() || !self.tool_calls.is_empty();
    }

    /// Records a part that no request can contain.
    pub(crate) fn note_unshowable(&mut self) {
        (self.has_unrequestable_part, self.ends_in_unshown_part) = (true, true);
    }

    /// Records how the choice ended.
    pub(crate) fn end(&mut self, finish: Option<Finish>) {
        if let Some(finish) = finish {
            self.is_refused |= finish.stop == Some(endmark_recovery::Stop::Refused);
            self.finish = Some(finish);
        }
    }
}
