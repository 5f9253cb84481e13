//! Computes the results as if the text ended here.

use super::{JsonMachine, State};
use crate::{InToken, OpenStack, Truncation, Verdict};

impl JsonMachine {
    /// Whether the text ends in a string with only its opening quote settled.
    fn has_only_quote(&self) -> bool {
        matches!(self.state, State::String { .. }) && self.settled.end == self.settled.speaking + 1
    }

    /// Returns the start of the source that a later verdict may report.
    pub(super) fn kept_start(&self) -> usize {
        if self.has_only_quote() { self.settled.speaking_before } else { self.settled.speaking }
    }

    /// Returns the number of bytes read so far.
    pub(in crate::detect) fn position(&self) -> usize {
        self.position
    }

    /// Returns the first invalid byte and the reason, if no continuation could make the text valid.
    pub(in crate::detect) fn malformation(&self) -> Option<(usize, &str)> {
        self.malformed.as_ref().map(|(index, reason)| (*index, reason.as_ref()))
    }

    /// Returns the position of the first raw control character in a string.
    pub(in crate::detect) fn control_character(&self) -> Option<usize> {
        self.control
    }

    /// Returns the end of the last complete top-level value, even if the text is malformed after it.
    pub(in crate::detect) fn value_end(&self) -> Option<usize> {
        (self.balanced > 0).then_some(self.balanced)
    }

    /// Whether the text would be whole if it ended here.
    pub(in crate::detect) fn is_whole(&self) -> bool {
        match &self.state {
            State::Done { .. } => true,
            State::Number(number) => self.nesting.depth() == 0 && number.is_whole(),
            _ => false,
        }
    }

    /// Whether a key with its colon was read. Other text than JSON rarely contains one.
    pub(in crate::detect) fn has_member(&self) -> bool {
        self.member
    }

    /// Returns the verdict as if the text ended here.
    pub(in crate::detect) fn verdict(&self) -> Verdict {
        if let Some((index, reason)) = self.malformation() {
            return Verdict::Malformed { index, reason: reason.to_owned() };
        }
        if let State::Marked = self.state {
            // The grammar has no byte order mark, so a mark without a value is not a beginning of JSON.
            return Verdict::Malformed { index: 0, reason: "a byte order mark and nothing else".to_owned() };
        }
        if self.is_whole() {
            return Verdict::Whole;
        }
        let open = OpenStack::from_json(&self.nesting, matches!(self.state, State::String { .. }));
        Verdict::Truncated(Truncation {
            truncation_index: self.truncation_index(),
            balanced_index: self.balanced,
            last_valid_token: self.last_valid_token(),
            open,
            in_token: self.in_token(),
        })
    }

    fn truncation_index(&self) -> usize {
        match &self.state {
            State::String { .. } => self.settled.end,
            State::Number(_) | State::Literal => self.pending,
            _ if self.settled.end == 0 => 0,
            _ => self.position,
        }
    }

    fn last_valid_token(&self) -> String {
        if self.settled.end == 0 {
            self.tail.unsettled_tail()
        } else if self.has_only_quote() {
            self.tail.settled_from(self.settled.speaking_before)
        } else {
            self.tail.settled_from(self.settled_token_start())
        }
    }

    /// Returns the start of the last settled token.
    fn settled_token_start(&self) -> usize {
        // Inside brackets, the last token in these states is a comma, a colon or `[`.
        let after_sign = self.nesting.depth() > 0
            && matches!(self.state, State::Key | State::Value | State::Number(_) | State::Literal);
        if after_sign { self.settled.end - 1 } else { self.settled.speaking }
    }

    fn in_token(&self) -> Option<InToken> {
        match &self.state {
            State::String { .. } if self.string.is_in_escape() => Some(InToken::Escape),
            State::String { .. } if self.string.is_in_character() => Some(InToken::Utf8),
            State::String { .. } => Some(InToken::String),
            State::Number(_) => Some(InToken::Number),
            State::Literal => Some(InToken::Literal),
            State::ByteOrderMark(_) => Some(InToken::Utf8),
            _ => None,
        }
    }
}
