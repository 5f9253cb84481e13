//! Stores consecutive parts of a text in one buffer.

use crate::cap::marker::OmittedAmount;

/// A part of a text: a line, or a piece of a long line.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextPart<'a> {
    /// Index of the part, from 0.
    pub(super) at: u64,
    pub(super) text: &'a str,
    /// Size in the unit of the limit.
    pub(super) size: usize,
    /// Total amount of the parts before this one.
    pub(super) before: OmittedAmount,
    /// The amount that is omitted if this part is not kept.
    pub(super) weight: OmittedAmount,
}

/// Consecutive parts of a text.
#[derive(Debug, Default)]
pub(super) struct TextRun {
    text: String,
    parts: Vec<PartEnd>,
    /// Index of the first part.
    first: u64,
    before: OmittedAmount,
    size: usize,
}

#[derive(Debug, Clone, Copy)]
struct PartEnd {
    end: usize,
    size: usize,
    after: OmittedAmount,
}

impl TextRun {
    pub(super) fn push(&mut self, part: TextPart<'_>) {
        if self.parts.is_empty() {
            (self.first, self.before) = (part.at, part.before);
        }
        self.text.push_str(part.text);
        self.size = self.size.saturating_add(part.size);
        self.parts.push(PartEnd {
            end: self.text.len(),
            size: part.size,
            after: part.before.plus(part.weight),
        });
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub(super) fn parts(&self) -> impl DoubleEndedIterator<Item = TextPart<'_>> {
        (0..self.parts.len()).map(|index| {
            let place = self.parts[index];
            let (begin, before) = index
                .checked_sub(1)
                .map_or((0, self.before), |index| (self.parts[index].end, self.parts[index].after));
            let weight = OmittedAmount {
                lines: place.after.lines - before.lines,
                chars: place.after.chars - before.chars,
            };
            TextPart {
                at: self.first + index as u64,
                text: &self.text[begin..place.end],
                size: place.size,
                before,
                weight,
            }
        })
    }
}
