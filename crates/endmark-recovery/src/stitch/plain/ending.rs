//! Finds where the text can end in a continuation: before a remark, or before a fence that closes a wrapper.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

use endmark_text::detect::Detector;
use endmark_text::{Format, Verdict};

use super::MAX_LEFT_OUT;
use super::nesting::root;
use super::opening::MAX_PARAGRAPHS;
use crate::stitch::joint::{ContinuationMode, Joint};
use crate::stitch::opening::Opening;
use crate::stitch::register::{self, SurroundingText, has_rule, is_rule};
use crate::stitch::seam::AskedFrom;
use crate::stitch::{fence, preamble, reasoning};

/// Evidence in bits that a fence which closes nothing belongs to a wrapper.
const UNPAIRED_FENCE_BITS: f64 = 6.0;

/// Maximum evidence of one line, in bits.
const MAX_BITS: f64 = 14.0;

/// Evidence in bits that a closing remark after a JSON document is not part of the text.
const REMARK_AFTER_JSON_BITS: f64 = 16.0;

/// A position at which a text can end in the continuation.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    pub(super) position: usize,
    pub(super) cost: f64,
    /// Whether a remark after it is removed.
    pub(super) is_dropped: bool,
}

/// Returns the possible ends of the text that begins here, starting with the likeliest reading of a fence. The
/// arguments contain the number of fence lines before the last line of the first part, and that line. `tails` are the
/// possible remarks and fences at the end.
pub(super) fn ends(
    joint: &Joint<'_>,
    opening: &Opening,
    start: usize,
    (fences, line_before): (usize, &str),
    tails: &Tails,
) -> Vec<End> {
    let text = joint.continuation;
    let body = &text[start..];
    if let Some(fence) = opening.fence
        && let Some(end) = end_before_closing(body, fence, (fences, line_before))
    {
        return vec![End {
            position: start + end,
            cost: tails.remark_evidence(start + end),
            is_dropped: false,
        }];
    }
    if let Some(at) = opening.quoted.filter(|at| *at >= start) {
        return vec![End { position: at, cost: 0.0, is_dropped: false }];
    }
    let mut found = vec![End { position: text.len(), cost: 0.0, is_dropped: false }];
    if let Format::Marker(marker) = &joint.format {
        let end = body.find(marker.trim()).map(|at| start + at + marker.trim().len());
        if let Some(at) = end.filter(|end| *end < text.len() && preamble::is_remark(&text[*end..])) {
            return vec![End { position: at, cost: 1.0, is_dropped: true }];
        }
    }
    if let Some(end) = root_end(joint, body) {
        return vec![End {
            position: start + end,
            cost: tails.remark_evidence(start + end),
            is_dropped: true,
        }];
    }
    found.extend(tails.remarks.iter().filter(|remark| remark.position > start));
    let last = found.last().map_or(text.len(), |end| end.position);
    // The fence also opens nothing if another one opens the text.
    let opens = !joint.fence_is_open && fence::opening(body).is_some();
    if !opens && let Some(at) = tails.closes_nothing(text, start..last.max(start)) {
        let cost = found.last().map_or(0.0, |end| end.cost) - UNPAIRED_FENCE_BITS;
        found.push(End { position: start + at, cost, is_dropped: true });
    }
    found
}

/// The remarks and fences that may end a continuation.
pub(super) struct Tails {
    /// The end of the text for each number of removed remarks.
    remarks: Vec<End>,
    /// The code blocks that are open at the cut, if a fence ends the continuation.
    blocks: Option<Detector>,
    /// Cache of results for parts of the continuation.
    cache: RefCell<HashMap<Range<usize>, Option<usize>>>,
}

