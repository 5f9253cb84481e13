//! Evidence: what speaks for and against each survivor, and when that is enough.
//!
//! Every survivor has a cost in bits: how unlikely its story is beforehand, how unlikely what it takes for a
//! coincidence is, and how unlike the rest of the text its seam looks. Costs become shares: a survivor that
//! costs one bit less is twice as likely.

use crate::Format;

use super::joint::Joint;
use super::preamble::{self, Certainty, NewTurn};
use super::restart;
use super::seam::AskedFrom;
use super::survivor::{Survivor, after_seam};
use super::texture::{Texture, surprise_of_repetition};
use super::units::{Reading, Units};

/// The share of the evidence that settles a seam.
const SETTLED: f64 = 0.95;
/// The share that settles the seam that was asked for: a clean continuation wins ties.
const SETTLED_AS_ASKED: f64 = 0.6;
/// The share that something else altogether may have at a settled seam.
const IN_DOUBT: f64 = 0.15;
/// What the story that was asked for is worth, in bits. A prompt is followed less exactly than a prefill.
const ASKED_AT_CUT: f64 = 3.0;
const ASKED_AT_TOKEN: f64 = 1.5;
/// How much likelier a continuation is something else if it says again what was said, in bits.
const SAID_AGAIN: f64 = 20.0;
/// What a text costs that is valid but not at its end.
const NOT_AT_ITS_END: f64 = 5.0;
/// A repetition is no coincidence from so many bytes on, even where a clean continuation was asked for.
const LONG_REPETITION: usize = 24;
/// Around the seam so many characters are looked at.
const NEAR: usize = 64;
/// Openings this close to each other are rivals for the same seam, in bytes.
const SAME_PLACE: usize = 12;

/// The value that the evidence speaks for.
pub(super) struct Weighed {
    /// The index of its likeliest survivor.
    pub(super) best: usize,
    /// Its share of the evidence, 0 to 1.
    pub(super) confidence: f64,
    /// Other values.
    pub(super) alternatives: usize,
    /// Whether that settles it.
    pub(super) settled: bool,
    /// Whether it is likelier that the continuation is something else altogether.
    pub(super) something_else: bool,
}

/// Weighs all survivors; none where there is none.
pub(super) fn weigh(joint: &Joint<'_>, survivors: &[Survivor]) -> Option<Weighed> {
    let costs = costs(joint, survivors);
    let best = (0..survivors.len()).min_by(|left, right| costs[*left].total_cmp(&costs[*right]))?;
    let mut values: Vec<(u128, f64)> = Vec::new();
    for (survivor, cost) in survivors.iter().zip(&costs) {
        match values.iter_mut().find(|(identity, _)| *identity == survivor.identity) {
            Some((_, least)) => *least = least.min(*cost),
            None => values.push((survivor.identity, *cost)),
        }
    }
    let weight = |cost: f64| (-cost.clamp(-500.0, 500.0)).exp2();
    let nothing = weight(something_else(joint, &survivors[best]));
    let total: f64 = values.iter().map(|(_, cost)| weight(*cost)).sum::<f64>() + nothing;
    let share = weight(costs[best]) / total;
    let as_asked = survivors[best].candidate.is_asked && joint.from == AskedFrom::Cut;
    let asked_is_whole = joint.from == AskedFrom::Cut
        && joint.has_grammar()
        && survivors.iter().any(|survivor| survivor.candidate.is_asked && survivor.verdict.is_whole());
    // What was asked for at the cut and is whole as it stands is not shortened for a short repetition: two equal
    // neighbours are ordinary.
    let shortened = asked_is_whole && !as_asked && survivors[best].candidate.repeated < LONG_REPETITION;
    let needed = if as_asked { SETTLED_AS_ASKED } else { SETTLED };
    Some(Weighed {
        best,
        confidence: if joint.lost_character { share.min(0.5) } else { share },
        alternatives: values.len() - 1,
        settled: share >= needed && nothing <= IN_DOUBT * total && !joint.lost_character && !shortened,
        something_else: nothing > weight(costs[best]),
    })
}

