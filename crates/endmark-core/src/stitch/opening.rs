//! The ways a continuation can open before its part of the text begins, one after the other undone:
//! announcement, fence, dots, whitespace.

use super::joint::Joint;
use super::preamble::{self, Certainty};
use super::seam::SeamStyle;
use super::{AskedFrom, ellipsis, fence};

/// At most this many openings are looked at.
const MOST: usize = 24;

/// One way to read where the continuation's part begins and ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Opening {
    /// Byte offset in the continuation where its part begins.
    pub(super) start: usize,
    /// What was undone first; none where nothing was.
    pub(super) style: Option<SeamStyle>,
    /// How unlikely this is beforehand, in bits.
    pub(super) cost: f64,
    /// Whether a fence was undone.
    pub(super) fenced: bool,
}

impl Opening {
    fn then(self, start: usize, style: SeamStyle, cost: f64) -> Self {
        Self { start, style: self.style.or(Some(style)), cost: self.cost + cost, ..self }
    }

    /// Whether nothing was undone.
    pub(super) fn is_bare(&self) -> bool {
        self.style.is_none()
    }
}

/// All openings of the continuation, the bare one first.
pub(super) fn openings(joint: &Joint<'_>) -> Vec<Opening> {
    let text = joint.continuation;
    let bare = Opening { start: 0, style: None, cost: 0.0, fenced: false };
    let mut found = vec![bare];
    for (end, certainty, ends_line) in preamble::ends(text) {
        // A turn of its own does not begin with a space or a line break; a text that goes on does.
        let goes_on = text.starts_with(char::is_whitespace) && joint.in_text;
        let begun = Opening { cost: if goes_on { 8.0 } else { 0.0 }, ..bare };
        announced(joint, begun, end, certainty, ends_line, &mut found);
    }
    for index in 0..found.len() {
        if let Some(length) = fence::opening(&text[found[index].start..]) {
            let unwrapped = found[index].then(found[index].start + length, SeamStyle::Fence, 1.0);
            found.push(Opening { fenced: true, ..unwrapped });
        }
    }
    for index in 0..found.len() {
        if let Some(length) = ellipsis::after(&text[found[index].start..]) {
            found.push(found[index].then(found[index].start + length, SeamStyle::Ellipsis, 5.0));
        }
    }
    for index in 0..found.len() {
        spaced(joint, found[index], &mut found);
    }
    // The likeliest way to each place is enough.
    found.sort_by(|left, right| left.start.cmp(&right.start).then(left.cost.total_cmp(&right.cost)));
    found.dedup_by_key(|opening| opening.start);
    found.sort_by(|left, right| left.cost.total_cmp(&right.cost));
    found.truncate(MOST);
    found
}

/// Adds the openings behind whitespace that stands before the part.
fn spaced(joint: &Joint<'_>, opening: Opening, found: &mut Vec<Opening>) {
    let text = joint.continuation;
    let rest = &text[opening.start..];
    let spaces = rest.len() - rest.trim_start().len();
    let breaks = rest.len() - rest.trim_start_matches(['\n', '\r']).len();
    if spaces == 0 {
        return;
    }
    // Behind a line of its own a part begins where it begins; in one line a space may be in between.
    let in_line = !opening.is_bare() && !text[..opening.start].ends_with('\n');
    let cost = match (opening.is_bare(), joint.from) {
        (false, _) if in_line && opening.style == Some(SeamStyle::Preamble) => 0.5,
        (false, _) if in_line => 3.0,
        (true, AskedFrom::Token | AskedFrom::Unknown) => 3.0,
        (false, _) | (true, AskedFrom::Cut) => 8.0,
    };
    if in_line && rest.starts_with(' ') {
        let one = if opening.style == Some(SeamStyle::Preamble) { -3.0 } else { 1.0 };
        found.push(opening.then(opening.start + 1, SeamStyle::Whitespace, one));
    }
    if spaces > 1 || !in_line {
        found.push(opening.then(opening.start + spaces, SeamStyle::Whitespace, cost));
    }
    if breaks > 0 && breaks != spaces {
        found.push(opening.then(opening.start + breaks, SeamStyle::Whitespace, cost));
    }
}

/// Adds the openings behind an announcement that ends here.
fn announced(
    joint: &Joint<'_>,
    bare: Opening,
    end: usize,
    certainty: Certainty,
    ends_line: bool,
    found: &mut Vec<Opening>,
) {
    let rest = &joint.continuation[end..];
    let cost = match certainty {
        Certainty::Certain => 2.0,
        Certainty::Opener => 4.0,
        Certainty::Form => 9.0,
    };
    if !ends_line {
        found.push(bare.then(end, SeamStyle::Preamble, cost + 4.0));
        return;
    }
    let blank = rest.len() - rest.trim_start_matches(['\n', '\r']).len();
    let breaks = rest[..blank].matches('\n').count();
    // An announcement stands in its own paragraph: one line break more than that may be the text's own.
    let cost = if fence::opening(rest).is_some() { cost.min(4.0) } else { cost };
    let beyond = if breaks > 2 { 2.0 } else { 0.0 };
    found.push(bare.then(end + blank, SeamStyle::Preamble, cost + beyond));
}
