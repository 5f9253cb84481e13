//! One possible start of the text in a continuation. Announcements, fences, ellipses and whitespace before it
//! are removed one after another.

use super::seam::SeamStyle;
use super::{fence, quotation};

/// A possible start of the text in a continuation, and what was removed before it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ContinuationStart {
    /// Byte offset of the start in the continuation.
    pub(super) start: usize,
    /// The kind of the first removed part. `None` if nothing was removed.
    pub(super) style: Option<SeamStyle>,
    /// How unlikely this start is in general, in bits.
    pub(super) cost: f64,
    /// The character and length of the removed fence, if any.
    pub(super) fence: Option<(char, usize)>,
    /// Whether the start is at the beginning of a line, after a removed part.
    pub(super) is_on_own_line: bool,
    /// The evidence, in bits, that the removed text is an announcement.
    pub(super) announcement_bits: f64,
    /// End of the quotation that encloses the whole text, if its quotation marks are removed.
    pub(super) quotation_end: Option<usize>,
}

impl ContinuationStart {
    /// The start at which nothing is removed.
    pub(super) const UNCHANGED: Self = Self {
        start: 0,
        style: None,
        cost: 0.0,
        fence: None,
        is_on_own_line: false,
        announcement_bits: 0.0,
        quotation_end: None,
    };

    /// Returns a later start, after one more removed part.
    pub(super) fn advance(self, start: usize, style: SeamStyle, cost: f64) -> Self {
        Self { start, style: self.style.or(Some(style)), cost: self.cost + cost, ..self }
    }

    /// Returns the start after an opening fence line at this start, if there is one.
    pub(super) fn after_fence(self, text: &str, cost: f64) -> Option<Self> {
        let rest = &text[self.start..];
        let length = fence::opening_line_end(rest)?;
        let signs = rest.trim_start();
        let sign = signs.chars().next()?;
        let count = signs.len() - signs.trim_start_matches(sign).len();
        let unwrapped = self.advance(self.start + length, SeamStyle::Fence, cost);
        Some(Self { fence: Some((sign, count)), is_on_own_line: true, ..unwrapped })
    }

    /// Returns the start inside quotation marks, if they enclose the whole rest.
    pub(super) fn in_quotation(self, text: &str, cost: f64) -> Option<Self> {
        let inside = quotation::single_quotation_content(&text[self.start..])?;
        let quoted = Some(self.start + inside.end);
        Some(Self {
            quotation_end: quoted,
            ..self.advance(self.start + inside.start, SeamStyle::Quotation, cost)
        })
    }

    /// Whether nothing was removed.
    pub(super) fn removes_nothing(&self) -> bool {
        self.style.is_none()
    }
}
