//! What can stand around the text in a continuation: an announcement or dots before it, a fence around it, a
//! remark behind it.

use super::turn;
use crate::Format;
use crate::stitch::joint::Joint;
use crate::stitch::seam::{AskedFrom, SeamStyle};
use crate::stitch::{ellipsis, fence, preamble};

/// What reads as an announcement from so many bits on.
const ANNOUNCES: f64 = 5.0;
/// What reads as a remark from so many bits on.
const REMARKS: f64 = 5.0;
/// How much likelier a sentence is a remark behind a fence, code or tags, in bits.
const BEHIND_FENCE: f64 = 6.0;
/// How much likelier what has the form of a remark or an announcement is one than not, in bits.
const BY_FORM: f64 = 9.0;
/// An announcement has at most so many paragraphs.
const MOST_PARAGRAPHS: usize = 3;

/// One way to read where the continuation's own text begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Opening {
    pub(super) start: usize,
    /// What was undone first; none where nothing was.
    pub(super) style: Option<SeamStyle>,
    /// How unlikely this is, in bits.
    pub(super) cost: f64,
    /// The fence that was undone: its sign and how many of them.
    pub(super) fence: Option<(char, usize)>,
    /// Whether the text begins a line of its own in the continuation, behind something else.
    pub(super) own_line: bool,
}

impl Opening {
    fn then(self, start: usize, style: SeamStyle, cost: f64) -> Self {
        Self { start, style: self.style.or(Some(style)), cost: self.cost + cost, ..self }
    }

    pub(super) fn is_bare(&self) -> bool {
        self.style.is_none()
    }
}

/// All openings of a continuation, the bare one first.
pub(super) fn openings(joint: &Joint<'_>) -> Vec<Opening> {
    let text = joint.continuation;
    let bare = Opening { start: 0, style: None, cost: 0.0, fence: None, own_line: false };
    let mut found = vec![bare];
    announced(joint, bare, &mut found);
    for index in 0..found.len() {
        let rest = &text[found[index].start..];
        if let Some(length) = fence::opening(rest) {
            let cost = fence_cost(joint, found[index]);
            let unwrapped = found[index].then(found[index].start + length, SeamStyle::Fence, cost);
            let signs = rest.trim_start();
            let sign = signs.chars().next().unwrap_or('`');
            let count = signs.len() - signs.trim_start_matches(sign).len();
            found.push(Opening { fence: Some((sign, count)), own_line: true, ..unwrapped });
        }
    }
    for index in 0..found.len() {
        let opening = found[index];
        if let Some(length) = ellipsis::after(&text[opening.start..]) {
            let cost = if joint.from == AskedFrom::Cut { 6.0 } else { 3.0 };
            let dotted = opening.then(opening.start + length, SeamStyle::Ellipsis, cost);
            found.push(dotted);
            if text[dotted.start..].starts_with(' ') {
                found.push(dotted.then(dotted.start + 1, SeamStyle::Ellipsis, 1.0));
            }
        }
    }
    for index in 0..found.len() {
        spaced(joint, found[index], &mut found);
    }
    found.sort_by(|left, right| left.start.cmp(&right.start).then(left.cost.total_cmp(&right.cost)));
    found.dedup_by(|second, first| second.start == first.start && !second.is_bare());
    found
}

/// Adds the openings behind whitespace that was added before the text.
fn spaced(joint: &Joint<'_>, opening: Opening, found: &mut Vec<Opening>) {
    let text = joint.continuation;
    let rest = &text[opening.start..];
    let spaces = rest.len() - rest.trim_start().len();
    let breaks = rest.len() - rest.trim_start_matches('\n').len();
    if spaces == 0 || spaces == rest.len() {
        return;
    }
    let cost = match (opening.is_bare(), joint.from) {
        (true, AskedFrom::Cut) => 9.0,
        (true, _) => 5.0,
        // Behind an announcement or a fence whitespace is seldom wrong, but it can be.
        (false, _) => 8.0,
    };
    let first = rest.chars().next().map_or(0, char::len_utf8);
    let mut ends = vec![first, breaks, spaces];
    ends.sort_unstable();
    ends.dedup();
    for end in ends.into_iter().filter(|end| *end > 0) {
        found.push(opening.then(opening.start + end, SeamStyle::Whitespace, cost));
    }
}

