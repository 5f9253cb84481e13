//! Caps texts and logs. Keeps the head, the tail, and the lines with errors between them, including their
//! neighbours.

mod found;
mod run;

use endmark_envelope::Size;

use self::found::ImportantLines;
use self::run::{TextPart, TextRun};
use super::CapError;
use super::error_signs;
use super::limits::{Keep, Limits};
use super::lines::{InvalidUtf8, Lines};
use super::marker::{self, OmittedAmount};

/// Maximum size in bytes of the parts of a long line. Each part is either kept or omitted.
const MAX_PART_BYTES: usize = 4096;
/// Minimum size in bytes of the parts of a long line.
const MIN_PART_BYTES: usize = 16;
/// How many times unused room that was reserved for markers is given back to the text.
const MAX_REFINEMENTS: usize = 3;

/// Which lines between head and tail are worth keeping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LandmarkKind {
    /// Lines that report errors.
    Errors,
    /// Lines of a diff that name the changed files and positions.
    Diff,
}

impl LandmarkKind {
    fn matches_line(self, line: &str) -> bool {
        match self {
            Self::Errors => error_signs::is_error_line(&error_signs::without_colours(line)),
            Self::Diff => DIFF_HEADS.iter().any(|head| line.starts_with(head)),
        }
    }

    /// Maximum percentage of the limit for these lines.
    fn max_percent(self) -> usize {
        match self {
            Self::Errors => 40,
            Self::Diff => 80,
        }
    }

    /// Number of lines to keep before and after each of these lines.
    fn neighbour_count(self) -> usize {
        match self {
            Self::Errors => 2,
            Self::Diff => 0,
        }
    }
}

/// Prefixes of the lines with which git and GNU diff name changed files and positions.
const DIFF_HEADS: [&str; 9] =
    ["diff ", "--- ", "+++ ", "@@ ", "rename ", "new file ", "deleted file ", "Binary files ", "Index: "];

/// A text that arrives in chunks.
#[derive(Debug)]
pub(super) struct TextCapper {
    lines: Lines,
    candidates: TextCandidates,
}

/// The parts of a text that may be shown.
#[derive(Debug)]
struct TextCandidates {
    limits: Limits,
    landmarks: LandmarkKind,
    /// The first parts, up to the limit.
    head: TextRun,
    is_head_full: bool,
    /// The last parts, in two runs. Together they always contain at least as much as can be shown.
    older: TextRun,
    newer: TextRun,
    found: ImportantLines,
    count: u64,
    /// Number of lines and characters so far.
    total: OmittedAmount,
    bytes: u64,
    ends_line: bool,
    /// The amount in the first line's marker, if an earlier capping wrote one.
    capped_before: Option<OmittedAmount>,
    /// Total amount in all other markers.
    in_markers: OmittedAmount,
}

/// A capped text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShortenedText {
    pub(super) text: String,
    /// The omitted amount. `None` if the text is unchanged.
    pub(super) omitted: Option<OmittedAmount>,
    /// Size of the capped text without markers.
    pub(super) returned: Size,
    pub(super) original: Size,
}

