//! A parsed artifact: its kind, blocks, headings and quotations.

mod comment;
mod front_matter;
mod headings;
mod kind;
mod outline;
mod place;
mod sentence;
mod source;

use std::ops::Range;

pub(crate) use comment::{Comment, find_comment};
pub(crate) use front_matter::{Language, front_matter};
pub(crate) use headings::{Heading, normalise_title};
pub use kind::Kind;
pub(crate) use outline::{Block, BlockKind, Outline};
pub(crate) use place::Places;
pub(crate) use sentence::{is_quoted, parts_around, sentence_at};

/// A parsed text that is to be checked.
///
/// ```
/// use endmark_guard::{Artifact, Kind};
///
/// assert_eq!(Artifact::read("# Report\n\nAll is well.\n").kind(), Kind::Markdown);
/// assert_eq!(Artifact::read("fn main() {\n    run();\n}\n").kind(), Kind::Code);
/// ```
#[derive(Debug)]
pub struct Artifact<'t> {
    text: &'t str,
    kind: Kind,
    /// The offset of the body, after a byte order mark and front matter.
    body: usize,
    outline: Outline,
}

impl<'t> Artifact<'t> {
    /// Parses a text whose file name is unknown.
    pub fn read(text: &'t str) -> Self {
        let body = body_start(text);
        let kind = if body > mark_length(text) { Kind::Markdown } else { Kind::from_text(&text[body..]) };
        Self::from_parts(text, kind, body)
    }

    /// Parses the text of a file. The extension determines its kind, or the content if the extension is unknown.
    pub fn read_file(text: &'t str, name: &str) -> Self {
        match Kind::from_name(name) {
            None => Self::read(text),
            Some(Kind::Markdown) => Self::from_parts(text, Kind::Markdown, body_start(text)),
            Some(kind) => Self::from_parts(text, kind, mark_length(text)),
        }
    }

    fn from_parts(text: &'t str, kind: Kind, body: usize) -> Self {
        let outline = match kind {
            Kind::Markdown => outline::parse_markdown(text, body),
            Kind::Code | Kind::Json => source::outline(text, body),
        };
        Self { text, kind, body, outline }
    }

    /// Returns the whole text unchanged.
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// Returns the kind of the text.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the text without front matter.
    pub(crate) fn body(&self) -> &'t str {
        &self.text[self.body..]
    }

    /// Returns the offset of the body.
    pub(crate) fn body_start(&self) -> usize {
        self.body
    }

    pub(crate) fn outline(&self) -> &Outline {
        &self.outline
    }

    /// Returns the empty range after the last character that is not white space.
    pub(crate) fn end(&self) -> Range<usize> {
        let end = self.text.trim_end().len();
        end..end
    }
}

/// Returns the offset of the body of a prose text.
fn body_start(text: &str) -> usize {
    front_matter(text).map_or_else(|| mark_length(text), |front| front.body)
}

/// Returns the length of the byte order mark, or 0.
fn mark_length(text: &str) -> usize {
    if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 }
}