/// Adds the openings behind announcements.
fn announced(joint: &Joint<'_>, bare: Opening, found: &mut Vec<Opening>) {
    let text = joint.continuation;
    let prior = if joint.from == AskedFrom::Cut { 8.0 } else { 5.0 };
    let mut bits = 0.0;
    let mut start = text.len() - text.trim_start().len();
    // A turn of its own does not begin with a space; a text that goes on does.
    let set_off = if start > 0 { 6.0 } else { 0.0 };
    for paragraph in 0..MOST_PARAGRAPHS {
        let rest = &text[start..];
        let line = rest.split('\n').next().unwrap_or_default();
        let line_bits =
            turn::announcement(line).max(if paragraph == 0 { announces_by_form(joint, rest) } else { 0.0 });
        inline(joint, bare, (start, line, line_bits), prior + set_off - bits, found);
        let blank = &rest[line.len()..];
        let blank = &blank[..blank.len() - blank.trim_start_matches(['\n', '\r']).len()];
        if line_bits < ANNOUNCES || blank.is_empty() {
            return;
        }
        bits = f64::min(bits + line_bits - if paragraph > 0 { 2.0 } else { 0.0 }, 20.0);
        let cost = prior + set_off - bits;
        let end = start + line.len();
        let preamble = |skipped: usize, more: f64| Opening {
            own_line: true,
            ..bare.then(end + skipped, SeamStyle::Preamble, cost + more)
        };
        let one = if blank.starts_with("\r\n") { 2 } else { 1 };
        // An announcement stands in its own paragraph or line; what more there is belongs to the text.
        let two = (2 * one).min(blank.len());
        found.push(preamble(two, 0.0));
        if blank.len() > two {
            found.push(preamble(blank.len(), 6.0));
        }
        if two > one {
            found.push(preamble(one, 6.0));
        }
        start = end + blank.len();
    }
}

/// How much a line reads as an announcement by its form alone, in bits: it ends in a colon before a blank line, and
/// begins as nothing does in the middle of a sentence.
fn announces_by_form(joint: &Joint<'_>, text: &str) -> f64 {
    let line = text.split('\n').next().unwrap_or_default();
    let ends = line.trim_end().trim_end_matches('*').ends_with([':', '：'])
        && text[line.len()..].starts_with("\n\n");
    let begins = line.starts_with(|sign: char| sign.is_uppercase() || u32::from(sign) > 0x2e80);
    let in_word = joint.initial.ends_with(char::is_alphanumeric);
    if ends && begins && in_word && line.len() < 160 { BY_FORM } else { 0.0 }
}

/// Adds the openings behind an announcement in the line that the text goes on in.
fn inline(
    joint: &Joint<'_>,
    bare: Opening,
    (start, line, line_bits): (usize, &str, f64),
    prior: f64,
    found: &mut Vec<Opening>,
) {
    let text = joint.continuation;
    let mut sentences = 0;
    for (at, sign) in line.char_indices().take(300) {
        let wide = matches!(sign, '。' | '：' | '！');
        let after = at + sign.len_utf8();
        let ends =
            wide || matches!(sign, ':' | '.' | '!' | ')' | ']' | '…' | '*') && line[after..].starts_with(' ');
        if !ends || after == line.len() {
            continue;
        }
        sentences += 1;
        let bits = turn::announcement(&line[..after]);
        if bits < ANNOUNCES {
            if sentences > 4 {
                return;
            }
            continue;
        }
        // What the whole line says better, no part of it does.
        let cost = prior + 3.0 - bits + (line_bits - bits).max(0.0);
        let end = start + after;
        let space = usize::from(text[end..].starts_with(' '));
        found.push(bare.then(end + space, SeamStyle::Preamble, cost));
        if space > 0 {
            found.push(bare.then(end, SeamStyle::Preamble, cost + 3.0));
        }
    }
}

/// How unlikely it is that a fence at this place is a wrapper.
fn fence_cost(joint: &Joint<'_>, opening: Opening) -> f64 {
    let prior = if joint.from == AskedFrom::Cut { 4.0 } else { 1.5 };
    if !opening.is_bare() {
        return 1.0;
    }
    let rest = joint.continuation.trim_start();
    let line = rest.lines().next().unwrap_or_default();
    let is_bare = line.trim().chars().all(|sign| sign == '`' || sign == '~');
    // A block of the text's own stands behind a blank line or a colon.
    let announced = joint.initial.ends_with("\n\n") || joint.initial.trim_end().ends_with(':');
    match (joint.fence_is_open, joint.fence_stands_alone()) {
        // Here a bare fence line closes the block that is open, and one with a name opens none.
        (true, true) if is_bare => prior + 8.0,
        (true, true) => prior - 6.0,
        (false, true) if joint.looks_wrapped() => prior,
        (false, true) if announced => prior + 6.0,
        (false, true) => prior + 1.0,
        _ => prior,
    }
}

