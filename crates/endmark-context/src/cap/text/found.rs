//! Keeps the important lines between head and tail, with their neighbours: as many as fit, the rarest first.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use super::run::Part;
use crate::cap::error_signs::{self, Shapes};
use crate::cap::marker::OmittedAmount;

/// A neighbour ranks like a line with this many more earlier occurrences.
const NEIGHBOUR_RANK_PENALTY: u32 = 3;
/// Longest trace that is kept with its error line. Longer ones are recursions or frames of a framework.
const MAX_TRACE_LINES: usize = 40;

/// Number of earlier lines of the same shape, and the position. A smaller rank is better.
type Rank = (u32, u64);

/// Lines worth keeping, within a bound.
#[derive(Debug)]
pub(super) struct FoundLines {
    max_lines: usize,
    neighbours: usize,
    kept: BTreeMap<Rank, OwnedPart>,
    size: usize,
    shapes: Shapes,
    /// The parts before the next one.
    before: VecDeque<OwnedPart>,
    /// Number of neighbours that still follow, and their rank.
    coming: (usize, u32),
    /// How many more lines may belong to the trace of the last important line.
    trace: usize,
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
    fn set(&mut self, part: Part<'_>) {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        text.push_str(part.text);
        *self = Self { at: part.at, text, size: part.size, before: part.before, weight: part.weight };
    }

    fn part(&self) -> Part<'_> {
        Part { at: self.at, text: &self.text, size: self.size, before: self.before, weight: self.weight }
    }
}

impl FoundLines {
    /// Keeps lines of at most `most` in total, with `neighbours` lines on either side of each important line.
    pub(super) fn new(most: usize, neighbours: usize) -> Self {
        Self {
            max_lines: most,
            neighbours,
            kept: BTreeMap::new(),
            size: 0,
            shapes: Shapes::default(),
            before: VecDeque::new(),
            coming: (0, 0),
            trace: 0,
        }
    }

    /// Reads the next part of the text.
    pub(super) fn take(&mut self, part: Part<'_>, is_landmark: bool) {
        let plain = || error_signs::without_colours(part.text);
        if is_landmark {
            let occurrence = self.shapes.occurrence(error_signs::shape(&plain()));
            let worth = occurrence.saturating_add(NEIGHBOUR_RANK_PENALTY);
            for neighbour in std::mem::take(&mut self.before) {
                self.keep(worth, neighbour.part());
            }
            self.keep(occurrence, part);
            self.coming = (self.neighbours, worth);
            self.trace = if self.neighbours > 0 { MAX_TRACE_LINES } else { 0 };
            return;
        }
        // The message of an error may have a line or two before its frames.
        let is_frame = self.trace > 0 && error_signs::is_frame(&plain());
        if is_frame || self.coming.0 > 0 {
            self.coming.0 = if is_frame { self.neighbours } else { self.coming.0 - 1 };
            self.trace = self.trace.saturating_sub(1);
            self.keep(self.coming.1, part);
            return;
        }
        self.trace = 0;
        if self.neighbours > 0 {
            let is_full = self.before.len() == self.neighbours;
            let mut owned =
                if is_full { self.before.pop_front().unwrap_or_default() } else { OwnedPart::default() };
            owned.set(part);
            self.before.push_back(owned);
        }
    }

    fn keep(&mut self, worth: u32, part: Part<'_>) {
        let rank = (worth, part.at);
        let is_worse = self.kept.last_key_value().is_some_and(|(last, _)| rank > *last);
        if part.size > self.max_lines || self.size + part.size > self.max_lines && is_worse {
            return;
        }
        let mut owned = OwnedPart::default();
        owned.set(part);
        self.size += part.size;
        self.kept.insert(rank, owned);
        while self.size > self.max_lines {
            let Some((_, worst)) = self.kept.pop_last() else { return };
            self.size -= worst.size;
        }
    }

    /// Returns the best lines within a range that fit into `most`, in order, and their total size. A line that does not
    /// follow another one also needs a marker.
    pub(super) fn within(&self, most: usize, marker: usize, range: Range<u64>) -> (Vec<Part<'_>>, usize) {
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
