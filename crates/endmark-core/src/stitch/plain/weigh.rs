//! Evidence: how much likelier than a text of its own each story makes the continuation, and when that is enough.

use super::cost::{REACH, Scale, self_similarity};
use super::likeness::Likeness;
use super::story::Story;
use super::turn;
use crate::stitch::evidence::{Weighed, weight};
use crate::stitch::joint::Joint;
use crate::stitch::register::{self, Around};
use crate::stitch::restart;
use crate::stitch::seam::{AskedFrom, SeamStyle};
use crate::stitch::units::{Reading, Units};

/// The share of the evidence that settles a seam.
const SETTLED: f64 = 0.97;
/// The share that settles a seam that a repetition, a fence or dots tell, and a clean one that was asked for.
const SETTLED_TOLD: f64 = 0.9;
const SETTLED_AS_ASKED: f64 = 0.93;
/// The share with which a clean seam that was asked for wins over a likelier one.
const TIED_AS_ASKED: f64 = 0.13;
/// What may stand around a text in a continuation is not longer, in bytes.
const IN_QUESTION: usize = 400;
/// What is at least so long and stands in the first part already, as it is, is nothing new, in bytes.
const NOTHING_NEW: usize = 40;

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
pub(super) fn weigh(
    joint: &Joint<'_>,
    likeness: &Likeness,
    around: &Around,
    stories: &[Story],
) -> Option<Weighed> {
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
    let nothing_bits = something_else(joint, around, &stories[best], costs[best]);
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
    story.glue.is_empty() && reflowed || is_guessed_glue(joint, story.glue, story.text(joint))
}

/// Whether this whitespace in front of a part is a guess.
pub(super) fn is_guessed_glue(joint: &Joint<'_>, glue: &str, part: &str) -> bool {
    let goes_on = joint.initial.ends_with(|sign: char| sign.is_alphanumeric() || sign == ',')
        && part.starts_with(char::is_lowercase);
    match glue {
        "" => false,
        " " => !goes_on,
        _ => true,
    }
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
fn something_else(joint: &Joint<'_>, around: &Around, best: &Story, cost: f64) -> f64 {
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
    bits += if best.announced > 0.0 { best.announced / 2.0 } else { -register::answers(joint, around) };
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
