//! Detects XML-like tags, with any text in and around them. A text is whole if all tags are closed.

mod elements;
mod html;
mod scanner;

use serde::{Deserialize, Serialize};

use elements::{OpenElements, TOO_MANY_ELEMENTS};
use scanner::{ScanStep, Scanner};

use super::text::TextMachine;
use crate::{Markup, Open, Truncation, Verdict};

/// The state of the tag detection (PC-1). The text in tags is often code, so only certain tags count.
/// `docs/detect.md` has the rules.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct TagsMachine {
    text: TextMachine,
    scanner: Scanner,
    elements: OpenElements,
    /// Whether a tag outside elements counts only at the beginning of a line, because the format is only a
    /// guess.
    guessed: bool,
    /// Whether the current line contains only whitespace and tags.
    blank_line: bool,
    /// Whether the text is declared as HTML.
    html: bool,
    /// The kind of the first tag.
    first: Option<FirstTag>,
    /// The last position after a tag at which no element was open.
    balanced: usize,
    /// Start of the last settled token, which is a tag or the text after the last tag.
    token: usize,
    /// Whether the last settled token is text.
    token_is_text: bool,
    /// Start of the tag that exceeds the limit of open elements.
    #[serde(default)]
    too_deep: Option<usize>,
}

/// The kind of a text's first tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum FirstTag {
    /// An HTML element, other than `<html>`.
    Html,
    /// Any other tag, or a document type or XML declaration.
    Other,
}

impl TagsMachine {
    /// Creates a machine for a text that may not contain tags: outside elements, only a tag at the beginning
    /// of a line counts.
    pub(super) fn for_unknown_format() -> Self {
        Self { guessed: true, blank_line: true, ..Self::default() }
    }

