//! The results of detection (PC-1).

use serde::{Deserialize, Serialize};

use std::borrow::Cow;

use crate::{Format, OpenStack};

/// Whether a text is whole, truncated or malformed (PC-1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing is missing.
    Whole,
    /// A valid beginning of something longer.
    Truncated(Truncation),
    /// No continuation could make the text valid.
    Malformed {
        /// Byte offset of the first invalid byte.
        index: usize,
        /// The reason, as a lowercase fragment.
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

    /// Returns where and how the text is cut, or `None` if it is not truncated.
    pub fn truncation(&self) -> Option<&Truncation> {
        match self {
            Self::Truncated(truncation) => Some(truncation),
            Self::Whole | Self::Malformed { .. } => None,
        }
    }
}

/// Where and how a text is cut (PC-1). Offsets are in UTF-8 bytes from the beginning of the text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Truncation {
    /// Length of the text in which all tokens are settled: no continuation can change them.
    pub truncation_index: usize,
    /// The last offset at which all brackets are closed. 0 if there is no such offset.
    pub balanced_index: usize,
    /// The source of the last settled token, at most its last 200 characters. For an open string, it is the
    /// settled part from the opening quote. It is empty only if the text is empty.
    pub last_valid_token: String,
    /// The open constructs, outermost first.
    pub open: OpenStack,
    /// The kind of the token that contains the cut. `None` if the cut is between tokens.
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
    /// A Markdown code fence.
    Fence {
        /// A backtick or a tilde.
        character: char,
        /// Number of these characters in the opening fence, and minimum number in the closing one.
        length: usize,
    },
    /// The text of a Markdown link with an open destination.
    Link,
    /// A row of a Markdown table.
    Row,
    /// A tag with this name.
    Tag(String),
    /// Markup with its own end sequence, such as a comment.
    Markup(Markup),
}

/// Markup that ends only at its own end sequence.
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
    /// `<pre` at the start of a Markdown HTML block, up to the end tag of this or one of the following
    /// elements
    Preformatted,
    /// `<script`
    Script,
    /// `<style`
    Style,
    /// `<textarea`
    TextArea,
}

/// Maximum number of characters that are shown of a fence.
const MAX_SHOWN_FENCE_CHARACTERS: usize = 100;

impl Open {
    /// Returns the opening characters, as in JSON output: for example `{`, or `<p>` for a tag.
    pub fn opener(&self) -> Cow<'static, str> {
        match self {
            Self::Object => "{".into(),
            Self::Array | Self::Link => "[".into(),
            Self::String => "\"".into(),
            Self::Fence { character: sign, length } => {
                sign.to_string().repeat((*length).min(MAX_SHOWN_FENCE_CHARACTERS)).into()
            }
            Self::Row => "|".into(),
            Self::Tag(name) => format!("<{name}>").into(),
            Self::Markup(markup) => markup.opener().into(),
        }
    }
}

impl Markup {
    /// Returns the opening characters, for example `<!--`.
    pub fn opener(self) -> &'static str {
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

    /// Returns the kind of token that a cut in this markup is in.
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

/// The kind of the token that contains the cut.
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
    /// Inside a Markdown HTML block of another kind than the following ones.
    Html,
    /// Inside the destination or the title of a Markdown link.
    Link,
    /// Inside a row of a Markdown table.
    Row,
    /// Inside a tag, but not in the value of an attribute.
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
    /// Returns the name that JSON output uses.
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

/// An observation that does not change the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Hint {
    /// The prose ends in the middle of a sentence.
    MidSentence,
    /// A JSON string contains a raw control character, which strict JSON does not allow.
    ControlCharacters,
}

impl Hint {
    /// Returns the name that JSON output uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::MidSentence => "mid_sentence",
            Self::ControlCharacters => "control_characters",
        }
    }
}

/// The complete result of detection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detection {
    /// Whether the text is whole, truncated or malformed.
    pub verdict: Verdict,
    /// An observation that does not change the verdict.
    pub hint: Option<Hint>,
    /// The format that was detected for [`Format::Auto`]. `None` for other formats.
    pub detected: Option<Format>,
}
