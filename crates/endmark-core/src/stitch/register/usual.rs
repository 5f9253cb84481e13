//! What is usual in the text itself: its own lines read more or less like a remark, too, and a last line that reads no more
//! like one than they do is one of them.

use super::{Around, LONGEST, REACH, leaving};
use crate::stitch::joint::Joint;

/// So many lines or paragraphs of each side are looked at.
const MOST: usize = 6;
/// What a continuation may end with besides the text, in lines or paragraphs.
const IN_QUESTION: usize = 3;
/// Nothing is taken for usual that reads more like a remark than this, in bits.
const MOST_USUAL: f64 = 6.0;

/// How much the text's own lines, or, where `gap` is a blank line, its paragraphs, read as remarks about it, in bits;
/// 0 where they do not.
pub(in crate::stitch) fn leaving_usually(joint: &Joint<'_>, around: &Around, gap: &str) -> f64 {
    let initial = joint.initial;
    let first = initial.len() - around.before.len();
    let of_first = spans(&initial[first..], gap).map(|(at, end)| {
        let (before, behind) = (&around.before[..at], &around.before[end..]);
        leaving(joint, &initial[..first + at], &initial[first + at..first + end], [before, behind])
    });
    let text = joint.continuation;
    let start = text.ceil_char_boundary(text.len().saturating_sub(REACH));
    let of_rest = spans(&text[start..], gap).skip(IN_QUESTION - 1).map(|(at, end)| {
        let (before, part) = (&text[..start + at], &text[start + at..start + end]);
        leaving(joint, before, part, [&around.before, around.ahead(before.trim_end().len())])
    });
    let mut bits: Vec<f64> = of_first.take(MOST).chain(of_rest.take(MOST)).collect();
    bits.sort_unstable_by(f64::total_cmp);
    let count = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    // A quarter of them read so or more.
    let usual = bits.get(bits.len() * 3 / 4).copied().unwrap_or(0.0);
    usual.clamp(0.0, MOST_USUAL) * count(bits.len()) / (count(bits.len()) + 1.0)
}

/// The lines or paragraphs of a text that are not too long, the last first, but for the first and the last one, which may be
/// cut.
fn spans<'t>(text: &'t str, gap: &'t str) -> impl Iterator<Item = (usize, usize)> + 't {
    let mut end = text.rfind(gap).unwrap_or(0);
    std::iter::from_fn(move || {
        let before = text[..end].rfind(gap)?;
        let span = (before + gap.len(), end);
        end = before;
        Some(span)
    })
    .filter(|(at, end)| at < end && end - at <= LONGEST && !text[*at..*end].trim().is_empty())
}
