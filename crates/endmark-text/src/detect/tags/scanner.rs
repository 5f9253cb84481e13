//! Scans one tag at a time, and decides whether the text after `<` is a tag.

use serde::{Deserialize, Serialize};

use std::borrow::Cow;

use crate::{InToken, Markup};

/// Maximum length of the name of a tag or attribute, in bytes.
const MAX_NAME_BYTES: usize = 100;

/// The keywords of declarations. Other text after `<!` is not markup.
const DECLARATIONS: [&[u8]; 5] = [b"doctype", b"element", b"attlist", b"entity", b"notation"];

/// The construct at the end of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
enum State {
    #[default]
    Text,
    /// After `<`.
    Less,
    /// After `</`.
    Slash,
    /// In a tag's name.
    Name { closing: bool },
    /// In an end tag, in whitespace after the name.
    Closing,
    /// In whitespace of a start tag.
    Space,
    /// In the name of an attribute, after this many bytes.
    Attribute(usize),
    /// In whitespace after the name of an attribute.
    AfterAttribute,
    /// After `=`.
    Equals,
    /// In an unquoted value. `slash` means that it ends in `/` so far.
    Bare { slash: bool },
    /// In a value that began with this quotation mark.
    Quoted(u8),
    /// Right after a quoted value.
    AfterQuote,
    /// After `/` in a start tag.
    Empty,
    /// After `<!` and any number of following bytes, which are in `name`.
    Bang,
    /// After `<?` and any number of following bytes, which are in `name`.
    Question,
    /// In markup with its own end sequence, after this many matching characters of that sequence.
    Markup(Markup, u8),
}

/// The effect of a byte.
pub(super) enum ScanStep {
    /// The byte belongs to a possible tag.
    Inside,
    /// The byte is text, like all bytes since `start`.
    Text { start: usize },
    /// A start tag is complete. `empty` means that it is self-closing.
    Start { start: usize, empty: bool },
    /// An end tag is complete.
    End { start: usize },
    /// A comment, CDATA section, instruction or declaration is complete.
    Markup { start: usize },
}

/// Separates tags from text.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Scanner {
    state: State,
    /// Start of the tag.
    start: usize,
    /// End of the settled part of the tag, if any part is settled.
    settled: usize,
    name: Vec<u8>,
    /// The two bytes before the tag, and the two bytes before the next byte of text.
    before: [u8; 2],
    previous: [u8; 2],
    /// Whether the tag has an attribute, and whether it has one with a value.
    attribute: bool,
    value: bool,
    /// Whether the text is in an element with content that is not parsed as markup.
    raw: bool,
}

impl Scanner {
    /// Whether this state can occur after `position` bytes, as far as later code assumes. Used to check
    /// restored states.
    pub(super) fn is_consistent(&self, position: usize) -> bool {
        self.start.max(self.settled) <= position && self.name.len() <= MAX_NAME_BYTES
    }

    /// Whether the text does not end within a possible tag.
    pub(super) fn is_in_text(&self) -> bool {
        self.state == State::Text
    }

    /// Processes bytes of text without a `<`.
    pub(super) fn skip_text(&mut self, bytes: &[u8]) {
        match bytes {
            [] => {}
            [byte] => self.previous = [self.previous[1], *byte],
            [.., first, second] => self.previous = [*first, *second],
        }
    }

    /// Processes one byte at `offset` in the text.
    #[expect(clippy::match_same_arms, reason = "the arms are in the order of the grammar")]
    pub(super) fn step(&mut self, byte: u8, offset: usize) -> ScanStep {
        let is_space = byte.is_ascii_whitespace();
        match self.state {
            State::Text => return self.read_text(byte, offset),
            State::Less => match byte {
                b'/' => self.state = State::Slash,
                b'!' if !self.raw => self.state = State::Bang,
                b'?' if !self.raw => self.state = State::Question,
                _ if is_name_start(byte) && !self.raw && !matches!(self.before[1], b'`' | b'\\' | b'<') => {
                    self.begin_name(byte, false);
                }
                _ => return self.read_text(byte, offset),
            },
            State::Slash if is_name_start(byte) => self.begin_name(byte, true),
            State::Name { closing } => return self.step_name(byte, offset, closing),
            State::Closing if is_space => {}
            State::Closing if byte == b'>' => return self.end(ScanStep::End { start: self.start }),
            State::Markup(markup, signs) => return self.step_markup(byte, markup, signs),
            State::Bang => return self.read_bang(byte, offset),
            State::Question => return self.read_question(byte, offset),
            State::Quoted(quote) if byte == quote => self.settle(State::AfterQuote, offset + 1),
            State::Quoted(_) => {}
            State::Bare { .. } | State::AfterQuote | State::Space | State::Empty | State::AfterAttribute
                if is_space =>
            {
                let after = if self.state == State::AfterAttribute { self.state } else { State::Space };
                self.settle(after, offset + 1);
            }
            State::Empty if byte == b'>' => {
                return self.end(ScanStep::Start { start: self.start, empty: true });
            }
            State::Bare { .. }
            | State::AfterQuote
            | State::Space
            | State::Attribute(_)
            | State::AfterAttribute
                if byte == b'>' =>
            {
                let empty = self.state == State::Bare { slash: true };
                return self.end(ScanStep::Start { start: self.start, empty });
            }
            State::AfterQuote | State::Space | State::Attribute(_) | State::AfterAttribute
                if byte == b'/' =>
            {
                self.state = State::Empty;
            }
            State::Attribute(_) if is_space => self.settle(State::AfterAttribute, offset + 1),
            State::Attribute(_) | State::AfterAttribute if byte == b'=' => {
                self.settle(State::Equals, offset + 1);
            }
            State::Attribute(length) if is_name(byte) && length < MAX_NAME_BYTES => {
                self.state = State::Attribute(length + 1);
            }
            State::Space | State::AfterAttribute | State::AfterQuote
                if is_name_start(byte) || matches!(byte, b':' | b'@') =>
            {
                self.attribute = true;
                self.settle(State::Attribute(1), offset);
            }
            State::Equals if is_space => {}
            State::Equals if matches!(byte, b'"' | b'\'') => {
                self.value = true;
                self.state = State::Quoted(byte);
            }
            State::Equals | State::Bare { .. } if !matches!(byte, b'<' | b'>' | b'"' | b'\'' | b'`') => {
                self.value = true;
                self.state = State::Bare { slash: byte == b'/' };
            }
            _ => return self.read_text(byte, offset),
        }
        ScanStep::Inside
    }