    /// Reads the next bytes of the text.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        let base = self.text.position();
        self.text.push(chunk);
        let mut at = 0;
        while let Some(rest) = chunk.get(at..).filter(|rest| !rest.is_empty() && !self.is_too_deep()) {
            if self.scanner.is_in_text() && !self.guessed {
                let length = memchr::memchr(b'<', rest).unwrap_or(rest.len());
                self.read_text(&rest[..length], base + at);
                at += length;
                if length == rest.len() {
                    break;
                }
            }
            self.step(chunk[at], base + at);
            at += 1;
        }
    }

    /// Processes bytes of text without a `<`.
    fn read_text(&mut self, bytes: &[u8], base: usize) {
        if let Some(place) = bytes.iter().position(|byte| !byte.is_ascii_whitespace()) {
            self.begin_text(base + place);
        }
        self.scanner.skip_text(bytes);
    }

    fn begin_text(&mut self, offset: usize) {
        if !self.token_is_text {
            self.token = offset;
            self.token_is_text = true;
        }
    }

    fn step(&mut self, byte: u8, offset: usize) {
        let was_text = self.scanner.is_in_text();
        match self.scanner.step(byte, offset) {
            ScanStep::Inside => return,
            ScanStep::Text { start } => {
                if !byte.is_ascii_whitespace() || start < offset {
                    self.begin_text(start);
                    self.blank_line = false;
                }
            }
            ScanStep::Start { start, empty } => self.start_tag(start, offset + 1, empty),
            ScanStep::End { start } => self.end_tag(start, offset + 1),
            ScanStep::Markup { start } => self.settle_tag(start, offset + 1),
        }
        if byte == b'\n' && was_text {
            self.blank_line = true;
        }
    }

    /// Records a complete tag.
    fn settle_tag(&mut self, start: usize, end: usize) {
        self.token = start;
        self.token_is_text = false;
        if self.scanner.markup_is_document() {
            self.html |= self.scanner.markup_is_html();
            self.first.get_or_insert(FirstTag::Other);
        }
        if self.elements.is_empty() && self.first.is_some() {
            self.balanced = end;
        }
    }

    fn start_tag(&mut self, start: usize, end: usize, empty: bool) {
        let written = self.scanner.name().into_owned();
        let name = written.to_ascii_lowercase();
        let is_element = html::is_html_element(&name);
        let stray = self.guessed && self.elements.is_empty() && !self.blank_line;
        if stray || !self.scanner.is_certain(is_element && name.len() > 1) {
            self.begin_text(start);
            self.blank_line = false;
            return;
        }
        let first = if is_element && name != "html" { FirstTag::Html } else { FirstTag::Other };
        self.first.get_or_insert(first);
        self.html |= name == "html";
        while self.elements.last().is_some_and(|last| html::is_ended_by(&last, &name)) {
            self.elements.pop();
        }
        if !empty && !html::is_void(&name, self.scanner.has_attributes()) {
            if !self.elements.has_room() {
                self.too_deep = Some(start);
                return;
            }
            if html::is_raw(&name) {
                self.scanner.enter_raw_text();
            }
            self.elements.push(&written);
        }
        self.settle_tag(start, end);
    }

    fn end_tag(&mut self, start: usize, end: usize) {
        let name = self.scanner.name().to_ascii_lowercase();
        if self.scanner.accept_end_tag(self.elements.last().as_deref(), &name) && self.elements.close(&name) {
            self.settle_tag(start, end);
        } else {
            self.begin_text(start);
        }
    }

    /// Whether this state satisfies the assumptions of later code. Used to check restored states.
    pub(super) fn is_consistent(&self) -> bool {
        let position = self.text.position();
        self.text.is_consistent()
            && self.scanner.is_consistent(position)
            && self.elements.is_consistent()
            && self.balanced.max(self.token).max(self.too_deep.unwrap_or(0)) <= position
    }

    /// Returns the number of bytes read so far.
    pub(super) fn position(&self) -> usize {
        self.text.position()
    }

    /// Whether the text is not UTF-8, or has too many open elements.
    pub(super) fn is_malformed(&self) -> bool {
        self.text.is_malformed() || self.is_too_deep()
    }

    /// Whether the limit of open elements is exceeded.
    pub(super) fn is_too_deep(&self) -> bool {
        self.too_deep.is_some()
    }

    /// Returns the kind of the first tag, or `None` for a text without tags.
    pub(super) fn first(&self) -> Option<FirstTag> {
        self.first
    }

    /// Whether the text contains no tag, although it began with one.
    pub(super) fn is_only_text(&self) -> bool {
        self.first.is_none() && self.scanner.is_in_text() && self.token_is_text
    }

    /// Whether the text contains a tag, and all tags are closed.
    pub(super) fn is_whole(&self) -> bool {
        let first = self.first.is_some();
        self.text.is_whole()
            && first
            && !self.is_too_deep()
            && !self.is_in_tag()
            && self.open_elements().next().is_none()
    }

    /// Whether the text ends within a tag.
    fn is_in_tag(&self) -> bool {
        self.scanner.is_open(!self.elements.is_empty())
    }

    /// Returns the names of the open elements that must be closed.
    fn open_elements(&self) -> impl Iterator<Item = &str> {
        let lenient = self.html && !self.elements.contains("html");
        let names = self.elements.names();
        let end = if lenient {
            names
                .iter()
                .rposition(|name| !html::has_optional_end(&name.to_ascii_lowercase()))
                .map_or(0, |last| last + 1)
        } else {
            names.len()
        };
        names[..end].iter().map(AsRef::as_ref)
    }

    /// Returns the verdict as if the text ended here.
    pub(super) fn verdict(&self) -> Verdict {
        match (self.text.verdict(), self.too_deep) {
            (Verdict::Malformed { index, reason }, too_deep)
                if too_deep.is_none_or(|place| index < place) =>
            {
                return Verdict::Malformed { index, reason };
            }
            (_, Some(index)) => return Verdict::Malformed { index, reason: TOO_MANY_ELEMENTS.to_owned() },
            (verdict, None) if self.is_whole() => return verdict,
            (_, None) => {}
        }
        let mut truncation = self.text.truncation();
        let is_open = self.is_in_tag();
        let settled = if is_open { self.scanner.settled_end() } else { None };
        let end = settled.unwrap_or(usize::MAX).min(truncation.truncation_index);
        truncation.truncation_index = end;
        truncation.balanced_index = self.balanced.min(end);
        let token = match self.scanner.tag_start() {
            Some(start) if is_open && start < end => start,
            _ => self.token,
        };
        let token = self.text.token(token, end);
        if !token.is_empty() {
            truncation.last_valid_token = token;
        }
        truncation.open = self.open_elements().map(|name| Open::Tag(name.to_owned())).collect();
        self.add_open_markup(&mut truncation);
        Verdict::Truncated(truncation)
    }

    /// Adds the open markup, and the kind of token at the cut.
    fn add_open_markup(&self, truncation: &mut Truncation) {
        if let Some(markup) = self.scanner.markup() {
            truncation.open.push(Open::Markup(markup));
        }
        if self.is_in_tag() {
            truncation.in_token = truncation.in_token.or(self
                .scanner
                .markup()
                .map(Markup::in_token)
                .or(self.scanner.in_token()));
        }
    }
}

#[cfg(test)]
mod tests;