impl TextCapper {
    pub(super) fn new(limits: &Limits, landmarks: LandmarkKind, foreign: InvalidUtf8) -> Self {
        let longest = (limits.most / 8).clamp(MIN_PART_BYTES, MAX_PART_BYTES);
        let kept = TextCandidates {
            limits: limits.clone(),
            landmarks,
            head: TextRun::default(),
            is_head_full: false,
            older: TextRun::default(),
            newer: TextRun::default(),
            found: ImportantLines::new(
                limits.max_buffered().saturating_mul(landmarks.max_percent()) / 100,
                landmarks.neighbour_count(),
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
        self.lines.push(bytes, |part| kept.push_text(part))
    }

    /// Returns the capped text, and the number of invalid sequences that were replaced.
    pub(super) fn finish(mut self) -> Result<(ShortenedText, u64), CapError> {
        let kept = &mut self.candidates;
        self.lines.finish(|part| kept.push_text(part))?;
        let (kept, replaced) = (self.candidates, self.lines.replaced_bytes);
        if !kept.is_head_full && kept.limits.fits(kept.head.text()) {
            let original = kept.original_size();
            let text = kept.head.into_text();
            return Ok((ShortenedText { text, omitted: None, returned: original, original }, replaced));
        }
        Ok((
            kept.limits.render_within(|size| kept.render_within(size), |shortened| &shortened.text),
            replaced,
        ))
    }
}

impl TextCandidates {
    fn push_text(&mut self, text: &str) {
        let marker = marker::parse_line(text).filter(|_| self.ends_line);
        self.bytes += text.len() as u64;
        if self.count == 0 && self.capped_before.is_none() && marker.is_some() {
            self.capped_before = marker;
            // Keep this line in case the text does not need capping.
            self.push_part(text, OmittedAmount::default(), false);
            return;
        }
        let ends_line = text.ends_with('\n');
        let own = OmittedAmount { lines: u64::from(ends_line), chars: text.chars().count() as u64 };
        self.in_markers = self.in_markers.plus(marker.unwrap_or_default());
        let is_landmark = marker.is_none() && self.landmarks.matches_line(text);
        self.push_part(text, marker.unwrap_or(own), is_landmark);
        self.ends_line = ends_line;
    }

    fn push_part(&mut self, text: &str, weight: OmittedAmount, is_landmark: bool) {
        let held = self.limits.max_buffered();
        let part =
            TextPart { at: self.count, text, size: self.limits.size(text), before: self.total, weight };
        self.is_head_full |= self.head.size().saturating_add(part.size) > held;
        if !self.is_head_full {
            self.head.push(part);
        }
        if self.newer.size().saturating_add(part.size) > held && !self.newer.is_empty() {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.push(part);
        self.found.push(part, is_landmark);
        self.total = self.total.plus(weight);
        self.count += 1;
    }

    fn original_size(&self) -> Size {
        Size { bytes: self.bytes, chars: self.total.chars }
    }

    /// Returns the amount that an earlier capping omitted before the first line that it kept.
    fn omitted_before_start(&self) -> OmittedAmount {
        let before = self.capped_before.unwrap_or_default();
        OmittedAmount {
            lines: before.lines.saturating_sub(self.in_markers.lines),
            chars: before.chars.saturating_sub(self.in_markers.chars),
        }
    }

    /// Returns the text in at most `most`. The size of the markers is only known after they are written, so
    /// room that was reserved in vain is then given back to the text.
    fn render_within(&self, most: usize) -> ShortenedText {
        let mut best = self.render_with_reserve(most, 0);
        // Markers between single lines may need more room than reserved, and more bytes than the whole text.
        let mut smaller = most;
        let fits = |shortened: &ShortenedText| {
            self.limits.size(&shortened.text) <= most && shortened.text.len() as u64 <= self.bytes
        };
        while !fits(&best) && smaller > 0 {
            smaller = smaller / 4 * 3;
            best = self.render_with_reserve(smaller, 0);
        }
        let mut spare = 0;
        for _ in 0..MAX_REFINEMENTS {
            spare += most.saturating_sub(self.limits.size(&best.text));
            let next = self.render_with_reserve(most, spare);
            if !fits(&next) {
                break;
            }
            best = next;
        }
        best
    }

    /// Returns the text in about `most`. `spare` is added to the room that is left after reserving room for
    /// markers.
    fn render_with_reserve(&self, most: usize, spare: usize) -> ShortenedText {
        // Maximum size of a marker with the line breaks before and after it.
        let widest = self.total.plus(self.capped_before.unwrap_or_default());
        let marker = marker::text_marker(widest.plus(OmittedAmount { lines: 2, chars: 0 })).len() + 2;
        let first = marker + self.limits.read_hint().len();
        let room = most.saturating_sub(first);
        let for_found = (most * self.landmarks.max_percent() / 100).min(room);
        // Lines next to the head or the tail are shown with it, and need no additional room.
        let (_, taken) = self.found.select_within(for_found, marker, 0..u64::MAX);
        let room = (room + spare).saturating_sub(taken + 2 * marker);
        let (head, tail) = match self.limits.keep {
            Keep::Both => (room / 3, room - room / 3),
            Keep::Head => (room, 0),
            Keep::Tail => (0, room),
        };
        let skipped = u64::from(self.capped_before.is_some());
        let head: Vec<TextPart<'_>> =
            leading_parts_within(self.head.parts().skip(usize::from(skipped > 0)), head);
        let head_end = head.last().map_or(skipped, |part| part.at + 1);
        let last = self.older.parts().chain(self.newer.parts()).rev();
        let mut tail = leading_parts_within(last.take_while(|part| part.at >= head_end), tail);
        tail.reverse();
        let tail_begin = tail.first().map_or(self.count, |part| part.at);
        let (between, _) = self.found.select_within(for_found, marker, head_end..tail_begin);
        self.assemble(head.iter().copied().chain(between).chain(tail.iter().copied()))
    }

    /// Joins the parts, and inserts a marker wherever parts are missing.
    fn assemble<'a>(&'a self, parts: impl Iterator<Item = TextPart<'a>>) -> ShortenedText {
        let (mut body, mut returned, mut left_out) =
            (String::new(), Size::default(), self.omitted_before_start());
        let mut next = u64::from(self.capped_before.is_some());
        let mut after = OmittedAmount::default();
        let unfinished = OmittedAmount { lines: u64::from(!self.ends_line), chars: 0 };
        let end = TextPart {
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
                // Before the first part, the first marker already covers the gap.
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
        ShortenedText { text, omitted: Some(left_out), returned, original: self.original_size() }
    }
}

/// Returns the first parts whose total size is at most `most`.
fn leading_parts_within<'a>(parts: impl Iterator<Item = TextPart<'a>>, most: usize) -> Vec<TextPart<'a>> {
    let mut left = most;
    let fits = |part: &TextPart<'_>| {
        let rest = left.checked_sub(part.size);
        left = rest.unwrap_or(left);
        rest.is_some()
    };
    parts.take_while(fits).collect()
}