/// Where a text can end in the continuation.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    pub(super) at: usize,
    pub(super) cost: f64,
    /// Whether a remark behind it is left out.
    pub(super) left_out: bool,
}

/// The ends that the text beginning here can have, the likeliest reading of a fence first. Of the first part come the
/// number of fence lines before its last line, and that line.
pub(super) fn ends(
    joint: &Joint<'_>,
    opening: &Opening,
    start: usize,
    (fences, line_before): (usize, &str),
) -> Vec<End> {
    let text = joint.continuation;
    let body = &text[start..];
    let prior = if joint.from == AskedFrom::Cut { 8.0 } else { 5.0 };
    if let Some(fence) = opening.fence
        && let Some(end) = before_closing(body, fence, (fences, line_before))
    {
        // A remark behind the fence is one in every other story as well.
        let cost = remark(body).map_or(0.0, |(_, bits)| (prior - bits - BEHIND_FENCE).min(0.0));
        return vec![End { at: start + end, cost, left_out: false }];
    }
    let mut found = vec![End { at: text.len(), cost: 0.0, left_out: false }];
    if let Format::Marker(marker) = &joint.format {
        let end = body.find(marker.trim()).map(|at| start + at + marker.trim().len());
        if let Some(at) = end.filter(|end| *end < text.len() && preamble::is_remark(&text[*end..])) {
            return vec![End { at, cost: 1.0, left_out: true }];
        }
    }
    if let Some(end) = behind_root(joint, body) {
        return vec![End { at: start + end, cost: 0.0, left_out: true }];
    }
    let by_words = remark(body);
    if let Some(at) = by_form(joint, body).filter(|_| by_words.is_none()) {
        // Where it was asked for at the cut, what has only the form of a remark stays.
        let cost = match joint.from {
            AskedFrom::Cut if set_apart(joint, body, at) => -1.0,
            AskedFrom::Cut => 1.0,
            AskedFrom::Token | AskedFrom::Unknown => prior - BY_FORM,
        };
        found.push(End { at: start + at, cost, left_out: true });
    }
    if let Some((at, bits)) = by_words {
        let last = body[..at].trim_end().rsplit('\n').next().unwrap_or_default();
        // Behind code or tags a sentence is no part of the text, nor is one in another script.
        let foreign = match last.trim_end().chars().next_back() {
            Some('}' | ';' | '>' | ']' | '`' | '|') => BEHIND_FENCE,
            _ if !turn::is_sentence(last) => 4.0,
            _ => 0.0,
        };
        let wide = |text: &str| text.chars().any(|sign| u32::from(sign) >= 0x400);
        let foreign = if wide(&body[at..]) && !wide(last) { foreign + 4.0 } else { foreign };
        let cost = prior - bits - foreign;
        // In prose that was asked for at the cut, a paragraph that reads as a remark may be the text's own.
        let in_prose = joint.from == AskedFrom::Cut && foreign < BEHIND_FENCE;
        found.push(End {
            at: start + at,
            cost: if in_prose { cost.max(-1.0) } else { cost },
            left_out: true,
        });
    }
    found
}

/// The end of a document of tags behind which only prose follows, if all before it stands in tags: that is a remark.
fn behind_root(joint: &Joint<'_>, body: &str) -> Option<usize> {
    let first = joint.initial.trim_start().strip_prefix('<').filter(|_| joint.format == Format::Tags)?;
    let length = first.find(|sign: char| !(sign.is_alphanumeric() || matches!(sign, '_' | '-' | ':')))?;
    let closing = format!("</{}>", first.get(..length).filter(|name| !name.is_empty())?);
    let last = body.rfind("</")?;
    let end = last + body[last..].find('>')? + 1;
    let (kept, rest) = body.split_at(end);
    // Text between two outermost tags is of the document, and so may be text behind the last one.
    let has_text_outside = |text: &str| {
        let others = text.split(closing.as_str()).skip(1).filter(|other| !other.trim().is_empty());
        others.into_iter().any(|other| !other.trim_start().starts_with('<'))
    };
    if rest.trim().is_empty() || rest.contains('<') || has_text_outside(&[joint.initial, kept].concat()) {
        return None;
    }
    let mut state = joint.state_at(joint.initial.len());
    state.push(kept.as_bytes());
    let breaks = rest.len() - rest.trim_start_matches('\n').len();
    // The remark's own blank line belongs to it.
    state.is_whole().then_some(end + breaks.saturating_sub(2))
}

