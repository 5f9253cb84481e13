//! A parsed artifact: its kind, blocks, headings and quotations.

mod comment;
mod front_matter;
mod headings;
mod kind;
mod outline;
mod position;
mod sentence;
mod source;

use std::ops::Range;

pub(crate) use comment::{Comment, find_comment};
pub(crate) use front_matter::{Language, front_matter};
pub(crate) use headings::{Heading, normalise_title};
pub use kind::ArtifactKind;
pub(crate) use outline::{Block, BlockKind, Outline};
pub(crate) use position::PositionFinder;
pub(crate) use sentence::{is_quoted, parts_around, sentence_at};

/// A parsed text that the guard checks.
///
/// ```
/// use endmark_guard::{Artifact, ArtifactKind};
///
/// assert_eq!(Artifact::read("# Report\n\nAll is well.\n").kind(), ArtifactKind::Markdown);
/// assert_eq!(Artifact::read("fn main() {\n    run();\n}\n").kind(), ArtifactKind::Code);
/// ```
#[derive(Debug)]
pub struct Artifact<'t> {
    text: &'t str,
    kind: ArtifactKind,
    /// The offset of the body, after a byte order mark and front matter.
    body: usize,
    outline: Outline,
}

impl<'t> Artifact<'t> {
    /// Parses a text without a file name. The content determines its kind.
    pub fn read(text: &'t str) -> Self {
        let body = body_start(text);
        let kind = if body > byte_order_mark_length(text) {
            ArtifactKind::Markdown
        } else {
            ArtifactKind::from_text(&text[body..])
        };
        Self::from_parts(text, kind, body)
    }

    /// Parses the text of a file. The extension determines its kind, or the content does if the extension is
    /// unknown.
    pub fn read_file(text: &'t str, name: &str) -> Self {
        match ArtifactKind::from_name(name) {
            None => Self::read(text),
            Some(ArtifactKind::Markdown) => Self::from_parts(text, ArtifactKind::Markdown, body_start(text)),
            Some(kind) => Self::from_parts(text, kind, byte_order_mark_length(text)),
        }
    }

    fn from_parts(text: &'t str, kind: ArtifactKind, body: usize) -> Self {
        let outline = match kind {
            ArtifactKind::Markdown => outline::parse_markdown(text, body),
            ArtifactKind::Code | ArtifactKind::Json => source::outline(text, body),
        };
        Self { text, kind, body, outline }
    }

    /// Returns the whole text unchanged.
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// Returns the kind of the text.
    pub fn kind(&self) -> ArtifactKind {
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

    /// Returns an empty range after the last character that is not white space.
    pub(crate) fn end(&self) -> Range<usize> {
        let end = self.text.trim_end().len();
        end..end
    }
}

/// Returns the offset at which the body of prose begins, after a byte order mark and front matter.
fn body_start(text: &str) -> usize {
    front_matter(text).map_or_else(|| byte_order_mark_length(text), |front| front.body)
}

/// Returns the length of the byte order mark, or 0.
fn byte_order_mark_length(text: &str) -> usize {
    if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 }
}
