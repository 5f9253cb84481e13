//! Finds where the text may end in a continuation: before a remark, or before a fence that closes a wrapper.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

use endmark_text::detect::Detector;
use endmark_text::{Format, Verdict};

use super::MAX_REMOVED_REMARK_BYTES;
use super::continuation_starts::MAX_PARAGRAPHS;
use super::nesting::root_name;
use crate::stitch::continuation_start::ContinuationStart;
use crate::stitch::joint::{ContinuationMode, Joint};
use crate::stitch::register::{self, SurroundingText, has_rule, is_rule};
use crate::stitch::seam::AskedFrom;
use crate::stitch::{fence, prompt_echo_and_remarks, reasoning};

/// Evidence, in bits, that an unmatched closing fence belongs to a wrapper.
const UNPAIRED_FENCE_BITS: f64 = 6.0;

/// Maximum evidence of one line, in bits.
const MAX_LINE_BITS: f64 = 14.0;

/// Evidence, in bits, that a closing remark after a JSON document does not belong to the text.
const REMARK_AFTER_JSON_BITS: f64 = 16.0;

/// A position at which the text may end in the continuation.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextEnd {
    pub(super) position: usize,
    pub(super) cost: f64,
    /// Whether a remark after it is removed.
    pub(super) is_dropped: bool,
}

/// Returns the possible ends of the text that starts here. A closing fence of a wrapper determines the only
/// end. The pair contains the number of fence lines before the last line of the first part, and that line.
/// `tails` are the possible remarks and fences at the end.
pub(super) fn text_ends(
    joint: &Joint<'_>,
    opening: &ContinuationStart,
    start: usize,
    (fences, line_before): (usize, &str),
    tails: &RemovableEnds,
) -> Vec<TextEnd> {
    let text = joint.continuation;
    let body = &text[start..];
    if let Some(fence) = opening.fence
        && let Some(end) = end_before_closing(body, fence, (fences, line_before))
    {
        return vec![TextEnd {
            position: start + end,
            cost: tails.remark_evidence(start + end),
            is_dropped: false,
        }];
    }
    if let Some(at) = opening.quotation_end.filter(|at| *at >= start) {
        return vec![TextEnd { position: at, cost: 0.0, is_dropped: false }];
    }
    let mut found = vec![TextEnd { position: text.len(), cost: 0.0, is_dropped: false }];
    if let Format::Marker(marker) = &joint.format {
        let end = body.find(marker.trim()).map(|at| start + at + marker.trim().len());
        if let Some(at) =
            end.filter(|end| *end < text.len() && prompt_echo_and_remarks::is_remark(&text[*end..]))
        {
            return vec![TextEnd { position: at, cost: 1.0, is_dropped: true }];
        }
    }
    if let Some(end) = root_end(joint, body) {
        return vec![TextEnd {
            position: start + end,
            cost: tails.remark_evidence(start + end),
            is_dropped: true,
        }];
    }
    found.extend(tails.remarks.iter().filter(|remark| remark.position > start));
    let last = found.last().map_or(text.len(), |end| end.position);
    // If another fence opens a block in the text, the last fence may close it.
    let opens = !joint.fence_is_open && fence::opening_line_end(body).is_some();
    if !opens && let Some(at) = tails.end_before_unmatched_fence(text, start..last.max(start)) {
        let cost = found.last().map_or(0.0, |end| end.cost) - UNPAIRED_FENCE_BITS;
        found.push(TextEnd { position: start + at, cost, is_dropped: true });
    }
    found
}

/// The remarks and fences that may end a continuation.
pub(super) struct RemovableEnds {
    /// The end of the text for each number of removed remarks.
    remarks: Vec<TextEnd>,
    /// The code blocks that are open at the cut. `None` if the continuation does not end in a fence.
    blocks: Option<Detector>,
    /// Cache of results for parts of the continuation.
    cache: RefCell<HashMap<Range<usize>, Option<usize>>>,
}

