//! Finds where HTML blocks begin and end (`CommonMark`, section 4.6).

use serde::{Deserialize, Serialize};

use crate::Markup;

/// Maximum number of examined bytes at the start of a block. The longest are `<figcaption` and `<![CDATA[`.
const MAX_NAME_BYTES: usize = 12;

/// The elements that begin a block up to the next blank line.
const BLOCK_ELEMENTS: [&[u8]; 62] = [
    b"address",
    b"article",
    b"aside",
    b"base",
    b"basefont",
    b"blockquote",
    b"body",
    b"caption",
    b"center",
    b"col",
    b"colgroup",
    b"dd",
    b"details",
    b"dialog",
    b"dir",
    b"div",
    b"dl",
    b"dt",
    b"fieldset",
    b"figcaption",
    b"figure",
    b"footer",
    b"form",
    b"frame",
    b"frameset",
    b"h1",
    b"h2",
    b"h3",
    b"h4",
    b"h5",
    b"h6",
    b"head",
    b"header",
    b"hr",
    b"html",
    b"iframe",
    b"legend",
    b"li",
    b"link",
    b"main",
    b"menu",
    b"menuitem",
    b"nav",
    b"noframes",
    b"ol",
    b"optgroup",
    b"option",
    b"p",
    b"param",
    b"search",
    b"section",
    b"summary",
    b"table",
    b"tbody",
    b"td",
    b"tfoot",
    b"th",
    b"thead",
    b"title",
    b"tr",
    b"track",
    b"ul",
];

/// Returns the element with this name if its block lasts until an end tag.
fn raw_element(name: &[u8]) -> Option<Markup> {
    match name {
        b"pre" => Some(Markup::Preformatted),
        b"script" => Some(Markup::Script),
        b"style" => Some(Markup::Style),
        b"textarea" => Some(Markup::TextArea),
        _ => None,
    }
}

/// The kind of an open HTML block, and how much of its end was read.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) enum HtmlBlock {
    /// The block ends before a blank line.
    UntilBlank,
    /// The block ends with the line that contains this end sequence.
    UntilSigns { markup: Markup, matched: EndSequence },
}

/// The part of an end sequence that the text ends with.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct EndSequence {
    /// Number of matching characters. For an end tag, number of bytes after `<`.
    length: usize,
    name: [u8; MAX_NAME_BYTES],
}

impl HtmlBlock {
    fn new(markup: Markup) -> Self {
        // `<!-->` and `<?>` are complete blocks.
        let length = match markup {
            Markup::Comment => 2,
            Markup::Instruction => 1,
            _ => 0,
        };
        Self::UntilSigns { markup, matched: EndSequence { length, name: [0; MAX_NAME_BYTES] } }
    }

    /// Whether this state satisfies the assumptions of later code. Used to check restored states.
    pub(super) fn is_consistent(&self) -> bool {
        match self {
            Self::UntilBlank => true,
            Self::UntilSigns { matched, .. } => matched.length <= MAX_NAME_BYTES + 1,
        }
    }

    /// Processes a byte. Returns whether the block ends with this line.
    pub(super) fn step(&mut self, byte: u8) -> bool {
        let Self::UntilSigns { markup, matched } = self else { return false };
        let (sign, needed) = match markup {
            Markup::Comment => (b'-', 2),
            Markup::CharacterData => (b']', 2),
            Markup::Instruction => (b'?', 1),
            Markup::Declaration => return byte == b'>',
            Markup::Preformatted | Markup::Script | Markup::Style | Markup::TextArea => {
                return matched.step_tag(byte);
            }
        };
        let ended = byte == b'>' && matched.length == needed;
        matched.length = if byte == sign { (matched.length + 1).min(needed) } else { 0 };
        ended
    }
}

impl EndSequence {
    fn step_tag(&mut self, byte: u8) -> bool {
        match byte {
            b'<' => self.length = 1,
            b'>' if self.length > 1 => {
                let name = self.name.get(..self.length - 1).unwrap_or_default();
                self.length = 0;
                return name.strip_prefix(b"/").is_some_and(|name| raw_element(name).is_some());
            }
            _ if (1..=MAX_NAME_BYTES).contains(&self.length) => {
                self.name[self.length - 1] = byte.to_ascii_lowercase();
                self.length += 1;
            }
            _ => self.length = 0,
        }
        false
    }
}

/// A line that begins with `<` and may begin an HTML block.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) enum HtmlStart {
    /// After `<` and these lowercase bytes.
    Name { name: [u8; MAX_NAME_BYTES], length: usize },
    /// In a tag that may be alone on the line.
    Tag(TagPosition),
}

/// The position in a tag that must be complete and alone on its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum TagPosition {
    /// In the name of an end tag, or after it.
    Closing { name_ended: bool },
    /// In the name of a start tag.
    Name,
    /// After whitespace.
    Space,
    /// In the name of an attribute.
    Attribute,
    /// After an attribute's name and whitespace.
    AfterAttribute,
    /// After `=`.
    Equals,
    /// In an unquoted value.
    Bare,
    /// In a value that began with this quotation mark.
    Quoted(u8),
    /// Right after a quoted value.
    AfterQuote,
    /// After `/`.
    Slash,
    /// After `>`.
    Done,
}

/// The effect of a byte on a line that may begin an HTML block.
pub(super) enum HtmlStep {
    /// The line may still begin a block.
    Open(HtmlStart),
    /// The line begins this block.
    Block(HtmlBlock),
    /// The line does not begin a block.
    None,
}

impl HtmlStart {
    /// Creates the state after `<`.
    pub(super) fn new() -> Self {
        Self::Name { name: [0; MAX_NAME_BYTES], length: 0 }
    }

