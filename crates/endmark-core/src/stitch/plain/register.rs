//! How models talk about a text rather than in it: how they announce the rest, take their leave, or answer
//! something else. A line is judged by how much likelier its letters are there than in the text around it, and by
//! its form. The weights are what tells such lines from lines of texts in thousands of joined pairs.

use std::sync::OnceLock;

use super::likeness::Likeness;
use super::turn;
use crate::stitch::fence;
use crate::stitch::joint::Joint;

/// A line that is longer than this is none of them, in bytes.
pub(super) const LONGEST: usize = 400;
/// What is said about a text seldom takes more characters than this.
const LONG: usize = 100;
/// What is shorter than this says little by its letters.
const SHORT: usize = 14;

/// What a model can say about a text.
#[derive(Debug, Clone, Copy)]
enum Register {
    /// What comes next is the rest.
    Announcing,
    /// That was all.
    Leaving,
    /// A refusal, a question back.
    Answering,
}

impl Register {
    /// How unlikely it is, in bits, that a line of this register reads so.
    fn bits(self, line: &[char]) -> f64 {
        static ANNOUNCING: OnceLock<Likeness> = OnceLock::new();
        static LEAVING: OnceLock<Likeness> = OnceLock::new();
        static ANSWERING: OnceLock<Likeness> = OnceLock::new();
        let (likeness, text) = match self {
            Self::Announcing => (&ANNOUNCING, include_str!("register/announcing.txt")),
            Self::Leaving => (&LEAVING, include_str!("register/leaving.txt")),
            Self::Answering => (&ANSWERING, include_str!("register/answering.txt")),
        };
        likeness.get_or_init(|| Likeness::of(text, "")).bits(&['\n'], line)
    }
}

/// How much likelier a line is in a register than in the text, in bits: in all, and for ten characters.
fn likelier(register: Register, likeness: &Likeness, line: &[char]) -> (f64, f64) {
    let bits = likeness.bits(&['.', '\n', '\n'], line) - register.bits(line);
    let tens = f64::from(u32::try_from(line.len().max(1)).unwrap_or(u32::MAX)) / 10.0;
    (bits.clamp(-20.0, 25.0), (bits / tens).clamp(-10.0, 15.0))
}

/// How much a line at the beginning of a continuation is an announcement of the rest rather than of the text, in
/// bits; `behind` is what follows it, its line end included.
pub(super) fn announces(joint: &Joint<'_>, likeness: &Likeness, line: &str, behind: &str) -> f64 {
    let text = line.trim();
    if text.is_empty() || text.len() > LONGEST {
        return f64::NEG_INFINITY;
    }
    let signs: Vec<char> = text.chars().collect();
    let (bits, for_ten) = likelier(Register::Announcing, likeness, &signs);
    let rather = Register::Announcing.bits(&signs) - Register::Answering.bits(&signs);
    let core = text.trim_end_matches(['*', '_', ' ']);
    let begins_low = text.starts_with(char::is_lowercase);
    let in_word = joint.initial.ends_with(|sign: char| sign.is_alphanumeric() || sign == '_');
    let paragraph =
        joint.initial.is_empty() || joint.initial.ends_with("\n\n") || joint.initial.ends_with("\n\r\n");
    let below = behind.trim_start_matches(['\r', ' ']);
    let alone = below.starts_with("\n\n") || below.starts_with("\n\r\n");
    let begins_with_sign = !text.starts_with(|sign: char| sign.is_alphanumeric()) && !is_bracketed(text);
    -10.0 + 0.16 * bits + 0.17 * for_ten - 0.28 * rather.clamp(-20.0, 20.0)
        + weight(core.ends_with([':', '：']), 4.8)
        + weight(is_end_of_sentence(core), 2.1)
        + weight(is_bracketed(text), 0.6)
        + weight(alone, 2.2)
        + weight(below.starts_with('\n') && fence::opening(below).is_some(), 2.2)
        + weight(in_word, if begins_low { -2.9 } else { 1.3 })
        + weight(paragraph, -1.3)
        + weight(begins_low, -5.4)
        + weight(begins_with_sign && !text.starts_with('#'), -4.2)
        + weight(signs.len() > LONG, -4.6)
        // A word or two with a colon is as often a heading or a field.
        + weight(signs.len() < SHORT && !alone && !is_bracketed(text), -3.0)
}

