//! One reading of where the text begins in a continuation. An announcement, a fence, dots or white space are removed
//! one after another.

use super::seam::SeamStyle;
use super::{fence, quotation};

/// Where the continuation's own text may begin, and the removed part before it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Opening {
    /// Byte offset in the continuation.
    pub(super) start: usize,
    /// The kind of the first removed part, or `None`.
    pub(super) style: Option<SeamStyle>,
    /// How unlikely this opening is in general, in bits.
    pub(super) cost: f64,
    /// The removed fence: its sign and its length.
    pub(super) fence: Option<(char, usize)>,
    /// Whether the text begins on its own line in the continuation, after a removed part.
    pub(super) own_line: bool,
    /// The evidence, in bits, that the text before it is an announcement.
    pub(super) announced: f64,
    /// The end of the quotation that encloses the whole text.
    pub(super) quoted: Option<usize>,
}

impl Opening {
    /// The opening in which nothing is removed.
    pub(super) const BARE: Self =
        Self { start: 0, style: None, cost: 0.0, fence: None, own_line: false, announced: 0.0, quoted: None };

    /// Returns the opening with one more removed part.
    pub(super) fn advance(self, start: usize, style: SeamStyle, cost: f64) -> Self {
        Self { start, style: self.style.or(Some(style)), cost: self.cost + cost, ..self }
    }

    /// Returns the opening after the fence that begins here, if there is one.
    pub(super) fn after_fence(self, text: &str, cost: f64) -> Option<Self> {
        let rest = &text[self.start..];
        let length = fence::opening(rest)?;
        let signs = rest.trim_start();
        let sign = signs.chars().next()?;
        let count = signs.len() - signs.trim_start_matches(sign).len();
        let unwrapped = self.advance(self.start + length, SeamStyle::Fence, cost);
        Some(Self { fence: Some((sign, count)), own_line: true, ..unwrapped })
    }

    /// Returns the content of the quotation that begins here, if the rest is a single quotation.
    pub(super) fn in_quotation(self, text: &str, cost: f64) -> Option<Self> {
        let inside = quotation::inside(&text[self.start..])?;
        let quoted = Some(self.start + inside.end);
        Some(Self { quoted, ..self.advance(self.start + inside.start, SeamStyle::Quotation, cost) })
    }

    /// Whether nothing was removed.
    pub(super) fn is_bare(&self) -> bool {
        self.style.is_none()
    }
}
