//! How the model answers when it is asked in words to go on.

/// What kind of answer it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Manner {
    /// The rest of the document, as told or not.
    Continues(Style),
    /// These words, which are no part of the document: about the cut, about the reply, or that there is no more.
    Says(&'static str),
    /// It repeats this until its limit ends it.
    Loops(&'static str),
}

/// How the rest is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Style {
    /// Where the answer begins in the document.
    pub begins: Begins,
    /// What happens where the rest begins.
    pub seam: Seam,
    /// Words before it: an announcement, with the white space behind it.
    pub before: &'static str,
    /// Words behind it: a closing remark, with the white space before it.
    pub behind: &'static str,
    /// The language of the fence around it; none where there is no fence.
    pub fence: Option<&'static str>,
    /// After so many characters the first answer is cut itself.
    pub stops_after: Option<usize>,
}

/// Where an answer begins in the document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Begins {
    /// With the anchor: the last words that the question quotes, else the last line that is shown.
    Anchor,
    /// Right behind what is shown.
    #[default]
    Shown,
    /// At the cut, though less of it is shown: the model remembers how far it came.
    Cut,
    /// At the beginning of the document.
    Document,
}

/// What happens where the rest begins.
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
