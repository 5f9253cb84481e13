//! Keeps the important lines between head and tail with their neighbours: as many as fit, rare lines first.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use super::run::TextPart;
use crate::cap::error_signs::{self, ShapeCounts};
use crate::cap::marker::OmittedAmount;

/// A neighbour of an important line ranks as if that line had this many more earlier occurrences.
const NEIGHBOUR_RANK_PENALTY: u32 = 3;
/// Maximum lines of a stack trace that are kept with its error. Longer traces come from recursion or
/// frameworks.
const MAX_TRACE_LINES: usize = 40;

/// Number of earlier lines with the same shape, then the position. Smaller ranks are kept first.
type Rank = (u32, u64);

/// Important lines with a limited total size.
#[derive(Debug)]
pub(super) struct ImportantLines {
    max_size: usize,
    neighbours: usize,
    kept: BTreeMap<Rank, OwnedPart>,
    size: usize,
    shapes: ShapeCounts,
    /// The last lines before the next one, which may become neighbours.
    before: VecDeque<OwnedPart>,
    /// Number of following lines that are still neighbours, and their rank.
    pending_neighbours: (usize, u32),
    /// Number of following lines that may still belong to the stack trace of the last important line.
    trace_lines_left: usize,
}

#[derive(Debug, Clone, Default)]
struct OwnedPart {
    at: u64,
    text: String,
    size: usize,
    before: OmittedAmount,
    weight: OmittedAmount,
}

impl OwnedPart {
    fn set(&mut self, part: TextPart<'_>) {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        text.push_str(part.text);
        *self = Self { at: part.at, text, size: part.size, before: part.before, weight: part.weight };
    }

    fn part(&self) -> TextPart<'_> {
        TextPart { at: self.at, text: &self.text, size: self.size, before: self.before, weight: self.weight }
    }
}

impl ImportantLines {
    /// Returns a collector for lines with a total size of at most `most`. It keeps `neighbours` lines before
    /// and after each important line.
    pub(super) fn new(most: usize, neighbours: usize) -> Self {
        Self {
            max_size: most,
            neighbours,
            kept: BTreeMap::new(),
            size: 0,
            shapes: ShapeCounts::default(),
            before: VecDeque::new(),
            pending_neighbours: (0, 0),
            trace_lines_left: 0,
        }
    }

    /// Reads the next part of the text. `is_landmark` marks an important line.
    pub(super) fn push(&mut self, part: TextPart<'_>, is_landmark: bool) {
        let plain = || error_signs::without_colours(part.text);
        if is_landmark {
            let occurrence = self.shapes.count_occurrence(error_signs::line_shape(&plain()));
            let worth = occurrence.saturating_add(NEIGHBOUR_RANK_PENALTY);
            for neighbour in std::mem::take(&mut self.before) {
                self.keep(worth, neighbour.part());
            }
            self.keep(occurrence, part);
            self.pending_neighbours = (self.neighbours, worth);
            self.trace_lines_left = if self.neighbours > 0 { MAX_TRACE_LINES } else { 0 };
            return;
        }
        // The message of an error may have one or two more lines before its frames.
        let is_frame = self.trace_lines_left > 0 && error_signs::is_frame(&plain());
        if is_frame || self.pending_neighbours.0 > 0 {
            self.pending_neighbours.0 =
                if is_frame { self.neighbours } else { self.pending_neighbours.0 - 1 };
            self.trace_lines_left = self.trace_lines_left.saturating_sub(1);
            self.keep(self.pending_neighbours.1, part);
            return;
        }
        self.trace_lines_left = 0;
        if self.neighbours > 0 {
            let is_full = self.before.len() == self.neighbours;
            let mut owned =
                if is_full { self.before.pop_front().unwrap_or_default() } else { OwnedPart::default() };
            owned.set(part);
            self.before.push_back(owned);
        }
    }

    fn keep(&mut self, worth: u32, part: TextPart<'_>) {
        let rank = (worth, part.at);
        let is_worse = self.kept.last_key_value().is_some_and(|(last, _)| rank > *last);
        if part.size > self.max_size || self.size + part.size > self.max_size && is_worse {
            return;
        }
        let mut owned = OwnedPart::default();
        owned.set(part);
        self.size += part.size;
        self.kept.insert(rank, owned);
        while self.size > self.max_size {
            let Some((_, worst)) = self.kept.pop_last() else { return };
            self.size -= worst.size;
        }
    }

    /// Returns the best lines of a range that fit into `most`, in order, and their total size. A line without
    /// a kept neighbour needs an additional marker.
    pub(super) fn select_within(
        &self,
        most: usize,
        marker: usize,
        range: Range<u64>,
    ) -> (Vec<TextPart<'_>>, usize) {
        let (mut chosen, mut taken) = (BTreeSet::new(), 0);
        let mut parts = Vec::new();
        for owned in self.kept.values().filter(|owned| range.contains(&owned.at)) {
            let before = owned.at.checked_sub(1);
            let follows = before.is_none_or(|at| chosen.contains(&at) || at + 1 == range.start);
            let is_alone = !follows && !chosen.contains(&(owned.at + 1)) && owned.at + 1 != range.end;
            let cost = owned.size + if is_alone { marker } else { 0 };
            if taken + cost <= most {
                taken += cost;
                chosen.insert(owned.at);
                parts.push(owned.part());
            }
        }
        parts.sort_unstable_by_key(|part| part.at);
        (parts, taken)
    }
}
