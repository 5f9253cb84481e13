//! Finds where the text may start in a continuation: after an announcement, a fence, an ellipsis or
//! whitespace.

use endmark_text::Format;

use crate::stitch::continuation_start::ContinuationStart;
use crate::stitch::joint::{ContinuationMode, Joint};
use crate::stitch::register::{self, SurroundingText, has_rule, is_rule, steepen};
use crate::stitch::seam::{AskedFrom, SeamStyle};
use crate::stitch::{ellipsis, quotation};

/// Minimum evidence, in bits, of a line that may be an announcement or a remark.
pub(super) const MIN_REMARK_BITS: f64 = -8.0;
/// Maximum evidence of one line, in bits.
const MAX_LINE_BITS: f64 = 17.0;
/// Maximum number of sentences that are examined in a line.
const MAX_SENTENCES: usize = 5;
/// Maximum number of paragraphs of an announcement.
pub(super) const MAX_PARAGRAPHS: usize = 3;
/// A line with a lower score is hardly ever an announcement: of the lines with a score between -8 and 1, one
/// in a thousand is.
const MAX_UNANNOUNCED_SCORE: f64 = 2.0;

/// Returns all possible starts of the text in a continuation. One of them removes nothing.
pub(super) fn continuation_starts(joint: &Joint<'_>, around: &SurroundingText) -> Vec<ContinuationStart> {
    let text = joint.continuation;
    let mut found = vec![ContinuationStart::UNCHANGED];
    if joint.mode == ContinuationMode::ByMessage {
        add_spaced(joint, ContinuationStart::UNCHANGED, &mut found);
        return found;
    }
    add_announced(joint, around, ContinuationStart::UNCHANGED, &mut found);
    for index in 0..found.len() {
        found.extend(found[index].after_fence(text, fence_cost(joint, found[index])));
    }
    for index in 0..found.len() {
        found.extend(found[index].in_quotation(text, quotation_cost(joint, found[index])));
    }
    for index in 0..found.len() {
        let opening = found[index];
        if let Some(length) = ellipsis::end_position(&text[opening.start..]) {
            let cost = if joint.from == AskedFrom::Cut { 6.0 } else { 3.0 };
            let dotted = opening.advance(opening.start + length, SeamStyle::Ellipsis, cost);
            found.push(dotted);
            if text[dotted.start..].starts_with(' ') {
                // There is no space before closing punctuation.
                let closes =
                    text[dotted.start + 1..].starts_with(['.', ',', ';', ':', '!', '?', ')', ']', '}']);
                let space = if closes { -3.0 } else { 1.0 };
                found.push(dotted.advance(dotted.start + 1, SeamStyle::Ellipsis, space));
            }
        }
    }
    for index in 0..found.len() {
        add_spaced(joint, found[index], &mut found);
    }
    found.sort_by(|left, right| left.start.cmp(&right.start).then(left.cost.total_cmp(&right.cost)));
    found.dedup_by(|second, first| second.start == first.start && !second.removes_nothing());
    found
}

/// Adds the starts after whitespace that does not belong to the text.
fn add_spaced(joint: &Joint<'_>, opening: ContinuationStart, found: &mut Vec<ContinuationStart>) {
    let text = joint.continuation;
    let rest = &text[opening.start..];
    let spaces = rest.len() - rest.trim_start().len();
    let breaks = rest.len() - rest.trim_start_matches('\n').len();
    if spaces == 0 || spaces == rest.len() {
        return;
    }
    let cost = match (opening.removes_nothing(), joint.from) {
        (true, AskedFrom::Cut) => 9.0,
        (true, _) => 5.0,
        // Whitespace after an announcement or a fence usually belongs to the text. Text on its own line does
        // not begin with a space by mistake.
        (false, _) if opening.is_on_own_line && rest.starts_with([' ', '\t']) => 13.0,
        (false, _) => 8.0,
    };
    // Whitespace between two tags is normal.
    let between_tags =
        joint.format == Format::Tags && joint.initial.ends_with('>') && rest[spaces..].starts_with('<');
    let cost = if between_tags { cost + 8.0 } else { cost };
    let first = rest.chars().next().map_or(0, char::len_utf8);
    let mut ends = vec![first, breaks, spaces];
    ends.sort_unstable();
    ends.dedup();
    // Text on its own line keeps its indentation after a line break.
    let is_kept = |end: usize| opening.is_on_own_line && breaks > 0 && end > breaks;
    for end in ends.into_iter().filter(|end| *end > 0 && !is_kept(*end)) {
        // Models add one space, or one or two line breaks, but no indentation.
        let added = &rest[..end];
        let unusual = if matches!(added, " " | "\n" | "\n\n" | "\r\n") { 0 } else { added.len().min(6) };
        let unusual = 1.5 * f64::from(u32::try_from(unusual).unwrap_or(6));
        found.push(opening.advance(opening.start + end, SeamStyle::Whitespace, cost + unusual));
    }
}