/// Where a last paragraph begins that is a sentence in a text without any: code, rows, another script.
fn by_form(joint: &Joint<'_>, body: &str) -> Option<usize> {
    const LINES: usize = 40;
    let text = body.trim_end();
    // What is longer is no remark, and blanks before it hardly fill the rest.
    let near = text.floor_char_boundary(text.len().saturating_sub(1_000));
    let at = near + text[near..].rfind("\n\n")?;
    let part = text[at..].trim();
    let is_prose = part.starts_with(|sign: char| sign.is_uppercase() || u32::from(sign) > 0x2e80)
        && turn::is_sentence(part);
    if part.len() > 240 || part.contains('\n') || !is_prose {
        return None;
    }
    let before = || {
        text[..at]
            .lines()
            .rev()
            .chain(joint.initial.lines().rev())
            .filter(|line| !line.trim().is_empty())
            .take(LINES)
    };
    let is_wide = |text: &str| text.chars().any(|sign| u32::from(sign) >= 0x400);
    let other_script = is_wide(part) && !before().any(is_wide);
    let at_breaks = at - (text[..at].len() - text[..at].trim_end_matches('\n').len());
    (other_script || !before().any(turn::is_sentence) || set_apart(joint, body, at_breaks))
        .then_some(at_breaks)
}

/// Whether the paragraph behind this place is set apart by more blank lines than any other.
fn set_apart(joint: &Joint<'_>, body: &str, at: usize) -> bool {
    const APART: &str = "\n\n\n";
    let (before, behind) = body.split_at(at);
    behind.starts_with(APART) && !before.contains(APART) && !joint.initial.contains(APART)
}

/// Where the last paragraphs or lines of a text that read as remarks begin, whitespace before them included.
fn remark(body: &str) -> Option<(usize, f64)> {
    let (mut at, mut bits) = last_remark(body)?;
    while let Some((earlier, more)) = last_remark(&body[..at]).filter(|(earlier, _)| *earlier < at) {
        at = earlier;
        bits = f64::min(bits + more, 20.0);
    }
    Some((at, bits))
}

/// Where the last paragraph or line of a text that reads as a remark begins, whitespace before it included.
fn last_remark(body: &str) -> Option<(usize, f64)> {
    let text = body.trim_end();
    let line = text.rfind('\n')?;
    let near = text.floor_char_boundary(text.len().saturating_sub(600));
    let paragraph = text[near..].rfind("\n\n").map(|at| near + at).filter(|at| text.len() - at < 600);
    let of_line = turn::remark(&text[line..]);
    let of_paragraph = paragraph.map_or(0.0, |at| {
        let part = text[at..].trim();
        let first = part.lines().next().unwrap_or_default();
        if part.lines().count() <= 3 && turn::remark(first) >= REMARKS { turn::remark(part) } else { 0.0 }
    });
    let (at, bits) = match paragraph {
        Some(at) if of_paragraph >= REMARKS => (at, of_paragraph),
        _ => (line, of_line),
    };
    if bits < REMARKS {
        return None;
    }
    // The paragraph's own blank line belongs to it; further line breaks end the text.
    let before = &text[..at];
    let breaks = before.len() - before.trim_end_matches('\n').len();
    let kept = if breaks > 0 && text[at..].starts_with("\n\n") { breaks } else { 0 };
    Some((before.len() - (breaks - kept), bits))
}

/// The end of a wrapped text before its closing fence, where only remarks follow that.
fn before_closing(
    body: &str,
    (sign, count): (char, usize),
    (fences, line_before): (usize, &str),
) -> Option<usize> {
    let closes = |line: &str| {
        let line = line.trim();
        line.len() >= count && line.chars().all(|other| other == sign)
    };
    let mut end = body.len();
    let mut remarks = 0;
    for line in body.rsplit('\n') {
        let start = end - line.len();
        if closes(line) {
            // A fence line that the seam goes through is one in the joined text.
            let parity = if count > 3 { 1 } else { fences + fence::lines(&[line_before, body].concat()) };
            // The line break before the closing fence belongs to the fence. What needs that fence to close a block
            // of its own keeps it.
            let before = &body[..start];
            let text = before.strip_suffix('\n').unwrap_or(before);
            return (parity % 2 == 1).then(|| text.strip_suffix('\r').unwrap_or(text).len());
        }
        if !line.trim().is_empty() {
            remarks += 1;
            if remarks > 4 || !(turn::is_sentence(line) || turn::remark(line) > 0.0) {
                return None;
            }
        }
        end = start.saturating_sub(1);
    }
    None
}