impl RemovableEnds {
    pub(super) fn new(joint: &Joint<'_>, around: &SurroundingText) -> Self {
        let behind_json = end_before_closing_remark(joint, around);
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

    /// Returns the evidence for a remark after an end that was determined in another way, for example by a
    /// fence. It counts as a remark for all other candidates, too.
    fn remark_evidence(&self, end: usize) -> f64 {
        let behind = self.remarks.iter().find(|remark| remark.position >= end);
        behind.map_or(0.0, |remark| remark.cost.min(0.0))
    }

    /// Returns the end of this part before a fence in its last line, if that fence closes no block but would
    /// open an endless one. The position is relative to the start of the part.
    fn end_before_unmatched_fence(&self, continuation: &str, part: Range<usize>) -> Option<usize> {
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

fn remarks(joint: &Joint<'_>, around: &SurroundingText) -> Vec<TextEnd> {
    let text = joint.continuation;
    let prior = if joint.from == AskedFrom::Cut { 2.0 } else { 0.0 };
    let mut found: Vec<TextEnd> = Vec::new();
    let mut bits = 0.0;
    let mut rest = text.trim_end();
    while found.len() < MAX_PARAGRAPHS {
        let score = |at: usize| register::closing_remark_evidence(joint, around, &rest[..at], &rest[at..]);
        // Remove as little as possible: the last line, or else the last paragraph.
        let places = [rest.rfind('\n').map(|at| at + 1), rest.rfind("\n\n").map(|at| at + 2)];
        let mut scored = places.into_iter().flatten().map(|at| (at, score(at)));
        let Some((at, more)) = scored.find(|(at, more)| *more >= 0.0 || is_rule(&rest[*at..])) else { break };
        // A rule before a remark separates it, but may belong to the text if the text has other rules.
        let more = match is_rule(&rest[at..]) && !found.is_empty() {
            true if has_rule(joint.initial) || has_rule(&rest[..at]) => 3.0,
            true => 7.0,
            false => more,
        };
        if more < 0.0 {
            break;
        }
        bits += more.min(MAX_LINE_BITS);
        // A blank line after the paragraph belongs to it. The text ends before further line breaks.
        let before = without_line_end(&rest[..at]);
        let end = if rest[..at].ends_with("\n\n") { without_line_end(before) } else { before };
        found.push(TextEnd { position: end.len(), cost: prior - bits, is_dropped: true });
        rest = rest[..at].trim_end();
    }
    found
}

/// Returns the end of a JSON document that the first part begins, in text without a required format, if only
/// a closing remark follows. Such a remark addresses the reader, whatever the request was, and parsers of the
/// document cannot read it.
pub(super) fn end_before_closing_remark(joint: &Joint<'_>, around: &SurroundingText) -> Option<TextEnd> {
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
    // The document began the text without a fence, so a fence after it closes nothing.
    let after_reasoning = reasoning::rest_after_reasoning(rest, joint.known_signs);
    let after_reasoning = reasoning::rest_after_reasoning(
        fence::rest_after_closing(after_reasoning.trim_start()).unwrap_or(after_reasoning),
        joint.known_signs,
    );
    let is_short = after_reasoning.len() <= MAX_REMOVED_REMARK_BYTES;
    let mut after_reasoning = after_reasoning.split("\n\n").filter(|part| !part.trim().is_empty());
    let is_leave = !rest.trim().is_empty()
        && is_short
        && after_reasoning.all(|part| register::addresses_reader_at_end(joint, around, document, part));
    is_leave.then_some(TextEnd { position: at, cost: -REMARK_AFTER_JSON_BITS, is_dropped: true })
}

/// Returns the state of the JSON detector after a text without a grammar, if the text begins an object or an
/// array.
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

/// Returns the end of the root element, if all text so far is in it and only prose follows. Such prose is a
/// remark.
fn root_end(joint: &Joint<'_>, body: &str) -> Option<usize> {
    if joint.format != Format::Tags {
        return None;
    }
    let cut = joint.initial.len();
    // The cut may be within the tag that closes the root element, or before the one that opens it.
    let text = [joint.initial, body].concat();
    let closing = format!("</{}>", root_name(&text)?);
    // A remark writes the name of a tag as inline code.
    let is_named =
        |at: usize| text[..at].rsplit('\n').next().unwrap_or_default().matches('`').count() % 2 == 1;
    let last = text.rmatch_indices("</").map(|(at, _)| at).take(4).find(|at| !is_named(*at))?;
    let end = last + text[last..].find('>')? + 1;
    let (kept, rest) = text.split_at(end);
    let added = kept.get(cut..).filter(|added| !added.is_empty())?;
    // If there is text between two top-level tags, text after the last one may belong to the document, too.
    let has_text_outside = || {
        let mut others = kept.split(closing.as_str()).skip(1).filter(|other| !other.trim().is_empty());
        others.any(|other| !other.trim_start().starts_with('<'))
    };
    // A fence that the continuation opened is closed after the document.
    let closes = fence::line_count(added) % 2 == 1 && fence::line_count(rest) > 0;
    if closes || rest.trim().is_empty() || register::without_code(rest).contains('<') || has_text_outside() {
        return None;
    }
    let mut state = joint.state_at(cut);
    state.push(added.as_bytes());
    let breaks = rest.len() - rest.trim_start_matches('\n').len();
    // The blank line before a remark belongs to the remark.
    state.is_whole().then_some(end - cut + breaks.saturating_sub(2))
}

/// Returns the end of a wrapped text before its closing fence, if only remarks follow that fence.
fn end_before_closing(
    body: &str,
    (sign, count): (char, usize),
    (fences, line_before): (usize, &str),
) -> Option<usize> {
    let closes = |line: &str| line.len() >= count && line.chars().all(|other| other == sign);
    let start = fence::closing_line_start(body, closes)?;
    // If the seam is within a fence line, count that line in the joined text.
    let parity = if count > 3 { 1 } else { fences + fence::line_count(&[line_before, body].concat()) };
    // The line break before the closing fence belongs to the fence. If a code block of the text itself needs
    // this fence, the fence is kept.
    (parity % 2 == 1).then(|| without_line_end(&body[..start]).len())
}