/// Adds the starts after announcements.
fn add_announced(
    joint: &Joint<'_>,
    around: &SurroundingText,
    bare: ContinuationStart,
    found: &mut Vec<ContinuationStart>,
) {
    let text = joint.continuation;
    let prior = if joint.from == AskedFrom::Cut { 4.0 } else { 2.0 };
    let mut bits = 0.0;
    let mut start = text.len() - text.trim_start().len();
    // A separate answer does not begin with a space, but a continuation may.
    let prior = prior + if start > 0 { 6.0 } else { 0.0 };
    for paragraph in 0..MAX_PARAGRAPHS {
        let rest = &text[start..];
        let line = rest.split('\n').next().unwrap_or_default();
        let line_bits = match paragraph {
            0 => register::announcement_bits(joint, around, line, start + line.len(), &rest[line.len()..]),
            // A rule after an announcement separates it, but may belong to the text if the text has other
            // rules.
            _ if is_rule(line) && has_rule(joint.initial) => 2.0,
            _ if is_rule(line) => 6.0,
            _ => {
                register::announcement_bits(joint, around, line, start + line.len(), &rest[line.len()..])
                    - 1.0
            }
        };
        // Lines after an announcement belong to the text, unless they also read like an announcement.
        let least = if paragraph == 0 { MIN_REMARK_BITS } else { 0.0 };
        add_inline(joint, around, bare, (start, line, line_bits, least), prior - bits, found);
        let blank = &rest[line.len()..];
        let blank = &blank[..blank.len() - blank.trim_start_matches(['\n', '\r']).len()];
        if line_bits < least || blank.is_empty() {
            return;
        }
        bits += line_bits.min(MAX_LINE_BITS);
        let end = start + line.len();
        // If nothing follows an announcement, it may be the text itself.
        let is_all = end + blank.len() == text.len();
        let score = if is_all { bits } else { steepen(bits, MAX_UNANNOUNCED_SCORE) };
        let preamble = |skipped: usize, more: f64| ContinuationStart {
            is_on_own_line: true,
            announcement_bits: bits,
            ..bare.advance(end + skipped, SeamStyle::Preamble, prior - score + more)
        };
        let one = if blank.starts_with("\r\n") { 2 } else { 1 };
        // An announcement ends its own line or paragraph. Further line breaks belong to the text.
        let two = (2 * one).min(blank.len());
        found.push(preamble(two, 0.0));
        if blank.len() > two {
            found.push(preamble(blank.len(), 3.0));
        }
        if two > one {
            // Of several blank lines, one may belong to the text.
            found.push(preamble(one, if blank.len() > two { 3.0 } else { 6.0 }));
        }
        start = end + blank.len();
    }
}

/// Adds the starts after an announcement in the same line.
fn add_inline(
    joint: &Joint<'_>,
    around: &SurroundingText,
    bare: ContinuationStart,
    (start, line, line_bits, least): (usize, &str, f64, f64),
    prior: f64,
    found: &mut Vec<ContinuationStart>,
) {
    let text = joint.continuation;
    let mut places = Vec::new();
    for (at, sign) in line.char_indices().take(300) {
        let wide = matches!(sign, '。' | '：' | '！');
        let after = at + sign.len_utf8();
        let ends = wide
            || matches!(sign, ':' | '.' | '!' | ')' | ']' | '…' | '*' | '—' | '–')
                && line[after..].starts_with(' ');
        // The end of a sentence within a quotation does not end the announcement.
        let quotes = line[..after].matches(['`', '"']).count() % 2 == 1;
        if ends && !quotes && after < line.len() && places.len() < MAX_SENTENCES {
            places.push((after, register::likelier_announcing(&line[..after])));
        }
    }
    let most = places.iter().map(|(_, likelier)| *likelier).fold(f64::NEG_INFINITY, f64::max);
    for (after, likelier) in places {
        let bits =
            register::announcement_bits(joint, around, &line[..after], start + after, "").min(MAX_LINE_BITS);
        if bits < least {
            continue;
        }
        // A part of a line needs better evidence than the whole line, and must not become likelier by
        // including words of the text.
        let cost = prior + 3.0 - bits + (line_bits - bits).max(0.0) + (most - likelier).min(12.0);
        let end = start + after;
        let space = usize::from(text[end..].starts_with(' '));
        let inline = ContinuationStart { announcement_bits: bits, ..bare };
        found.push(inline.advance(end + space, SeamStyle::Preamble, cost));
        if space > 0 {
            found.push(inline.advance(end, SeamStyle::Preamble, cost + 3.0));
        }
    }
}

