//! Evidence: how much likelier than a text of its own each story makes the continuation, and when that is enough.

use memchr::memmem;

use super::indent::Indents;
use super::likeness::Likeness;
use super::register;
use super::story::Story;
use super::turn;
use crate::stitch::evidence::{Weighed, weight};
use crate::stitch::joint::Joint;
use crate::stitch::predict::surprise_of_going_round;
use crate::stitch::seam::{AskedFrom, SeamStyle};
use crate::stitch::units::{Reading, Units};
use crate::stitch::{ellipsis, fence, restart};

/// The share of the evidence that settles a seam.
const SETTLED: f64 = 0.97;
/// The share that settles a seam that a repetition, a fence or dots tell, and a clean one that was asked for.
const SETTLED_TOLD: f64 = 0.9;
const SETTLED_AS_ASKED: f64 = 0.95;
/// The share with which a clean seam that was asked for wins over a likelier one.
const TIED_AS_ASKED: f64 = 0.13;
/// So many characters behind a seam depend on what stands before it.
const REACH: usize = 8;
/// So many characters before a seam are looked at.
const BEFORE: usize = 64;
/// A text that goes round already does it again for so many bits.
const GOES_ROUND: f64 = 6.0;
/// What may stand around a text in a continuation is not longer, in bytes.
const IN_QUESTION: usize = 400;
/// What is at least so long and stands in the first part already, as it is, is nothing new, in bytes.
const NOTHING_NEW: usize = 40;
/// No coincidence counts for more than so many bits.
const MOST_BITS: f64 = 80.0;

/// Reads the text on both sides of the seam, without what is in question there: it would speak for itself.
pub(super) fn likeness(joint: &Joint<'_>) -> Likeness {
    let text = joint.continuation;
    let line = text.trim_start().split('\n').next().unwrap_or_default();
    let blank = text.len() - text.trim_start().len();
    let behind = if line.len() > IN_QUESTION || line.starts_with(char::is_lowercase) {
        REACH * 2
    } else {
        blank + line.len() + REACH * 2
    };
    let body = &text[text.ceil_char_boundary(behind.min(text.len()))..];
    let kept = body.trim_end();
    let places = [kept.rfind("\n\n"), kept.rfind('\n')];
    let last = places.into_iter().flatten().find(|at| kept.len() - at <= IN_QUESTION);
    Likeness::of(joint.initial, &body[..last.unwrap_or(body.len())])
}

/// Weighs all stories; none where there is none.
pub(super) fn weigh(joint: &Joint<'_>, likeness: &Likeness, stories: &[Story]) -> Option<Weighed> {
    let costs: Vec<f64> = {
        let scale = Scale::new(joint, likeness, stories);
        stories.iter().map(|story| scale.cost(story)).collect()
    };
    let best = (0..stories.len()).min_by(|left, right| costs[*left].total_cmp(&costs[*right]))?;
    let mut values: Vec<(usize, f64)> = Vec::new();
    for (index, cost) in costs.iter().enumerate() {
        let weight = weight(*cost);
        match values.iter_mut().find(|(other, _)| same(joint, &stories[*other], &stories[index])) {
            Some((_, sum)) => *sum += weight,
            None => values.push((index, weight)),
        }
    }
    let nothing_bits = something_else(joint, likeness, &stories[best], costs[best]);
    let nothing = weight(nothing_bits);
    let total = values.iter().map(|(_, weight)| weight).sum::<f64>() + nothing;
    let share = |index: usize| {
        let same = values.iter().find(|(other, _)| same(joint, &stories[*other], &stories[index]));
        same.map_or(0.0, |(_, weight)| weight / total)
    };
    let asked = stories.iter().position(|story| story.is_clean).filter(|_| joint.from == AskedFrom::Cut);
    // A clean continuation wins ties where it was asked for.
    let best = asked
        .filter(|clean| share(*clean) >= least_share(&stories[best]) && nothing < total / 2.0)
        .unwrap_or(best);
    let needed = match (stories[best].is_clean, joint.from, stories[best].style) {
        (true, AskedFrom::Cut, _) => SETTLED_AS_ASKED,
        (_, _, SeamStyle::Overlap | SeamStyle::Restart | SeamStyle::Fence | SeamStyle::Ellipsis) => {
            SETTLED_TOLD
        }
        _ => SETTLED,
    };
    let confidence = share(best);
    // What differs from the clean seam by whitespace, or by a less likely repetition, is a matter of ties as well.
    let ties: f64 = if stories[best].is_clean && joint.from == AskedFrom::Cut {
        let is_tie = |story: &Story| {
            let is_repeated = matches!(story.style, SeamStyle::Overlap | SeamStyle::Restart);
            differs_by_whitespace(joint, story) || is_repeated && confidence >= 0.5
        };
        let ties = values.iter().filter(|(index, _)| is_tie(&stories[*index]));
        ties.map(|(_, weight)| weight / total).sum()
    } else {
        0.0
    };
    let reached = confidence / (1.0 - ties).max(confidence);
    Some(Weighed {
        best,
        confidence: if joint.lost_character { confidence.min(0.5) } else { confidence },
        alternatives: values.len() - 1,
        settled: reached >= needed && !joint.lost_character && !is_guessed(joint, &stories[best]),
        something_else: nothing > confidence * total && confidence < needed,
        costs,
        nothing: nothing_bits,
    })
}