/// How unlikely it is that the continuation is none of the stories, in bits.
fn something_else(joint: &Joint<'_>, best: &Survivor) -> f64 {
    let unlikely = match (joint.has_grammar(), joint.in_text, joint.from) {
        (true, false, _) => 14.0,
        // Hardly anything that is none of the stories ends the document just so.
        (true, true, _) if best.verdict.is_whole() => 16.0,
        (true, true, _) => 11.0,
        (false, _, AskedFrom::Cut) => 9.0,
        (false, _, AskedFrom::Token | AskedFrom::Unknown) => 5.0,
    };
    if says_again(joint, best) { unlikely - SAID_AGAIN } else { unlikely }
}

/// Whether a text goes on, behind the seam, with what its first part said before.
fn says_again(joint: &Joint<'_>, survivor: &Survivor) -> bool {
    let said_again = restart::said_again(joint.initial, joint.continuation, joint.from);
    !joint.has_grammar() && said_again.is_some_and(|at| at >= survivor.candidate.start)
}

fn costs(joint: &Joint<'_>, survivors: &[Survivor]) -> Vec<f64> {
    let texture = joint.in_text.then(|| texture(joint));
    let before: Vec<char> = {
        let units = &joint.settled_units;
        units.chars(units.len().saturating_sub(NEAR)..units.len()).collect()
    };
    let beginning_anew = if begins_anew(joint) { 10.0 } else { 0.0 };
    survivors
        .iter()
        .map(|survivor| {
            let candidate = &survivor.candidate;
            let mut cost = candidate.cost;
            match &texture {
                Some(texture) => cost += looks(joint, texture, &before, survivor, survivors),
                None => cost += coincidence(joint, survivor, survivors),
            }
            if candidate.is_asked {
                cost -= if joint.from == AskedFrom::Cut { ASKED_AT_CUT } else { ASKED_AT_TOKEN };
            }
            if candidate.opening == 0 && candidate.repeated < joint.initial.len() {
                cost += beginning_anew;
            }
            if candidate.repeated == 0 && candidate.start == 0 {
                cost += signs_of_a_new_turn(joint, survivor, &before);
            }
            if fence_in_line(joint, survivor) {
                cost += 14.0;
            }
            if !survivor.verdict.is_whole() && joint.has_grammar() {
                cost += NOT_AT_ITS_END;
            }
            if survivor.left_out_remark {
                cost += 1.0;
            }
            cost
        })
        .collect()
}

/// How unlikely it is that the text goes on as a survivor says, up to a place that all survivors near it share.
fn looks(
    joint: &Joint<'_>,
    texture: &Texture,
    before: &[char],
    survivor: &Survivor,
    survivors: &[Survivor],
) -> f64 {
    let own = &survivor.candidate;
    let rivals = survivors
        .iter()
        .map(|other| &other.candidate)
        .filter(|other| other.opening.abs_diff(own.opening) <= SAME_PLACE);
    let shared_end = rivals.map(|other| other.start).max().unwrap_or(own.start);
    let skipped = joint.continuation.get(own.start..shared_end).unwrap_or_default();
    let after = after_seam(joint, own, NEAR);
    let rest = after_from(joint, shared_end);
    let unexplained: Vec<char> = {
        let kept = after.len().min(
            characters(joint, preamble::head(skipped, NEAR * 12)).len() + usize::from(!own.glue.is_empty()),
        );
        after[..kept].to_vec()
    };
    let longest = longest_repetition(survivor, survivors);
    // What is long enough to be no coincidence need not count for ever more.
    let length = f64::from(u32::try_from(unexplained.len()).unwrap_or(u32::MAX));
    let mut bits = texture.surprise(before, &unexplained).min(14.0 + length / 8.0);
    if longest > 0 {
        bits = bits.min(surprise_of_repetition(&joint.initial[..own.keep], longest));
    }
    let mut context = before.to_vec();
    context.extend(&unexplained);
    if unexplained.len() == NEAR {
        // The skipped part is longer than what was looked at: what precedes its end is its own last part.
        let tail = &skipped[skipped.floor_char_boundary(skipped.len().saturating_sub(NEAR))..];
        context = characters(joint, tail);
    }
    // What follows would be as unusual in a text of its own: only the difference speaks about the seam.
    let joined = texture.surprise(&context, &rest) - texture.surprise(&[], &rest);
    bits + joined.max(-5.0) + texture.words_at(before, &after) + texture.case_at(before, &after)
}