    /// Treats all bytes since the start of the supposed tag as text. `byte` may begin another tag.
    fn read_text(&mut self, byte: u8, offset: usize) -> ScanStep {
        let start = if self.state == State::Text { offset } else { self.start };
        let failed = self.state != State::Text;
        if byte == b'<' {
            let before = match self.state {
                State::Text => self.previous,
                State::Less => [self.before[1], b'<'],
                State::Name { .. } | State::Attribute(_) => [0, b'a'],
                _ => [0; 2],
            };
            *self = Self { state: State::Less, start: offset, settled: offset, before, ..self.reset_tag() };
            return if failed { ScanStep::Text { start } } else { ScanStep::Inside };
        }
        self.previous = [if failed { 0 } else { self.previous[1] }, byte];
        self.state = State::Text;
        ScanStep::Text { start }
    }

    /// Returns a new state that keeps only what outlasts a tag.
    fn reset_tag(&mut self) -> Self {
        let mut name = std::mem::take(&mut self.name);
        name.clear();
        Self { name, raw: self.raw, ..Self::default() }
    }

    fn end(&mut self, step: ScanStep) -> ScanStep {
        self.state = State::Text;
        self.previous = [0, b'>'];
        step
    }

    fn settle(&mut self, state: State, settled: usize) {
        self.state = state;
        self.settled = settled;
    }

    fn begin_name(&mut self, byte: u8, closing: bool) {
        self.add(byte);
        self.state = State::Name { closing };
    }

    fn add(&mut self, byte: u8) {
        self.name.push(byte);
    }

    fn step_name(&mut self, byte: u8, offset: usize, closing: bool) -> ScanStep {
        let is_complete = !self.name.ends_with(b":");
        match byte {
            _ if is_name(byte) && self.name.len() < MAX_NAME_BYTES => self.add(byte),
            b'>' if is_complete && closing => return self.end(ScanStep::End { start: self.start }),
            b'>' if is_complete => return self.end(ScanStep::Start { start: self.start, empty: false }),
            b'/' if !closing => self.state = State::Empty,
            b'=' if !closing => {
                self.attribute = true;
                self.settle(State::Equals, offset + 1);
            }
            _ if byte.is_ascii_whitespace() && is_complete => {
                let state = if closing { State::Closing } else { State::Space };
                self.settle(state, offset + 1);
            }
            _ => return self.read_text(byte, offset),
        }
        ScanStep::Inside
    }

    fn read_bang(&mut self, byte: u8, offset: usize) -> ScanStep {
        let is_declaration = DECLARATIONS.iter().any(|word| word.eq_ignore_ascii_case(&self.name));
        if is_declaration && byte.is_ascii_whitespace() {
            self.settle(State::Markup(Markup::Declaration, 0), offset + 1);
            return ScanStep::Inside;
        }
        if !byte.is_ascii_graphic() {
            return self.read_text(byte, offset);
        }
        self.add(byte);
        match self.name.as_slice() {
            b"--" => self.settle(State::Markup(Markup::Comment, 0), offset + 1),
            b"[CDATA[" => self.settle(State::Markup(Markup::CharacterData, 0), offset + 1),
            seen if b"--".starts_with(seen) || b"[CDATA[".starts_with(seen) => {}
            seen if DECLARATIONS.iter().any(|word| begins_with(word, seen)) => {}
            _ => return self.read_text(byte, offset),
        }
        ScanStep::Inside
    }