    /// Whether this state satisfies the assumptions of later code. Used to check restored states.
    pub(super) fn is_consistent(self) -> bool {
        match self {
            Self::Name { length, .. } => length <= MAX_NAME_BYTES,
            Self::Tag(_) => true,
        }
    }

    /// Processes the next byte of the line. A line feed ends the line.
    pub(super) fn step(self, byte: u8) -> HtmlStep {
        match self {
            Self::Name { name, length } => Self::step_name(name, length, byte),
            Self::Tag(tag) => Self::step_tag(tag, byte),
        }
    }

    #[expect(clippy::match_same_arms, reason = "an arm is one beginning")]
    fn step_name(mut name: [u8; MAX_NAME_BYTES], length: usize, byte: u8) -> HtmlStep {
        let seen = &name[..length];
        let ends = matches!(byte, b' ' | b'\t' | b'\n' | b'>');
        if ends && let Some(element) = raw_element(seen) {
            let mut block = HtmlBlock::new(element);
            block.step(byte);
            return HtmlStep::Block(block);
        }
        let element = seen.strip_prefix(b"/").unwrap_or(seen);
        if (ends || byte == b'/') && BLOCK_ELEMENTS.contains(&element) {
            return HtmlStep::Block(HtmlBlock::UntilBlank);
        }
        match (seen, byte) {
            (b"", b'?') => return HtmlStep::Block(HtmlBlock::new(Markup::Instruction)),
            (b"!", b'a'..=b'z' | b'A'..=b'Z') => return HtmlStep::Block(HtmlBlock::new(Markup::Declaration)),
            (b"!-", b'-') => return HtmlStep::Block(HtmlBlock::new(Markup::Comment)),
            (b"![cdata", b'[') => return HtmlStep::Block(HtmlBlock::new(Markup::CharacterData)),
            (b"", b'!' | b'/') | (b"!", b'-' | b'[') => {}
            (b"![" | b"![c" | b"![cd" | b"![cda" | b"![cdat", b'A'..=b'Z') => {}
            (b"" | b"/", _) if byte.is_ascii_alphabetic() => {}
            ([.., last], _) if last.is_ascii_alphanumeric() || *last == b'-' => {
                let closing = seen.starts_with(b"/");
                if seen.starts_with(b"!") {
                    return HtmlStep::None;
                }
                if length == MAX_NAME_BYTES || !(byte.is_ascii_alphanumeric() || byte == b'-') {
                    let tag =
                        if closing { TagPosition::Closing { name_ended: false } } else { TagPosition::Name };
                    return Self::step_tag(tag, byte);
                }
            }
            _ => return HtmlStep::None,
        }
        name[length] = byte.to_ascii_lowercase();
        HtmlStep::Open(Self::Name { name, length: length + 1 })
    }

    #[expect(clippy::match_same_arms, reason = "the arms are in the order of the grammar")]
    fn step_tag(tag: TagPosition, byte: u8) -> HtmlStep {
        let is_space = matches!(byte, b' ' | b'\t');
        let next = match (tag, byte) {
            (TagPosition::Done, b'\n') => return HtmlStep::Block(HtmlBlock::UntilBlank),
            (TagPosition::Done, _) if is_space => TagPosition::Done,
            (_, b'\n') | (TagPosition::Done, _) => return HtmlStep::None,
            (TagPosition::Closing { name_ended: false }, _)
                if byte.is_ascii_alphanumeric() || byte == b'-' =>
            {
                tag
            }
            (TagPosition::Closing { .. }, _) if is_space => TagPosition::Closing { name_ended: true },
            (TagPosition::Closing { .. }, b'>') => TagPosition::Done,
            (TagPosition::Name, _) if byte.is_ascii_alphanumeric() || byte == b'-' => tag,
            (TagPosition::Quoted(quote), _) if byte == quote => TagPosition::AfterQuote,
            (TagPosition::Quoted(_), _) => tag,
            (TagPosition::Equals, _) if is_space => tag,
            (TagPosition::Equals, b'"' | b'\'') => TagPosition::Quoted(byte),
            (TagPosition::Equals | TagPosition::Bare, b'<' | b'=' | b'`' | b'"' | b'\'') => {
                return HtmlStep::None;
            }
            (TagPosition::Equals, b'>') => return HtmlStep::None,
            (TagPosition::AfterAttribute, _) if is_space => tag,
            (TagPosition::Attribute, _) if is_space => TagPosition::AfterAttribute,
            (TagPosition::Attribute | TagPosition::AfterAttribute, b'=') => TagPosition::Equals,
            (TagPosition::Attribute, b'_' | b'.' | b':' | b'-' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z') => {
                tag
            }
            (TagPosition::Slash, b'>') => TagPosition::Done,
            (TagPosition::Slash, _) => return HtmlStep::None,
            (TagPosition::Name | TagPosition::Bare | TagPosition::AfterQuote | TagPosition::Space, _)
                if is_space =>
            {
                TagPosition::Space
            }
            (
                TagPosition::Name
                | TagPosition::Bare
                | TagPosition::AfterQuote
                | TagPosition::Space
                | TagPosition::Attribute
                | TagPosition::AfterAttribute,
                b'>',
            ) => TagPosition::Done,
            (TagPosition::Equals | TagPosition::Bare, _) => TagPosition::Bare,
            (
                TagPosition::Name
                | TagPosition::AfterQuote
                | TagPosition::Space
                | TagPosition::Attribute
                | TagPosition::AfterAttribute,
                b'/',
            ) => TagPosition::Slash,
            (TagPosition::Space | TagPosition::AfterAttribute, b'_' | b':' | b'a'..=b'z' | b'A'..=b'Z') => {
                TagPosition::Attribute
            }
            _ => return HtmlStep::None,
        };
        HtmlStep::Open(Self::Tag(next))
    }
}