/// The first few characters from this place of the continuation on.
fn after_from(joint: &Joint<'_>, start: usize) -> Vec<char> {
    let part = preamble::head(&joint.continuation[start..], 40);
    let reading = if joint.has_grammar() { Reading::Content } else { Reading::Plain };
    let units = Units::read(part, reading);
    units.chars(0..units.len()).take(3).collect()
}

fn characters(joint: &Joint<'_>, part: &str) -> Vec<char> {
    let reading = if joint.has_grammar() { Reading::Content } else { Reading::Plain };
    let units = Units::read(part, reading);
    units.chars(0..units.len()).collect()
}

/// How much more of the first part another survivor takes for repeated than this one does, in bytes.
fn longest_repetition(survivor: &Survivor, survivors: &[Survivor]) -> usize {
    let own = &survivor.candidate;
    let longest = survivors
        .iter()
        .filter(|other| other.candidate.opening == own.opening && other.candidate.keep == own.keep)
        .map(|other| other.candidate.repeated)
        .max()
        .unwrap_or(0);
    longest.saturating_sub(own.repeated)
}

fn texture(joint: &Joint<'_>) -> Texture {
    let units = &joint.settled_units;
    let before: Vec<char> =
        units.chars(units.len().saturating_sub(super::texture::WINDOW)..units.len()).collect();
    let reading = if joint.has_grammar() { Reading::Content } else { Reading::Plain };
    let head = Units::read(preamble::head(joint.continuation, super::texture::WINDOW), reading);
    let after: Vec<char> = head.chars(0..head.len()).collect();
    Texture::of(&before, &after)
}

/// What a survivor takes for a coincidence that another one explains: a longer repeated part.
fn coincidence(joint: &Joint<'_>, survivor: &Survivor, survivors: &[Survivor]) -> f64 {
    let unexplained = longest_repetition(survivor, survivors);
    let surprise = surprise_of_repetition(&joint.initial[..survivor.candidate.keep], unexplained);
    // A short repetition is ordinary, and a continuation that was asked for at the cut is not shortened for it.
    if joint.from == AskedFrom::Cut && unexplained < 8 { surprise.min(3.0) } else { surprise }
}

/// Whether a survivor leaves a fence in the middle of a line, where none is.
fn fence_in_line(joint: &Joint<'_>, survivor: &Survivor) -> bool {
    let own = &survivor.candidate;
    let part = &joint.continuation[own.start..own.end];
    !joint.has_grammar()
        && own.glue != "\n"
        && (part.starts_with("```") || part.starts_with("~~~"))
        && !joint.initial[..own.keep].trim_end_matches([' ', '\t', '`', '~']).ends_with('\n')
        && super::fence::opening(part).is_some()
}

