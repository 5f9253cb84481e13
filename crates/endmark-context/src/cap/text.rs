//! Caps texts and logs: keeps the head, the tail, and the error lines between them with their neighbours.

mod found;
mod run;

use endmark_envelope::Size;

use self::found::FoundLines;
use self::run::{Part, Run};
use super::CapError;
use super::error_signs;
use super::limits::{Keep, Limits};
use super::lines::{InvalidUtf8, Lines};
use super::marker::{self, OmittedAmount};

/// Longest part of a line, in bytes, that is kept or omitted as a unit.
const LONGEST_PART_BYTES: usize = 4096;
/// Shortest part, in bytes, into which a long line is split.
const SHORTEST_PART_BYTES: usize = 16;
/// How often unused room of the markers is returned to the text.
const REFINEMENTS: usize = 3;

/// Kind of lines between head and tail that are worth keeping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Landmarks {
    /// Lines that report errors.
    Errors,
    /// Lines of a diff that name the changed files and places.
    Diff,
}

impl Landmarks {
    fn matches(self, line: &str) -> bool {
        match self {
            Self::Errors => error_signs::is_error_line(&error_signs::without_colours(line)),
            Self::Diff => DIFF_HEADS.iter().any(|head| line.starts_with(head)),
        }
    }

    /// Largest share of the limit for these lines, in percent.
    fn percent(self) -> usize {
        match self {
            Self::Errors => 40,
            Self::Diff => 80,
        }
    }

    /// Number of lines on each side that are kept, too.
    fn neighbours(self) -> usize {
        match self {
            Self::Errors => 2,
            Self::Diff => 0,
        }
    }
}

/// Prefixes of diff lines, by git or GNU diff, that name the changed files and places.
const DIFF_HEADS: [&str; 9] =
    ["diff ", "--- ", "+++ ", "@@ ", "rename ", "new file ", "deleted file ", "Binary files ", "Index: "];

/// A text that is read in pieces.
#[derive(Debug)]
pub(super) struct Text {
    lines: Lines,
    candidates: KeptCandidates,
}

/// Candidates for the capped text.
#[derive(Debug)]
struct KeptCandidates {
    limits: Limits,
    landmarks: Landmarks,
    /// The first parts, up to the limit.
    head: Run,
    is_head_full: bool,
    /// The last parts. Both runs together contain at least as much as may be shown.
    older: Run,
    newer: Run,
    found: FoundLines,
    count: u64,
    /// Lines and characters so far.
    total: OmittedAmount,
    bytes: u64,
    ends_line: bool,
    /// The content of the marker in the first line, if the text was capped before.
    capped_before: Option<OmittedAmount>,
    /// Sum of the other markers.
    in_markers: OmittedAmount,
}

/// A text within its limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShortenedText {
    pub(super) text: String,
    /// `None` if the text is unchanged.
    pub(super) omitted: Option<OmittedAmount>,
    /// Size of the returned text without markers.
    pub(super) returned: Size,
    pub(super) original: Size,
}

impl Text {
    pub(super) fn new(limits: &Limits, landmarks: Landmarks, foreign: InvalidUtf8) -> Self {
        let longest = (limits.most / 8).clamp(SHORTEST_PART_BYTES, LONGEST_PART_BYTES);
        let kept = KeptCandidates {
            limits: limits.clone(),
            landmarks,
            head: Run::default(),
            is_head_full: false,
            older: Run::default(),
            newer: Run::default(),
            found: FoundLines::new(
                limits.max_buffered().saturating_mul(landmarks.percent()) / 100,
                landmarks.neighbours(),
            ),
            count: 0,
            total: OmittedAmount::default(),
            bytes: 0,
            ends_line: true,
            capped_before: None,
            in_markers: OmittedAmount::default(),
        };
        Self { lines: Lines::new(longest, foreign), candidates: kept }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), CapError> {
        let kept = &mut self.candidates;
        self.lines.push(bytes, |part| kept.take(part))
    }

    /// Returns the text within its limit, and the number of replaced sequences that were not UTF-8.
    pub(super) fn finish(mut self) -> Result<(ShortenedText, u64), CapError> {
        let kept = &mut self.candidates;
        self.lines.finish(|part| kept.take(part))?;
        let (kept, replaced) = (self.candidates, self.lines.replaced_bytes);
        if !kept.is_head_full && kept.limits.admits(kept.head.text()) {
            let original = kept.original();
            let text = kept.head.into_text();
            return Ok((ShortenedText { text, omitted: None, returned: original, original }, replaced));
        }
        Ok((kept.limits.fit(|size| kept.within(size), |shortened| &shortened.text), replaced))
    }
}

impl KeptCandidates {
    fn take(&mut self, text: &str) {
        let marker = marker::parse_line(text).filter(|_| self.ends_line);
        self.bytes += text.len() as u64;
        if self.count == 0 && self.capped_before.is_none() && marker.is_some() {
            self.capped_before = marker;
            // This line stays if the text is not capped.
            self.put(text, OmittedAmount::default(), false);
            return;
        }
        let ends_line = text.ends_with('\n');
        let own = OmittedAmount { lines: u64::from(ends_line), chars: text.chars().count() as u64 };
        self.in_markers = self.in_markers.plus(marker.unwrap_or_default());
        let is_landmark = marker.is_none() && self.landmarks.matches(text);
        self.put(text, marker.unwrap_or(own), is_landmark);
        self.ends_line = ends_line;
    }

