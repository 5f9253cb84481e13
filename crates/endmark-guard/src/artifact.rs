//! What an author hands over, read once: its kind, its blocks, its headings, and what of it is quoted.

mod comment;
mod front_matter;
mod headings;
mod kind;
mod outline;
mod place;
mod sentence;
mod source;

use std::ops::Range;

pub(crate) use comment::{Comment, comment_in};
pub(crate) use front_matter::{Language, front_matter};
pub(crate) use headings::{Heading, title_of};
pub use kind::Kind;
pub(crate) use outline::{Block, BlockKind, Outline};
pub(crate) use place::Places;
pub(crate) use sentence::{is_quoted, parts_around, sentence_at};

/// A text that is to be judged, read once.
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
    /// Where the text begins that counts: behind a byte order mark and front matter.
    body: usize,
    outline: Outline,
}

impl<'t> Artifact<'t> {
    /// Reads a text of which nothing is known but itself.
    pub fn read(text: &'t str) -> Self {
        let body = body_start(text);
        let kind = if body > mark_length(text) { Kind::Markdown } else { Kind::of_text(&text[body..]) };
        Self::with(text, kind, body)
    }

    /// Reads a text of a file with this name, whose ending says what it is; if it says nothing, the text does.
    pub fn read_file(text: &'t str, name: &str) -> Self {
        match Kind::of_name(name) {
            None => Self::read(text),
            Some(Kind::Markdown) => Self::with(text, Kind::Markdown, body_start(text)),
            Some(kind) => Self::with(text, kind, mark_length(text)),
        }
    }

    fn with(text: &'t str, kind: Kind, body: usize) -> Self {
        let outline = match kind {
            Kind::Markdown => outline::of_markdown(text, body),
            Kind::Code | Kind::Json => source::outline(text, body),
        };
        Self { text, kind, body, outline }
    }

    /// The whole text, as it was given.
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// What the text was read as.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The text without front matter.
    pub(crate) fn body(&self) -> &'t str {
        &self.text[self.body..]
    }

    /// Where the body begins.
    pub(crate) fn body_start(&self) -> usize {
        self.body
    }

    pub(crate) fn outline(&self) -> &Outline {
        &self.outline
    }

    /// Where there is nothing any more: the end of what is not white space.
    pub(crate) fn end(&self) -> Range<usize> {
        let end = self.text.trim_end().len();
        end..end
    }
}

/// Where the body of prose begins.
fn body_start(text: &str) -> usize {
    front_matter(text).map_or_else(|| mark_length(text), |front| front.body)
}

/// The length of a byte order mark, which is no part of the text.
fn mark_length(text: &str) -> usize {
    if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 }
}