/// The share with which a clean continuation that was asked for wins over a likelier story. A remark, or whitespace
/// in the middle of a word, is no matter of ties.
fn least_share(likelier: &Story) -> f64 {
    let is_shortened = likelier.repeated == 0 && likelier.start > 0 || likelier.style == SeamStyle::Remark;
    if is_shortened { 0.5 } else { TIED_AS_ASKED }
}

/// Whether the seam of a story differs from the clean one by nothing but whitespace.
fn differs_by_whitespace(joint: &Joint<'_>, story: &Story) -> bool {
    let same_seam = story.start == 0 && story.glue.is_empty();
    !same_seam && joint.continuation[..story.start].trim().is_empty()
}

/// Whether a story adds whitespace of which the text does not say what it was: a space is certain only where a
/// sentence goes on.
fn is_guessed(joint: &Joint<'_>, story: &Story) -> bool {
    // What begins anew with other whitespace has it in the rest as well.
    let again = joint.continuation[story.opening..story.start].trim_start();
    let reflowed = story.repeated == joint.initial.len() && again != joint.initial.trim_start();
    let goes_on = joint.initial.ends_with(|sign: char| sign.is_alphanumeric() || sign == ',')
        && story.text(joint).starts_with(char::is_lowercase);
    match story.glue {
        "" => reflowed,
        " " => !goes_on,
        _ => true,
    }
}

fn weight_of(holds: bool, bits: f64) -> f64 {
    if holds { bits } else { 0.0 }
}

/// Whether two stories give the same text.
fn same(joint: &Joint<'_>, left: &Story, right: &Story) -> bool {
    let (one, other) = (left.text(joint), right.text(joint));
    if left.glue == right.glue {
        return one == other;
    }
    one.len() + left.glue.len() == other.len() + right.glue.len()
        && left.glue.chars().chain(one.chars()).eq(right.glue.chars().chain(other.chars()))
}

/// How unlikely it is that the continuation is a text of its own, in bits.
fn something_else(joint: &Joint<'_>, likeness: &Likeness, best: &Story, cost: f64) -> f64 {
    let continuation = joint.continuation;
    let mut bits = match joint.from {
        AskedFrom::Cut => 14.0,
        AskedFrom::Token | AskedFrom::Unknown => 9.0,
    };
    // A text of its own begins with a capital letter or the sign of a block.
    bits += match continuation.chars().next() {
        Some(first) if first.is_lowercase() || first.is_whitespace() => 6.0,
        Some('.' | ',' | ';' | ')' | ']' | '}' | ':' | '\'' | '/' | '(' | '"') => 6.0,
        _ => 0.0,
    };
    bits += if continuation.starts_with("```") { 5.0 } else { 0.0 };
    // What announces the rest goes on, even though it begins as an answer does.
    bits += if best.announced > 0.0 {
        best.announced / 2.0
    } else {
        -register::answers(joint, likeness, continuation)
    };
    if let Some(at) =
        restart::said_again(joint.initial, continuation, joint.from).filter(|at| *at >= best.start)
    {
        let again = continuation[at..]
            .bytes()
            .zip(joint.initial.trim_start().bytes())
            .take_while(|(left, right)| left == right);
        let most = if joint.from == AskedFrom::Cut && again.count() < 60 { 8.0 } else { 20.0 };
        // What runs in circles may begin by saying the end again.
        let of_end = if best.repeated > 0 { cost.min(0.0) } else { 0.0 };
        bits += of_end - most * (1.0 - (4.0 * self_similarity(joint.initial)).min(1.0));
    }
    let head = &continuation[..continuation.floor_char_boundary(4_000)];
    let units = Units::read(head, Reading::Plain);
    if best.repeated == 0 && restart::diverges(&joint.settled_units, &units) {
        bits -= 16.0;
    }
    if turn::quotes_the_prompt(joint.initial, best.text(joint)) {
        bits += cost.min(0.0) - 60.0;
    }
    let says = best.text(joint).trim();
    if joint.from != AskedFrom::Cut && says.len() >= NOTHING_NEW && joint.initial.contains(says) {
        bits -= 30.0;
    }
    bits
}

