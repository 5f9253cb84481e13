//! The results of detection (PC-1).

use serde::{Deserialize, Serialize};

use std::borrow::Cow;

use crate::{Format, OpenStack};

/// Whether a text is whole, a valid beginning of something longer, or beyond repair (PC-1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing is missing.
    Whole,
    /// A valid beginning of something longer.
    Truncated(Truncation),
    /// No continuation could make the text valid.
    Malformed {
        /// Byte offset of the first byte that is not permitted there.
        index: usize,
        /// The reason as a lower-case fragment.
        reason: String,
    },
}

impl Verdict {
    /// Returns the literal name: `whole`, `truncated` or `malformed`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Truncated(_) => "truncated",
            Self::Malformed { .. } => "malformed",
        }
    }

    /// Whether nothing is missing.
    pub fn is_whole(&self) -> bool {
        matches!(self, Self::Whole)
    }

    /// Returns where and how the text is cut. Returns `None` if it is not.
    pub fn truncation(&self) -> Option<&Truncation> {
        match self {
            Self::Truncated(truncation) => Some(truncation),
            Self::Whole | Self::Malformed { .. } => None,
        }
    }
}

/// Where and how a text is cut (PC-1). Offsets are UTF-8 bytes from the beginning of the text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Truncation {
    /// Length of the text in which all tokens are settled, so that no continuation can change them.
    pub truncation_index: usize,
    /// The last offset at which all brackets are closed. 0 if there is no such offset.
    pub balanced_index: usize,
    /// The raw source of the last settled token. Within a string it is the settled part from the opening quote, at
    /// most its last 200 characters. Empty only if the text is empty.
    pub last_valid_token: String,
    /// The open elements, outermost first.
    pub open: OpenStack,
    /// The kind of the token at the cut, if the cut is within one.
    pub in_token: Option<InToken>,
}

/// A construct that was opened and not closed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Open {
    /// `{`
    Object,
    /// `[`
    Array,
    /// `"`
    String,
    /// A code fence of Markdown.
    Fence {
        /// A backtick or a tilde.
        sign: char,
        /// Number of signs that open it, and that must at least close it.
        length: usize,
    },
    /// The text of a Markdown link whose destination is open.
    Link,
    /// A row of a Markdown table.
    Row,
    /// A tag of this name.
    Tag(String),
    /// Markup with its own end sequence.
    Markup(Markup),
}

/// Markup with its own end sequence, whatever its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Markup {
    /// `<!--`, up to `-->`
    Comment,
    /// `<![CDATA[`, up to `]]>`
    CharacterData,
    /// `<?`, up to `?>`
    Instruction,
    /// `<!` and a letter, up to `>`
    Declaration,
    /// `<pre`, as an HTML block of Markdown, up to an end tag of this or one of the following
    Preformatted,
    /// `<script`
    Script,
    /// `<style`
    Style,
    /// `<textarea`
    TextArea,
}

/// Maximum number of displayed signs of a fence.
const MAX_SHOWN_FENCE_SIGNS: usize = 100;

impl Open {
    /// The opening sign, as in the answers of `detect`.
    pub fn sign(&self) -> Cow<'static, str> {
        match self {
            Self::Object => "{".into(),
            Self::Array | Self::Link => "[".into(),
            Self::String => "\"".into(),
            Self::Fence { sign, length } => {
                sign.to_string().repeat((*length).min(MAX_SHOWN_FENCE_SIGNS)).into()
            }
            Self::Row => "|".into(),
            Self::Tag(name) => format!("<{name}>").into(),
            Self::Markup(markup) => markup.sign().into(),
        }
    }
}

impl Markup {
    /// The opening sign.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Comment => "<!--",
            Self::CharacterData => "<![CDATA[",
            Self::Instruction => "<?",
            Self::Declaration => "<!",
            Self::Preformatted => "<pre>",
            Self::Script => "<script>",
            Self::Style => "<style>",
            Self::TextArea => "<textarea>",
        }
    }

    /// Returns the kind of token of a cut in it.
    pub(crate) fn in_token(self) -> InToken {
        match self {
            Self::Comment => InToken::Comment,
            Self::CharacterData => InToken::CharacterData,
            Self::Instruction => InToken::Instruction,
            Self::Declaration => InToken::Declaration,
            Self::Preformatted | Self::Script | Self::Style | Self::TextArea => InToken::Html,
        }
    }
}

/// The kind of token a cut goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InToken {
    /// Inside a string, between two characters.
    String,
    /// Inside an escape sequence of a string, or between the halves of a surrogate pair.
    Escape,
    /// Within a number, or directly after one that may continue.
    Number,
    /// Inside `true`, `false` or `null`.
    Literal,
    /// Inside a UTF-8 character.
    Utf8,
    /// Inside a code fence of Markdown.
    Code,
    /// Inside an HTML block of Markdown that is not one of the following.
    Html,
    /// Inside the destination or the title of a Markdown link.
    Link,
    /// Inside a row of a Markdown table.
    Row,
    /// Inside a tag, outside its attributes' values.
    Tag,
    /// Inside the value of an attribute.
    Attribute,
    /// Inside a comment.
    Comment,
    /// Inside a CDATA section.
    CharacterData,
    /// Inside a processing instruction.
    Instruction,
    /// Inside a declaration.
    Declaration,
}

impl InToken {
    /// Returns the literal name, as in the answers of `detect`.
    pub fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Escape => "escape",
            Self::Number => "number",
            Self::Literal => "literal",
            Self::Utf8 => "utf8",
            Self::Code => "code",
            Self::Html => "html",
            Self::Link => "link",
            Self::Row => "row",
            Self::Tag => "tag",
            Self::Attribute => "attribute",
            Self::Comment => "comment",
            Self::CharacterData => "cdata",
            Self::Instruction => "instruction",
            Self::Declaration => "declaration",
        }
    }
}

/// Something noticed that is no verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Hint {
    /// Prose that stops in the middle of a sentence.
    MidSentence,
    /// A JSON string has a raw control character in it, which strict JSON does not allow.
    ControlCharacters,
}

impl Hint {
    /// Returns the literal name, as in the answers of `detect`.
    pub fn name(self) -> &'static str {
        match self {
            Self::MidSentence => "mid_sentence",
            Self::ControlCharacters => "control_characters",
        }
    }
}

/// The complete result of detection: the verdict with additional information.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detection {
    /// Whole, truncated or malformed.
    pub verdict: Verdict,
    /// An observation that does not change the verdict.
    pub hint: Option<Hint>,
    /// The format that [`Format::Auto`] detected. `None` for other formats.
    pub detected: Option<Format>,
}