/// Returns how unlikely it is, in bits, that quotation marks around the whole rest do not belong to the text.
fn quotation_cost(joint: &Joint<'_>, opening: ContinuationStart) -> f64 {
    let prior = if joint.from == AskedFrom::Cut { 5.0 } else { 3.0 };
    // The text may begin a quotation here, or end the open one.
    let may_begin = !joint.initial.ends_with(char::is_alphanumeric);
    let may_be_own = f64::from(u8::from(may_begin)) * 6.0;
    let may_close = f64::from(u8::from(quotation::ends_in_quotation(joint.initial))) * 6.0;
    if opening.removes_nothing() { prior + may_be_own + may_close } else { 2.0 + may_be_own + may_close }
}

/// Whether the info string of a fence names a programming language.
fn names_code(info: &str) -> bool {
    const TEXT_LANGUAGES: [&str; 10] =
        ["text", "txt", "plain", "plaintext", "none", "output", "prose", "html", "markdown", "md"];
    !info.is_empty() && !TEXT_LANGUAGES.iter().any(|name| info.eq_ignore_ascii_case(name))
}

/// Whether the last paragraph of a text contains no code.
fn ends_in_prose(text: &str) -> bool {
    let last = text.trim_end().rsplit("\n\n").next().unwrap_or_default();
    let is_of_code = |line: &str| {
        line.contains(register::is_code_character)
            || line.starts_with([' ', '\t'])
            || line.ends_with([':', ')', ','])
    };
    last.lines().filter(|line| !line.trim().is_empty()).all(|line| !is_of_code(line))
}

/// Returns how unlikely it is, in bits, that a fence at this start is a wrapper.
fn fence_cost(joint: &Joint<'_>, opening: ContinuationStart) -> f64 {
    let prior = if joint.from == AskedFrom::Cut { 4.0 } else { 1.5 };
    if !opening.removes_nothing() {
        return 1.0;
    }
    let rest = joint.continuation.trim_start();
    let line = rest.lines().next().unwrap_or_default();
    let info = line.trim().trim_start_matches(['`', '~']).trim();
    let is_bare = info.is_empty();
    // A fence that closes the open block in mid-line, with a blank line after it, abandons the block.
    let gives_up =
        is_bare && rest[line.len()..].trim_start_matches(['\n', '\r']).len() + 2 <= rest.len() - line.len();
    // A code block of the text itself follows a blank line or a colon.
    let announced = joint.initial.ends_with("\n\n") || joint.announces_block();
    // A wrapper is at the very beginning of the answer. A fence after a blank line belongs to the text.
    let begins_below = joint.continuation.starts_with("\n\n")
        || joint.initial.ends_with('\n') && joint.continuation.starts_with('\n');
    let prior = if begins_below { prior + 6.0 } else { prior };
    // A model does not mark continued sentences as code.
    let is_other = names_code(info) && !joint.fence_is_open && ends_in_prose(joint.initial);
    let prior = if is_other { prior + 8.0 } else { prior };
    match (joint.fence_is_open, joint.has_separate_fence()) {
        // A bare fence line closes the open block here. A fence with a language does not open one in it.
        (true, true) if is_bare => prior + 8.0,
        (true, true) => prior - 6.0,
        // If the cut was requested, a block that may belong to the text is kept.
        (false, true) if joint.from == AskedFrom::Cut && joint.format == Format::Markdown => prior + 10.0,
        (false, true) if announced && !joint.is_single_block() => prior + 6.0,
        (true, false) if gives_up => prior + 12.0,
        _ => prior,
    }
}
