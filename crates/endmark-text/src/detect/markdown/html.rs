//! HTML blocks: how they begin and how they end (`CommonMark`, section 4.6).

use serde::{Deserialize, Serialize};

use crate::Markup;

/// Maximum bytes of a beginning that are examined: `<figcaption` or `<![CDATA[`, and one more byte.
const NAME_BYTES: usize = 12;

/// The elements whose block ends at a blank line.
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

/// Returns the element of this name if its block ends at an end tag.
fn raw_element(name: &[u8]) -> Option<Markup> {
    match name {
        b"pre" => Some(Markup::Preformatted),
        b"script" => Some(Markup::Script),
        b"style" => Some(Markup::Style),
        b"textarea" => Some(Markup::TextArea),
        _ => None,
    }
}

/// An HTML block, and how much of its end has arrived.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) enum HtmlBlock {
    /// The block ends before a blank line.
    UntilBlank,
    /// The block ends with the line that contains this ending.
    UntilSigns { markup: Markup, matched: Ending },
}

/// The part of an HTML block's end at the end of the text.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct Ending {
    /// Number of matching signs. For an end tag, the number of bytes after `<`.
    length: usize,
    name: [u8; NAME_BYTES],
}

impl HtmlBlock {
    fn new(markup: Markup) -> Self {
        // `<!-->` and `<?>` are complete.
        let length = match markup {
            Markup::Comment => 2,
            Markup::Instruction => 1,
            _ => 0,
        };
        Self::UntilSigns { markup, matched: Ending { length, name: [0; NAME_BYTES] } }
    }

    /// Whether this state is reachable, as far as later code relies on it.
    pub(super) fn is_consistent(&self) -> bool {
        match self {
            Self::UntilBlank => true,
            Self::UntilSigns { matched, .. } => matched.length <= NAME_BYTES + 1,
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

impl Ending {
    fn step_tag(&mut self, byte: u8) -> bool {
        match byte {
            b'<' => self.length = 1,
            b'>' if self.length > 1 => {
                let name = self.name.get(..self.length - 1).unwrap_or_default();
                self.length = 0;
                return name.strip_prefix(b"/").is_some_and(|name| raw_element(name).is_some());
            }
            _ if (1..=NAME_BYTES).contains(&self.length) => {
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
    /// After `<` and these bytes in lower case.
    Name { name: [u8; NAME_BYTES], length: usize },
    /// After the name of a tag that may be alone on the line.
    Tag(Tag),
}

/// The progress of a tag that must be complete and alone on its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Tag {
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
    /// In a value without quotes.
    Bare,
    /// In a value that began with this quote.
    Quoted(u8),
    /// Right after a quoted value.
    AfterQuote,
    /// After `/`.
    Slash,
    /// After `>`.
    Done,
}

/// The result of processing a byte of the line.
pub(super) enum HtmlStep {
    /// The text may still begin a block.
    Open(HtmlStart),
    /// It begins this one.
    Block(HtmlBlock),
    /// The text does not begin a block.
    None,
}

impl HtmlStart {
    /// After `<`.
    pub(super) fn new() -> Self {
        Self::Name { name: [0; NAME_BYTES], length: 0 }
    }

    /// Whether this state is reachable, as far as later code relies on it.
    pub(super) fn is_consistent(self) -> bool {
        match self {
            Self::Name { length, .. } => length <= NAME_BYTES,
            Self::Tag(_) => true,
        }
    }

    /// Processes the next byte of the line. A line feed is its end.
    pub(super) fn step(self, byte: u8) -> HtmlStep {
        match self {
            Self::Name { name, length } => Self::step_name(name, length, byte),
            Self::Tag(tag) => Self::step_tag(tag, byte),
        }
    }

    #[expect(clippy::match_same_arms, reason = "an arm is one beginning")]
    fn step_name(mut name: [u8; NAME_BYTES], length: usize, byte: u8) -> HtmlStep {
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
                if length == NAME_BYTES || !(byte.is_ascii_alphanumeric() || byte == b'-') {
                    let tag = if closing { Tag::Closing { name_ended: false } } else { Tag::Name };
                    return Self::step_tag(tag, byte);
                }
            }
            _ => return HtmlStep::None,
        }
        name[length] = byte.to_ascii_lowercase();
        HtmlStep::Open(Self::Name { name, length: length + 1 })
    }

    #[expect(clippy::match_same_arms, reason = "the arms are in the order of the grammar")]
    fn step_tag(tag: Tag, byte: u8) -> HtmlStep {
        let is_space = matches!(byte, b' ' | b'\t');
        let next = match (tag, byte) {
            (Tag::Done, b'\n') => return HtmlStep::Block(HtmlBlock::UntilBlank),
            (Tag::Done, _) if is_space => Tag::Done,
            (_, b'\n') | (Tag::Done, _) => return HtmlStep::None,
            (Tag::Closing { name_ended: false }, _) if byte.is_ascii_alphanumeric() || byte == b'-' => tag,
            (Tag::Closing { .. }, _) if is_space => Tag::Closing { name_ended: true },
            (Tag::Closing { .. }, b'>') => Tag::Done,
            (Tag::Name, _) if byte.is_ascii_alphanumeric() || byte == b'-' => tag,
            (Tag::Quoted(quote), _) if byte == quote => Tag::AfterQuote,
            (Tag::Quoted(_), _) => tag,
            (Tag::Equals, _) if is_space => tag,
            (Tag::Equals, b'"' | b'\'') => Tag::Quoted(byte),
            (Tag::Equals | Tag::Bare, b'<' | b'=' | b'`' | b'"' | b'\'') => return HtmlStep::None,
            (Tag::Equals, b'>') => return HtmlStep::None,
            (Tag::AfterAttribute, _) if is_space => tag,
            (Tag::Attribute, _) if is_space => Tag::AfterAttribute,
            (Tag::Attribute | Tag::AfterAttribute, b'=') => Tag::Equals,
            (Tag::Attribute, b'_' | b'.' | b':' | b'-' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z') => tag,
            (Tag::Slash, b'>') => Tag::Done,
            (Tag::Slash, _) => return HtmlStep::None,
            (Tag::Name | Tag::Bare | Tag::AfterQuote | Tag::Space, _) if is_space => Tag::Space,
            (
                Tag::Name | Tag::Bare | Tag::AfterQuote | Tag::Space | Tag::Attribute | Tag::AfterAttribute,
                b'>',
            ) => Tag::Done,
            (Tag::Equals | Tag::Bare, _) => Tag::Bare,
            (Tag::Name | Tag::AfterQuote | Tag::Space | Tag::Attribute | Tag::AfterAttribute, b'/') => {
                Tag::Slash
            }
            (Tag::Space | Tag::AfterAttribute, b'_' | b':' | b'a'..=b'z' | b'A'..=b'Z') => Tag::Attribute,
            _ => return HtmlStep::None,
        };
        HtmlStep::Open(Self::Tag(next))
    }
}