/// What speaks against a continuation that is taken as it stands: that it answers rather than continues.
fn signs_of_a_new_turn(joint: &Joint<'_>, survivor: &Survivor, before: &[char]) -> f64 {
    let continuation = joint.continuation;
    let mut cost = 0.0;
    if joint.in_text {
        let last = before.iter().rev().find(|sign| !sign.is_whitespace());
        let in_sentence =
            last.is_some_and(|sign| sign.is_alphanumeric() || matches!(sign, ',' | '(' | '\'' | '-'));
        // A model that goes on writes the space before its first word; one that begins anew has none to write.
        let set_off = continuation.starts_with(char::is_whitespace);
        let behind_space = before.last().is_none_or(|last| last.is_whitespace());
        cost += match preamble::begins_with_announcement(continuation) {
            Some(Certainty::Certain) if !set_off => 18.0,
            Some(Certainty::Certain) => 7.0,
            Some(_) if !set_off && (in_sentence || !behind_space) => 9.0,
            Some(_) if in_sentence || !set_off => 4.0,
            _ => 0.0,
        };
        cost += match preamble::new_turn(continuation) {
            NewTurn::Certain if !set_off => 16.0,
            NewTurn::Certain if in_sentence => 8.0,
            NewTurn::Certain => 4.0,
            NewTurn::Possible if !set_off && !behind_space => 10.0,
            NewTurn::Possible if !set_off && in_sentence => 3.0,
            _ => 0.0,
        };
        let in_line = before.iter().rev().take_while(|sign| **sign != '\n').any(|sign| !sign.is_whitespace());
        if in_line && begins_block(continuation, !behind_space) {
            cost += 12.0;
        }
        if !survivor.verdict.is_whole() && joint.has_grammar() && is_short_and_done(continuation) {
            cost += 4.0;
        }
        if in_sentence && begins_sentence(continuation) {
            cost += if joint.from == AskedFrom::Cut { 8.0 } else { 4.0 };
        }
        let reading = if joint.has_grammar() { Reading::Content } else { Reading::Plain };
        let head = Units::read(preamble::head(continuation, 4_000), reading);
        if restart::diverges(&joint.settled_units, &head) {
            cost += 12.0;
        }
        if joint.format == Format::Text && preamble::ends_with_remark(continuation).is_some() {
            cost += 9.0;
        }
    } else if !survivor.verdict.is_whole() && is_document_of_its_own(joint) {
        cost += 14.0;
    }
    cost
}

/// Whether the continuation begins the whole document anew, and another one than the first part is of.
fn begins_anew(joint: &Joint<'_>) -> bool {
    let most = joint.initial.len().saturating_mul(2).min(8_000);
    let again = Units::read(preamble::head(joint.continuation, most), joint.whole_reading());
    restart::diverges_from_start(&joint.settled_units, &again)
}

/// Whether a continuation begins as a sentence does that is never found in the middle of one.
fn begins_sentence(continuation: &str) -> bool {
    const BEGINNINGS: &[&str] = &[
        "The ", "This ", "That ", "These ", "Those ", "It ", "In ", "Here ", "There ", "To ", "If ", "We ",
        "You ", "As ", "A ", "An ", "Every ", "Our ", "My ", "Your ", "They ", "He ", "She ", "When ",
        "What ", "While ", "For ", "On ", "At ", "With ", "After ", "Once ", "First, ",
    ];
    let text = continuation.trim_start();
    BEGINNINGS.iter().any(|beginning| text.starts_with(beginning))
}

/// Whether a continuation begins with a heading, a list or a table, which no line has in its middle.
fn begins_block(continuation: &str, glued: bool) -> bool {
    let line = continuation.lines().next().unwrap_or_default();
    let signs = line.len() - line.trim_start_matches('#').len();
    let is_heading = (1..=6).contains(&signs) && line[signs..].starts_with(' ');
    let stands_alone = continuation[line.len()..].starts_with("\n\n");
    let is_row = line.starts_with("| ") && line.ends_with('|');
    is_heading && (stands_alone || glued) || glued && (line.starts_with("- **") || is_row)
}

/// Whether a continuation is a few finished sentences: one that is cut ends anywhere.
fn is_short_and_done(continuation: &str) -> bool {
    let text = continuation.trim_end();
    text.len() < 400 && text.ends_with(['.', '!', '?']) && text.contains(' ')
}

/// Whether the continuation is a whole document of the first part's kind by itself.
fn is_document_of_its_own(joint: &Joint<'_>) -> bool {
    let root = |text: &str| text.trim_start().bytes().next();
    root(joint.initial) == root(joint.continuation)
        && joint.format == Format::Json
        && crate::detect::detect(joint.continuation.as_bytes(), &joint.format).verdict.is_whole()
}