    fn put(&mut self, text: &str, weight: OmittedAmount, is_landmark: bool) {
        let held = self.limits.max_buffered();
        let part = Part { at: self.count, text, size: self.limits.size(text), before: self.total, weight };
        self.is_head_full |= self.head.size().saturating_add(part.size) > held;
        if !self.is_head_full {
            self.head.push(part);
        }
        if self.newer.size().saturating_add(part.size) > held && !self.newer.is_empty() {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.push(part);
        self.found.take(part, is_landmark);
        self.total = self.total.plus(weight);
        self.count += 1;
    }

    fn original(&self) -> Size {
        Size { bytes: self.bytes, chars: self.total.chars }
    }

    /// Returns the parts that an earlier capping omitted before the first line.
    fn hidden(&self) -> OmittedAmount {
        let before = self.capped_before.unwrap_or_default();
        OmittedAmount {
            lines: before.lines.saturating_sub(self.in_markers.lines),
            chars: before.chars.saturating_sub(self.in_markers.chars),
        }
    }

    /// Returns the text within `most`. The size of the markers is known only after they are written, so unused room that
    /// was reserved for them is returned to the text.
    fn within(&self, most: usize) -> ShortenedText {
        let mut best = self.with_reserve(most, 0);
        // Markers between single lines may need more room than reserved, and more bytes than the whole text.
        let mut smaller = most;
        let fits = |shortened: &ShortenedText| {
            self.limits.size(&shortened.text) <= most && shortened.text.len() as u64 <= self.bytes
        };
        while !fits(&best) && smaller > 0 {
            smaller = smaller / 4 * 3;
            best = self.with_reserve(smaller, 0);
        }
        let mut spare = 0;
        for _ in 0..REFINEMENTS {
            spare += most.saturating_sub(self.limits.size(&best.text));
            let next = self.with_reserve(most, spare);
            if !fits(&next) {
                break;
            }
            best = next;
        }
        best
    }

    /// Returns the text in about `most`, with `spare` added to the room that remains after reserving for markers.
    fn with_reserve(&self, most: usize, spare: usize) -> ShortenedText {
        // Largest size of a marker, with the line breaks around it.
        let widest = self.total.plus(self.capped_before.unwrap_or_default());
        let marker = marker::text_marker(widest.plus(OmittedAmount { lines: 2, chars: 0 })).len() + 2;
        let first = marker + self.limits.read_hint().len();
        let room = most.saturating_sub(first);
        let for_found = (most * self.landmarks.percent() / 100).min(room);
        // Lines next to the head or the tail are shown with it, and need no additional room.
        let (_, taken) = self.found.within(for_found, marker, 0..u64::MAX);
        let room = (room + spare).saturating_sub(taken + 2 * marker);
        let (head, tail) = match self.limits.keep {
            Keep::Both => (room / 3, room - room / 3),
            Keep::Head => (room, 0),
            Keep::Tail => (0, room),
        };
        let skipped = u64::from(self.capped_before.is_some());
        let head: Vec<Part<'_>> = within(self.head.parts().skip(usize::from(skipped > 0)), head);
        let head_end = head.last().map_or(skipped, |part| part.at + 1);
        let last = self.older.parts().chain(self.newer.parts()).rev();
        let mut tail = within(last.take_while(|part| part.at >= head_end), tail);
        tail.reverse();
        let tail_begin = tail.first().map_or(self.count, |part| part.at);
        let (between, _) = self.found.within(for_found, marker, head_end..tail_begin);
        self.assemble(head.iter().copied().chain(between).chain(tail.iter().copied()))
    }

    /// Joins the parts, with a marker wherever parts are missing.
    fn assemble<'a>(&'a self, parts: impl Iterator<Item = Part<'a>>) -> ShortenedText {
        let (mut body, mut returned, mut left_out) = (String::new(), Size::default(), self.hidden());
        let mut next = u64::from(self.capped_before.is_some());
        let mut after = OmittedAmount::default();
        let unfinished = OmittedAmount { lines: u64::from(!self.ends_line), chars: 0 };
        let end = Part {
            at: self.count,
            text: "",
            size: 0,
            before: self.total.plus(unfinished),
            weight: OmittedAmount::default(),
        };
        for part in parts.chain([end]) {
            if part.at != next {
                let is_within_line = !body.is_empty() && !body.ends_with('\n');
                let lines = part.before.lines - after.lines;
                let lines = lines.saturating_sub(u64::from(is_within_line));
                let gap = OmittedAmount { lines, chars: part.before.chars - after.chars };
                left_out = left_out.plus(gap);
                // At the beginning, the first marker already covers the gap.
                if !body.is_empty() {
                    body.push_str(if is_within_line { "\n" } else { "" });
                    body.push_str(&marker::text_marker(gap));
                    body.push('\n');
                }
            }
            if marker::parse_line(part.text).is_some() {
                left_out = left_out.plus(part.weight);
            } else {
                returned.bytes += part.text.len() as u64;
                returned.chars += part.text.chars().count() as u64;
            }
            body.push_str(part.text);
            (next, after) = (part.at + 1, part.before.plus(part.weight));
        }
        let first = marker::text_marker(left_out) + &self.limits.read_hint();
        let text = if body.is_empty() { first } else { format!("{first}\n{body}") };
        ShortenedText { text, omitted: Some(left_out), returned, original: self.original() }
    }
}

/// Returns the leading parts that fit into `most`.
fn within<'a>(parts: impl Iterator<Item = Part<'a>>, most: usize) -> Vec<Part<'a>> {
    let mut left = most;
    let fits = |part: &Part<'_>| {
        let rest = left.checked_sub(part.size);
        left = rest.unwrap_or(left);
        rest.is_some()
    };
    parts.take_while(fits).collect()
}