impl Tails {
    pub(super) fn new(joint: &Joint<'_>, around: &SurroundingText) -> Self {
        let behind_json = end_before_leave(joint, around);
        if matches!(
            joint.mode,
            ContinuationMode::Shown | ContinuationMode::ByMessage | ContinuationMode::Unfinished
        ) {
            let remarks = behind_json.into_iter().collect();
            return Self { remarks, blocks: None, cache: RefCell::default() };
        }
        let mut remarks = remarks(joint, around);
        remarks.extend(behind_json);
        let end = remarks.last().map_or(joint.continuation.len(), |end| end.position);
        let text = joint.continuation[..end].trim_end();
        let line = text.rfind('\n').map_or("", |at| &text[at + 1..]);
        let blocks = fence::rest_after_closing(line).map(|_| {
            let mut blocks = Detector::new(&Format::Markdown);
            blocks.push(joint.initial.as_bytes());
            blocks
        });
        Self { remarks, blocks, cache: RefCell::default() }
    }

    /// Returns the evidence for the remark after an end that was found in another way. It is a remark in all other
    /// stories as well.
    fn remark_evidence(&self, end: usize) -> f64 {
        let behind = self.remarks.iter().find(|remark| remark.position >= end);
        behind.map_or(0.0, |remark| remark.cost.min(0.0))
    }

    /// Returns where this part of the continuation ends before a fence in its last line that closes nothing and opens
    /// a block without end. The position is counted from the beginning of the part.
    fn closes_nothing(&self, continuation: &str, part: Range<usize>) -> Option<usize> {
        let blocks = self.blocks.as_ref()?;
        let body = &continuation[part.clone()];
        *self.cache.borrow_mut().entry(part).or_insert_with(|| {
            let text = body.trim_end();
            let kept = without_line_end(&text[..=text.rfind('\n')?]);
            let mut blocks = blocks.clone();
            blocks.push(kept.as_bytes());
            let is_closed = blocks.is_whole();
            blocks.push(&body.as_bytes()[kept.len()..]);
            (is_closed && !blocks.is_whole()).then_some(kept.len())
        })
    }
}

fn remarks(joint: &Joint<'_>, around: &SurroundingText) -> Vec<End> {
    let text = joint.continuation;
    let prior = if joint.from == AskedFrom::Cut { 2.0 } else { 0.0 };
    let mut found: Vec<End> = Vec::new();
    let mut bits = 0.0;
    let mut rest = text.trim_end();
    while found.len() < MAX_PARAGRAPHS {
        let score = |at: usize| register::closing_remark_evidence(joint, around, &rest[..at], &rest[at..]);
        // Remove as little as possible: a line, or else the paragraph.
        let places = [rest.rfind('\n').map(|at| at + 1), rest.rfind("\n\n").map(|at| at + 2)];
        let mut scored = places.into_iter().flatten().map(|at| (at, score(at)));
        let Some((at, more)) = scored.find(|(at, more)| *more >= 0.0 || is_rule(&rest[*at..])) else { break };
        // A rule above a remark separates it, or belongs to the text if the text has other rules.
        let more = match is_rule(&rest[at..]) && !found.is_empty() {
            true if has_rule(joint.initial) || has_rule(&rest[..at]) => 3.0,
            true => 7.0,
            false => more,
        };
        if more < 0.0 {
            break;
        }
        bits += more.min(MAX_BITS);
        // A blank line after the paragraph belongs to it. Further line breaks end the text.
        let before = without_line_end(&rest[..at]);
        let end = if rest[..at].ends_with("\n\n") { without_line_end(before) } else { before };
        found.push(End { position: end.len(), cost: prior - bits, is_dropped: true });
        rest = rest[..at].trim_end();
    }
    found
}