/// How much of a text it says more than once, 0 to 1, judged by a few samples.
fn self_similarity(text: &str) -> f64 {
    const SAMPLES: usize = 24;
    const LENGTH: usize = 24;
    let text = &text.as_bytes()[text.len().saturating_sub(64_000)..];
    let step = text.len() / SAMPLES;
    if step < LENGTH {
        return 0.0;
    }
    let twice = (0..SAMPLES)
        .map(|nth| &text[nth * step..nth * step + LENGTH])
        .filter(|sample| memmem::find_iter(text, sample).take(2).count() > 1)
        .count();
    f64::from(u32::try_from(twice).unwrap_or(0)) / f64::from(u32::try_from(SAMPLES).unwrap_or(1))
}

/// What is needed to weigh a story.
struct Scale<'a> {
    joint: &'a Joint<'a>,
    likeness: &'a Likeness,
    indents: Indents,
    /// How much of the first part it says more than once.
    similarity: f64,
    before: Vec<char>,
    stories: &'a [Story],
}

impl<'a> Scale<'a> {
    fn new(joint: &'a Joint<'a>, likeness: &'a Likeness, stories: &'a [Story]) -> Self {
        let mut before: Vec<char> = joint.initial.chars().rev().take(BEFORE).collect();
        before.reverse();
        let indents = Indents::of(joint.initial, joint.continuation);
        let similarity = self_similarity(joint.initial);
        Self { joint, likeness, indents, similarity, before, stories }
    }

    /// How much unlikelier a story makes the continuation than a text of its own does, in bits.
    fn cost(&self, story: &Story) -> f64 {
        let seam = self.seam(story, story.start).min(self.coincidence(story)).min(self.most(story));
        story.cost + seam - self.repeated(story) + self.form(story)
    }

    /// The most that the characters at a seam can say against it. Where one side ends between words anything can
    /// follow.
    fn most(&self, story: &Story) -> f64 {
        if !story.is_clean || self.joint.from != AskedFrom::Cut {
            return f64::INFINITY;
        }
        let part = story.text(self.joint);
        let ends = self.before.last().is_none_or(|last| !last.is_alphanumeric());
        let begins = !part.starts_with(char::is_alphanumeric) || part.starts_with(char::is_lowercase);
        if ends || begins { 9.0 } else { 12.0 }
    }

    /// What the characters behind the seam say against following the first part rather than what precedes them
    /// in the continuation.
    fn seam(&self, story: &Story, start: usize) -> f64 {
        let part = &self.joint.continuation[start..story.end.max(start)];
        if let Some(bits) = self.indented(story.glue, start, part) {
            return bits;
        }
        let rest: Vec<char> = part.chars().take(REACH).collect();
        let mut joined = self.before.clone();
        let glue: Vec<char> = story.glue.chars().collect();
        let mut bits = self.likeness.bits(&joined, &glue);
        joined.extend(&glue);
        bits += self.likeness.bits(&joined, &rest);
        bits - self.likeness.bits(&self.preceding(start), &rest)
    }

    /// The same where the seam stands in the indentation of a line: how far lines are indented is not a matter of
    /// single characters.
    fn indented(&self, glue: &str, start: usize, part: &str) -> Option<f64> {
        let initial = self.joint.initial;
        let line_start = initial.rfind('\n')? + 1;
        let text = part.trim_start_matches([' ', '\t']);
        let indent = [&initial[line_start..], glue, &part[..part.len() - text.len()]].concat();
        if !indent.chars().all(|sign| matches!(sign, ' ' | '\t'))
            || text.starts_with(['\n', '\r'])
            || text.is_empty()
        {
            return None;
        }
        let line_before = initial[..line_start].lines().rev().find(|line| !line.trim().is_empty())?;
        let rest: Vec<char> = part.chars().take(part.len() - text.len() + REACH).collect();
        let shown: Vec<char> = text.chars().take(REACH).collect();
        let mut joined: Vec<char> = initial[..line_start].chars().rev().take(BEFORE).collect();
        joined.reverse();
        joined.extend(indent.chars());
        let bits = self.indents.bits(line_before, &indent, text) + self.likeness.bits(&joined, &shown);
        Some(bits - self.likeness.bits(&self.preceding(start), &rest))
    }

