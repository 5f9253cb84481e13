//! How the model answers a prompt that asks it to continue.

/// The behaviour of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelBehaviour {
    /// It writes the rest of the document, in this style.
    Continues(ContinuationStyle),
    /// It writes this text instead, for example about the cut, about the reply, or that nothing is missing.
    FixedText(&'static str),
    /// It repeats this text up to its limit.
    Loops(&'static str),
}

/// The style of a continuation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContinuationStyle {
    /// Where the continuation begins in the document.
    pub start: ContinuationStart,
    /// How the continuation deviates from the document at the seam.
    pub seam: SeamDeviation,
    /// Text before the continuation: an announcement, including the white space after it.
    pub prefix: &'static str,
    /// Text after the continuation: a closing remark, including the white space before it.
    pub suffix: &'static str,
    /// The language of the code fence around the continuation; `None` without a fence.
    pub fence: Option<&'static str>,
    /// Number of characters after which the first continuation is cut too.
    pub stops_after: Option<usize>,
}

/// Where a continuation begins in the document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ContinuationStart {
    /// At the anchor: the last words that the prompt quotes, or otherwise the last shown line.
    Anchor,
    /// Directly after the shown part.
    #[default]
    Shown,
    /// At the cut, even if the request shows less, because the model remembers its progress.
    Cut,
    /// At the beginning of the document.
    Document,
}

/// A deviation from the document at the seam.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SeamDeviation {
    /// No deviation.
    #[default]
    NoDeviation,
    /// The white space at the seam is missing.
    MissingSpace,
    /// This white space is added at the seam.
    AddedSpace(&'static str),
    /// Another word replaces the word at the cut.
    OtherWord,
}
