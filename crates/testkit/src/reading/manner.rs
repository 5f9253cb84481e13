//! How the model answers when it is asked in words to continue.

/// The kind of reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Manner {
    /// The rest of the document, in this style.
    Continues(Style),
    /// These words, which are not part of the document: about the cut, about the reply, or that there is no more.
    Says(&'static str),
    /// This text, repeated until the limit ends it.
    Loops(&'static str),
}

/// The style of the rest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Style {
    /// Where the reply begins in the document.
    pub begins: Begins,
    /// What happens at the seam.
    pub seam: Seam,
    /// Text before it: an announcement, including the white space after it.
    pub before: &'static str,
    /// Text after it: a closing remark, including the white space before it.
    pub behind: &'static str,
    /// The language of the fence around it; `None` for no fence.
    pub fence: Option<&'static str>,
    /// Number of characters after which the first continuation is cut itself.
    pub stops_after: Option<usize>,
}

/// Where a reply begins in the document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Begins {
    /// At the anchor: the last words that the question quotes, or else the last line that is shown.
    Anchor,
    /// Directly after the shown part.
    #[default]
    Shown,
    /// At the cut, even if less is shown: the model remembers how far it came.
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
    /// The white space at that place is lost.
    SpaceLost,
    /// White space is added there.
    SpaceAdded(&'static str),
    /// The word at the cut becomes another one.
    WordRewritten,
}