    fn read_question(&mut self, byte: u8, offset: usize) -> ScanStep {
        // Only XML instructions count. Code in other languages, such as PHP, also begins with `<?` but may
        // have no end.
        if !byte.is_ascii_alphabetic() {
            return self.read_text(byte, offset);
        }
        self.add(byte);
        if self.name.eq_ignore_ascii_case(b"xml") {
            self.settle(State::Markup(Markup::Instruction, 0), offset + 1);
        } else if !begins_with(b"xml", &self.name) {
            return self.read_text(byte, offset);
        }
        ScanStep::Inside
    }

    fn step_markup(&mut self, byte: u8, markup: Markup, matched: u8) -> ScanStep {
        let (sign, needed) = match markup {
            Markup::Comment => (b'-', 2),
            Markup::CharacterData => (b']', 2),
            Markup::Instruction => (b'?', 1),
            _ => {
                // A declaration may contain further declarations in brackets.
                let depth = match byte {
                    b'[' => matched.saturating_add(1),
                    b']' => matched.saturating_sub(1),
                    b'>' if matched == 0 => return self.end(ScanStep::Markup { start: self.start }),
                    _ => matched,
                };
                if self.name.len() < MAX_NAME_BYTES && byte.is_ascii() {
                    self.add(byte);
                }
                self.state = State::Markup(markup, depth);
                return ScanStep::Inside;
            }
        };
        if byte == b'>' && matched == needed {
            return self.end(ScanStep::Markup { start: self.start });
        }
        let signs = if byte == sign { matched.saturating_add(1).min(needed) } else { 0 };
        self.state = State::Markup(markup, signs);
        ScanStep::Inside
    }

    /// Returns the name of the complete tag.
    pub(super) fn name(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.name)
    }

    /// Whether the tag has an attribute.
    pub(super) fn has_attributes(&self) -> bool {
        self.attribute
    }

    /// Whether the tag directly follows a word, as in `List<String>`.
    fn is_attached(&self) -> bool {
        let [_, last] = self.before;
        last.is_ascii_alphanumeric() || matches!(last, b'_' | b')' | b']') || self.before == *b"::"
    }

    /// Whether a start tag is certain. `List<String>` and `a <b and c> d` contain none.
    pub(super) fn is_certain(&self, is_known: bool) -> bool {
        is_known || self.value || !self.is_attached() && !self.attribute
    }

    /// Enters an element with content that is not parsed as markup.
    pub(super) fn enter_raw_text(&mut self) {
        self.raw = true;
    }

    /// Whether an end tag with this name can close an element. `last` is the innermost open one.
    pub(super) fn accept_end_tag(&mut self, last: Option<&str>, name: &str) -> bool {
        if self.raw && last != Some(name) {
            return false;
        }
        self.raw = false;
        true
    }

    /// Whether the complete markup begins a document: a document type or an XML declaration.
    pub(super) fn markup_is_document(&self) -> bool {
        begins_with(&self.name, b"doctype") || self.name.eq_ignore_ascii_case(b"xml")
    }

    /// Whether the complete markup declares an HTML document.
    pub(super) fn markup_is_html(&self) -> bool {
        begins_with(&self.name, b"doctypehtml")
    }

    /// Returns the start of the possible tag at the end of the text, if any.
    pub(super) fn tag_start(&self) -> Option<usize> {
        (self.state != State::Text).then_some(self.start)
    }

    /// Whether the text ends in a tag that is certain so far. Within an element any possible tag counts,
    /// because the text is cut anyway.
    pub(super) fn is_open(&self, in_element: bool) -> bool {
        match self.state {
            State::Text => false,
            State::Markup(..) => true,
            // Outside elements, an end tag closes nothing.
            State::Slash | State::Closing | State::Name { closing: true } => in_element,
            State::Less => {
                in_element || !self.is_attached() && !matches!(self.before[1], b'`' | b'\\' | b'<')
            }
            _ => in_element || self.value || !self.is_attached(),
        }
    }

    /// Returns the end of the settled text if the text ends in a tag, or `None` if all of the text is
    /// settled.
    pub(super) fn settled_end(&self) -> Option<usize> {
        match self.state {
            State::Text | State::Quoted(_) | State::Bare { .. } | State::Markup(..) => None,
            _ => Some(self.settled),
        }
    }

    /// Returns the kind of markup at the end of the text, if any.
    pub(super) fn markup(&self) -> Option<Markup> {
        match self.state {
            State::Markup(markup, _) => Some(markup),
            _ => None,
        }
    }

    /// Returns the kind of token at a cut here, or `None` outside tags.
    pub(super) fn in_token(&self) -> Option<InToken> {
        match self.state {
            State::Text => None,
            State::Quoted(_) | State::Bare { .. } => Some(InToken::Attribute),
            _ => Some(InToken::Tag),
        }
    }
}

/// Whether `word` begins with `beginning`, ignoring case.
fn begins_with(word: &[u8], beginning: &[u8]) -> bool {
    word.get(..beginning.len()).is_some_and(|start| start.eq_ignore_ascii_case(beginning))
}

fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn is_name(byte: u8) -> bool {
    is_name_start(byte) || byte.is_ascii_digit() || matches!(byte, b'-' | b'.' | b':')
}