/// Returns the end of a JSON document that begins in the first part, in a text without grammar, if only a closing
/// remark follows. Such a remark addresses the reader, whatever the request was, and a parser of the document cannot
/// read it.
pub(super) fn end_before_leave(joint: &Joint<'_>, around: &SurroundingText) -> Option<End> {
    let text = joint.continuation;
    let mut detector = json_state_after(&joint.format, joint.initial)?;
    let state = detector.clone();
    detector.push(text.as_bytes());
    let Verdict::Malformed { index, .. } = detector.verdict() else { return None };
    let document = text.get(..index.checked_sub(joint.initial.len())?)?.trim_end();
    let mut at_end = state;
    at_end.push(document.as_bytes());
    let (at, rest) = (document.len(), text.get(document.len()..)?);
    if !at_end.is_whole() || joint.mode == ContinuationMode::Unfinished {
        return None;
    }
    // The document began the text, so a fence after it closes nothing.
    let after_reasoning = reasoning::rest_after_reasoning(rest, joint.known_signs);
    let after_reasoning = reasoning::rest_after_reasoning(
        fence::rest_after_closing(after_reasoning.trim_start()).unwrap_or(after_reasoning),
        joint.known_signs,
    );
    let is_short = after_reasoning.len() <= MAX_LEFT_OUT;
    let mut after_reasoning = after_reasoning.split("\n\n").filter(|part| !part.trim().is_empty());
    let is_leave = !rest.trim().is_empty()
        && is_short
        && after_reasoning.all(|part| register::addresses_reader_at_end(joint, around, document, part));
    is_leave.then_some(End { position: at, cost: -REMARK_AFTER_JSON_BITS, is_dropped: true })
}

/// Returns the state of the JSON detector after a text without grammar, if that begins an object or a list.
pub(in crate::stitch) fn json_state_after(format: &Format, text: &str) -> Option<Detector> {
    if *format != Format::Text || !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let mut detector = Detector::new(&Format::Json);
    detector.push(text.as_bytes());
    (!detector.is_malformed() && !detector.is_whole()).then_some(detector)
}

fn without_line_end(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

/// Returns the end of a document of tags, if only prose follows it and all text before it is in tags. That prose is a
/// remark.
fn root_end(joint: &Joint<'_>, body: &str) -> Option<usize> {
    if joint.format != Format::Tags {
        return None;
    }
    let cut = joint.initial.len();
    // The cut may go through the tag that closes the root, or precede the tag that opens it.
    let text = [joint.initial, body].concat();
    let closing = format!("</{}>", root(&text)?);
    // A remark writes the name of a tag as code.
    let is_named =
        |at: usize| text[..at].rsplit('\n').next().unwrap_or_default().matches('`').count() % 2 == 1;
    let last = text.rmatch_indices("</").map(|(at, _)| at).take(4).find(|at| !is_named(*at))?;
    let end = last + text[last..].find('>')? + 1;
    let (kept, rest) = text.split_at(end);
    let added = kept.get(cut..).filter(|added| !added.is_empty())?;
    // If there is text between two outermost tags, it belongs to the document, and text after the last tag may belong
    // too.
    let has_text_outside = || {
        let mut others = kept.split(closing.as_str()).skip(1).filter(|other| !other.trim().is_empty());
        others.any(|other| !other.trim_start().starts_with('<'))
    };
    // A fence that the continuation opened is closed there.
    let closes = fence::lines(added) % 2 == 1 && fence::lines(rest) > 0;
    if closes || rest.trim().is_empty() || register::without_code(rest).contains('<') || has_text_outside() {
        return None;
    }
    let mut state = joint.state_at(cut);
    state.push(added.as_bytes());
    let breaks = rest.len() - rest.trim_start_matches('\n').len();
    // The blank line before the remark belongs to the remark.
    state.is_whole().then_some(end - cut + breaks.saturating_sub(2))
}

/// Returns the end of a wrapped text before its closing fence, if only remarks follow the fence.
fn end_before_closing(
    body: &str,
    (sign, count): (char, usize),
    (fences, line_before): (usize, &str),
) -> Option<usize> {
    let closes = |line: &str| line.len() >= count && line.chars().all(|other| other == sign);
    let start = fence::closing_line_start(body, closes)?;
    // A fence line that contains the seam is a fence line of the joined text.
    let parity = if count > 3 { 1 } else { fences + fence::lines(&[line_before, body].concat()) };
    // The line break before the closing fence belongs to the fence. A text that needs this fence for its own block
    // keeps it.
    (parity % 2 == 1).then(|| without_line_end(&body[..start]).len())
}