/// How much likelier a line is as an announcement than in the text, in bits, however long it is.
pub(super) fn likelier_announcing(likeness: &Likeness, line: &str) -> f64 {
    let signs: Vec<char> = line.trim().chars().collect();
    likeness.bits(&['.', '\n', '\n'], &signs) - Register::Announcing.bits(&signs)
}

/// How much the last lines of a continuation are a remark about the text rather than of it, in bits; `before` is
/// what precedes them there.
pub(super) fn takes_leave(joint: &Joint<'_>, likeness: &Likeness, before: &str, part: &str) -> f64 {
    let text = part.trim();
    if !text.contains(char::is_alphabetic) || text.len() > LONGEST || text.lines().count() > 3 {
        return f64::NEG_INFINITY;
    }
    let signs: Vec<char> = text.chars().collect();
    let (bits, for_ten) = likelier(Register::Leaving, likeness, &signs);
    let core = text.trim_end_matches(['*', '_', ' ']);
    let kept = before.trim_end();
    let breaks = before[kept.len()..].matches('\n').count();
    let last = kept.rsplit('\n').next().unwrap_or_default();
    let widely = breaks > 2 && !kept.contains("\n\n\n") && !joint.initial.contains("\n\n\n");
    let begins_with_sign = !text
        .starts_with(|sign: char| sign.is_alphanumeric() || matches!(sign, '¡' | '¿'))
        && !is_bracketed(text);
    let near = &kept[kept.ceil_char_boundary(kept.len().saturating_sub(400))..];
    -8.7 + 0.05 * bits
        + 0.32 * for_ten
        + weight(is_end_of_sentence(core), 5.8)
        + weight(is_bracketed(text), 2.4)
        + weight(breaks > 1, 2.9)
        + weight(widely, 2.0)
        + weight(text.starts_with(char::is_lowercase), -4.0)
        + weight(begins_with_sign, -2.7)
        + weight(text.contains(turn::of_code), -1.8)
        + weight(is_wide(text) && !is_wide(near), 1.1)
        + weight(last.ends_with(['}', ']', ';', '>', '|', ')', '`', '~']), 1.3)
        + weight(signs.len() > LONG, -4.0)
}

/// How much likelier a continuation begins as an answer of its own does than as the text goes on, in bits.
pub(super) fn answers(joint: &Joint<'_>, likeness: &Likeness, continuation: &str) -> f64 {
    let line = continuation.trim().lines().next().unwrap_or_default();
    let text = &line[..line.floor_char_boundary(LONGEST)];
    let signs: Vec<char> = text.chars().collect();
    let (bits, for_ten) = likelier(Register::Answering, likeness, &signs);
    let rather = Register::Answering.bits(&signs) - Register::Announcing.bits(&signs);
    let form = weight(text.ends_with(['?', '？']), 4.0)
        + weight(text.ends_with(['.', '!', '。', '！']), 2.1)
        + weight(text.ends_with(':'), -1.9)
        + weight(text.starts_with(char::is_lowercase), -4.5)
        + weight(signs.len() > LONG, 2.0)
        + weight(joint.initial.ends_with(char::is_alphanumeric), 0.5);
    (-4.6 + 0.23 * bits + 0.16 * for_ten - 0.2 * rather.clamp(-20.0, 20.0) + form).clamp(0.0, 16.0)
}

fn weight(holds: bool, bits: f64) -> f64 {
    if holds { bits } else { 0.0 }
}

fn is_end_of_sentence(text: &str) -> bool {
    text.ends_with(['.', '!', '?', '…', '。', '！', '？', '।'])
}

/// Whether a line stands in brackets or between signs of emphasis.
fn is_bracketed(text: &str) -> bool {
    text.starts_with(['(', '[', '*', '_', '-', '（', '【'])
        && text.ends_with([')', ']', '*', '_', '-', '）', '】'])
}

/// Whether there are letters of other scripts than the Latin one.
fn is_wide(text: &str) -> bool {
    text.chars().any(|sign| u32::from(sign) >= 0x370 && sign.is_alphabetic())
}