    /// What precedes a place of the continuation; a paragraph's end, where nothing does.
    fn preceding(&self, at: usize) -> Vec<char> {
        let mut found: Vec<char> = self.joint.continuation[..at].chars().rev().take(REACH).collect();
        if found.len() < REACH {
            found.extend(['\n', '\n', '.']);
        }
        found.reverse();
        found
    }

    /// What the repeated part would cost as text of its own.
    fn repeated(&self, story: &Story) -> f64 {
        self.own_bits(story.opening, story.start)
    }

    /// What a part of the continuation costs as text of its own.
    fn own_bits(&self, start: usize, end: usize) -> f64 {
        let part: Vec<char> = self.joint.continuation[start..end].chars().take(400).collect();
        self.likeness.bits(&self.preceding(start), &part).min(MOST_BITS)
    }

    /// What the seam costs if a longer repeated part, which another story explains, is a coincidence: less than
    /// text of its own, where the text repeats itself anyway.
    fn coincidence(&self, story: &Story) -> f64 {
        let longest = self
            .stories
            .iter()
            .filter(|other| other.opening == story.opening && other.repeated > story.repeated)
            .max_by_key(|other| other.repeated);
        let Some(longest) =
            longest.filter(|longest| story.glue.is_empty() && longest.repeated - story.repeated > REACH)
        else {
            return f64::INFINITY;
        };
        let as_own = self.own_bits(story.start, longest.start.max(story.start));
        let length = longest.repeated - story.repeated;
        let surprise = self.surprise(length).min(self.going_round(length, longest.start));
        surprise - as_own + self.seam(story, longest.start)
    }

    /// How unlikely it is, in bits, that the text goes round by its last `length` bytes and on with what stands at
    /// this place of the continuation.
    fn going_round(&self, length: usize, start: usize) -> f64 {
        let codes = &self.joint.units_at(self.joint.initial.len()).codes;
        let initial = self.joint.initial;
        let lag = initial[initial.floor_char_boundary(initial.len() - length)..].chars().count();
        let rest = &self.joint.continuation[start..];
        let after = Units::read(&rest[..rest.floor_char_boundary(length * 2)], Reading::Plain);
        let bits = surprise_of_going_round(codes, lag, &after.codes).0;
        // What never went round would have to begin with it.
        if bits < GOES_ROUND { bits } else { f64::INFINITY }
    }

    /// What speaks against dots that the text goes on with being its own.
    fn omission(&self, part: &str, glued: bool) -> f64 {
        let Some(length) = ellipsis::after(part).filter(|_| !part.starts_with(char::is_whitespace)) else {
            return 0.0;
        };
        let (dots, rest) = part.split_at(length);
        // They stand right in front of what they leave out; a text has a space behind its own.
        weight_of(!dots.starts_with(['.', '\u{2026}']), 6.0)
            + weight_of(glued && rest.starts_with(char::is_alphanumeric), 8.0)
            + weight_of(!self.joint.initial.contains(dots), 2.0)
    }

    /// What speaks against a block of code that the continuation begins with being the text's own.
    fn unlikely_block(&self, part: &str) -> f64 {
        let Some(length) = fence::opening(part).filter(|_| !self.joint.fence_is_open) else { return 0.0 };
        let before = self.joint.initial;
        let announced =
            part.starts_with("\n\n") || before.ends_with("\n\n") || before.trim_end().ends_with(':');
        let rest = &part[length..];
        let wrapped = fence::before_closing(rest).is_some();
        let unclosed = fence::lines(rest).is_multiple_of(2);
        weight_of(!announced, 4.0)
            + weight_of(wrapped && !announced, 4.0)
            + weight_of(unclosed, 2.0)
            + weight_of(wrapped && fence::lines(before) == 0, 3.0)
            + weight_of(wrapped && is_prose(rest) && is_prose(last_line(before)), 8.0)
            + weight_of(fence::opening(rest).is_some(), 6.0)
            // Nor does one begin in a line that is cut.
            + weight_of(wrapped && part.starts_with('\n') && !part.starts_with("\n\n"), 4.0)
    }

    /// How unlikely it is, in bits, that the text goes on by saying its last `length` bytes once more.
    fn surprise(&self, length: usize) -> f64 {
        let text = self.joint.initial;
        let surprise = self.joint.surprise_of_repetition(text.len(), length);
        if surprise < 6.0 {
            // It did so before.
            return surprise;
        }
        let bytes = f64::from(u32::try_from(length).unwrap_or(u32::MAX));
        let surprise = surprise.max((10.0 + 0.7 * bytes).min(40.0));
        if self.similarity > 0.3 { surprise.min(surprise_of_pieces(text, length)) } else { surprise }
    }

