//! How the model answers a request in words to continue.

/// The kind of reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Manner {
    /// The rest of the document, in this style.
    Continues(Style),
    /// These words, which are not part of the document: about the cut, about the reply, or that nothing is missing.
    Says(&'static str),
    /// This text, repeated up to the limit.
    Loops(&'static str),
}

/// The style of the rest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Style {
    /// Where the reply begins in the document.
    pub start: Begins,
    /// What happens at the seam.
    pub seam: Seam,
    /// Text before the rest: an announcement, including the white space after it.
    pub before: &'static str,
    /// Text after the rest: a closing remark, including the white space before it.
    pub suffix: &'static str,
    /// The language of the code fence around the rest; `None` without a fence.
    pub fence: Option<&'static str>,
    /// Number of characters after which the first continuation is cut, too.
    pub stops_after: Option<usize>,
}

/// Where a reply begins in the document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Begins {
    /// At the anchor: the last words that the question quotes, or else the last shown line.
    Anchor,
    /// Directly after the shown part.
    #[default]
    Shown,
    /// At the cut, even if less is shown, because the model remembers its progress.
    Cut,
    /// At the beginning of the document.
    Document,
}

/// What happens at the seam.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Seam {
    /// Nothing.
    #[default]
    Kept,
    /// The white space at the seam is lost.
    SpaceLost,
    /// White space is added at the seam.
    SpaceAdded(&'static str),
    /// The word at the cut is replaced.
    WordRewritten,
}
