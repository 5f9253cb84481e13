//! One way to read where the text begins in a continuation: behind an announcement, a fence, dots, whitespace, one
//! after the other undone.

use super::seam::SeamStyle;
use super::{fence, quotation};

/// Where the continuation's own text may begin, and what stands before it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Opening {
    /// Byte offset in the continuation.
    pub(super) start: usize,
    /// What was undone first; none where nothing was.
    pub(super) style: Option<SeamStyle>,
    /// How unlikely this is beforehand, in bits.
    pub(super) cost: f64,
    /// The fence that was undone: its sign and how many of them.
    pub(super) fence: Option<(char, usize)>,
    /// Whether the text begins a line of its own in the continuation, behind something else.
    pub(super) own_line: bool,
    /// How much what stands before it reads as an announcement, in bits.
    pub(super) announced: f64,
    /// Where the quotation ends that it stands in as a whole.
    pub(super) quoted: Option<usize>,
}

impl Opening {
    /// Nothing is undone.
    pub(super) const BARE: Self =
        Self { start: 0, style: None, cost: 0.0, fence: None, own_line: false, announced: 0.0, quoted: None };

    /// What begins here, once this was undone as well.
    pub(super) fn then(self, start: usize, style: SeamStyle, cost: f64) -> Self {
        Self { start, style: self.style.or(Some(style)), cost: self.cost + cost, ..self }
    }

    /// What begins behind the fence that opens here, if one does.
    pub(super) fn behind_fence(self, text: &str, cost: f64) -> Option<Self> {
        let rest = &text[self.start..];
        let length = fence::opening(rest)?;
        let signs = rest.trim_start();
        let sign = signs.chars().next()?;
        let count = signs.len() - signs.trim_start_matches(sign).len();
        let unwrapped = self.then(self.start + length, SeamStyle::Fence, cost);
        Some(Self { fence: Some((sign, count)), own_line: true, ..unwrapped })
    }

    /// What stands in the quotation that begins here, if all that follows is one.
    pub(super) fn in_quotation(self, text: &str, cost: f64) -> Option<Self> {
        let inside = quotation::inside(&text[self.start..])?;
        let quoted = Some(self.start + inside.end);
        Some(Self { quoted, ..self.then(self.start + inside.start, SeamStyle::Quotation, cost) })
    }

    /// Whether nothing was undone.
    pub(super) fn is_bare(&self) -> bool {
        self.style.is_none()
    }
}