    /// What the form of the joined text says against it.
    fn form(&self, story: &Story) -> f64 {
        let part = story.text(self.joint);
        let glued = story.glue.is_empty() && !self.before.last().is_none_or(|last| last.is_whitespace());
        let line = self.joint.initial.rsplit('\n').next().unwrap_or_default();
        let in_line = !story.glue.contains('\n') && !line.trim().is_empty();
        let mut bits = broken_fence(line, story.glue, part);
        // A block that was just opened is not empty.
        let opened =
            last_line(self.joint.initial).trim_start().starts_with("```") && self.joint.fence_is_open;
        bits += weight_of(opened && line.is_empty() && closes_block(part), 14.0);
        let stands = line.trim_matches(['`', '~', ' ', '>']).is_empty();
        if in_line
            && !stands
            && (part.starts_with("```") || part.starts_with("~~~"))
            && fence::opening(part).is_some()
        {
            bits += 14.0;
        }
        if self.joint.fence_is_open && story.glue.is_empty() && line.is_empty() && closes_block(part) {
            bits -= 6.0;
        }
        bits += self.omission(part, glued);
        if story.start == 0 && (!in_line || part.starts_with('\n')) {
            bits += self.unlikely_block(part);
        }
        if in_line && begins_block(part, glued) {
            bits += 8.0;
        }
        if story.style == SeamStyle::Preamble && story.repeated == 0 {
            // A fence right behind what announces is a wrapper.
            let first = part.trim_start();
            bits += if first.starts_with("```") && fence::opening(part).is_some() { 8.0 } else { 0.0 };
        }
        if in_line
            && script(part.chars()).is_some_and(|own| {
                script(self.before.iter().rev().copied()).is_some_and(|other| own != other)
            })
        {
            bits += 6.0;
        }
        bits
    }
}

/// The last line of a text that is not empty.
fn last_line(text: &str) -> &str {
    text.trim_end().rsplit('\n').next().unwrap_or_default()
}

/// Whether the first line of a text is a sentence rather than code.
fn is_prose(text: &str) -> bool {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.split(' ').count() > 4 && !line.contains(turn::of_code)
}

/// What speaks against a line of which a fence begins, if the seam stands in its signs and there are not three.
fn broken_fence(line: &str, glue: &str, part: &str) -> f64 {
    let before = line.trim_start();
    let signs = before.len() + part.len() - part.trim_start_matches('`').len();
    if before.is_empty()
        || before.len() > 3
        || !before.chars().all(|sign| sign == '`')
        || !glue.is_empty()
        || signs == before.len() && signs < 3
    {
        return 0.0;
    }
    match signs {
        3 => 0.0,
        2 => 3.0,
        _ => 5.0,
    }
}

/// How unlikely it is, in bits, that a text says its own last `length` bytes again, judged by whether it said
/// their pieces before: rows of a table differ, but they are made of the same pieces.
fn surprise_of_pieces(text: &str, length: usize) -> f64 {
    const PIECE: usize = 8;
    const KNOWN: f64 = 3.0;
    const UNKNOWN: f64 = 14.0;
    let (before, repeated) = text.as_bytes().split_at(text.len() - length);
    let mut bits = 0.0;
    for piece in repeated.chunks(PIECE) {
        bits += if memmem::find(before, piece).is_some() { KNOWN } else { UNKNOWN };
        if bits > MOST_BITS {
            break;
        }
    }
    bits
}

/// Whether a text begins with a line that closes a block of code.
fn closes_block(text: &str) -> bool {
    let line = text.lines().next().unwrap_or_default().trim();
    line.len() >= 3 && (line.chars().all(|sign| sign == '`') || line.chars().all(|sign| sign == '~'))
}

/// Which family of scripts the first letter is of.
fn script(text: impl Iterator<Item = char>) -> Option<u8> {
    text.take(BEFORE).find(|sign| sign.is_alphabetic()).map(|letter| match u32::from(letter) {
        ..0x370 => 0,
        0x400..0x530 => 1,
        0x2e80.. => 2,
        _ => 3,
    })
}

/// Whether a text begins with a heading, a list or a table, which no line has in its middle.
fn begins_block(text: &str, glued: bool) -> bool {
    let line = text.lines().next().unwrap_or_default();
    let signs = line.len() - line.trim_start_matches('#').len();
    let is_heading = (1..=6).contains(&signs) && line[signs..].starts_with(' ');
    let stands_alone = text[line.len()..].starts_with("\n\n");
    is_heading && (stands_alone || glued) || glued && line.starts_with("- **")
}
