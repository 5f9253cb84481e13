//! Evidence: how much likelier than a text of its own each story makes the continuation, and when that is enough.

use endmark_text::Format;

use super::cost::{REACH, Scale, may_glue};
use super::likeness::Likeness;
use super::otherwise::something_else;
use crate::stitch::candidate::Candidate;
use crate::stitch::evidence::{Weighed, weight};
use crate::stitch::joint::{Asked, Joint};
use crate::stitch::register::Around;
use crate::stitch::seam::{AskedFrom, SeamStyle};
use crate::stitch::{ellipsis, fence, quotation, settled};

/// A repetition is no coincidence from so many bytes on, even where a clean continuation was asked for.
const TELLING: usize = 20;
/// So few bytes are a letter or two.
const HAIR: usize = 4;
/// What reads less like an announcement than this is none, whatever is said again behind it, in bits.
const NO_ANNOUNCEMENT: f64 = -3.0;
/// A text that goes on so unlike itself does not go on there, in bits.
const UNLIKE: f64 = 6.0;
/// What speaks against a repetition of what the text goes round with, in bits.
const ROUND: f64 = 400.0;
/// What may stand around a text in a continuation is not longer, in bytes.
const IN_QUESTION: usize = 400;

/// Reads the text on both sides of the seam, without what is in question there: it would speak for itself.
pub(super) fn likeness(joint: &Joint<'_>) -> Likeness {
    let text = joint.continuation;
    let line = text.trim_start().split('\n').next().unwrap_or_default();
    let blank = text.len() - text.trim_start().len();
    let behind = if line.starts_with(char::is_lowercase) {
        REACH * 2
    } else {
        blank + line.len().min(IN_QUESTION) + REACH * 2
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
    stories: &[Candidate],
) -> Option<Weighed> {
    let (costs, goes_on, nesting) = {
        let scale = Scale::new(joint, likeness, stories);
        let goes_on = |story: &Candidate| story.repeated == 0 && scale.seam(story, story.start) < UNLIKE;
        let (costs, goes_on): (Vec<f64>, Vec<bool>) =
            stories.iter().map(|story| (scale.cost(story), goes_on(story))).unzip();
        (costs, goes_on, stories.iter().map(|story| scale.nesting(story)).collect::<Vec<f64>>())
    };
    let rounds: Vec<bool> = stories.iter().map(|story| joint.goes_round(story.repeated)).collect();
    // Who was told where to go on is not taken to have said once more what the text says over and over.
    let told = |story: &Candidate| match joint.from {
        AskedFrom::Cut => true,
        AskedFrom::Token => story.repeated < joint.initial.len(),
        AskedFrom::Unknown => false,
    };
    // Least of all at the cut, where the text goes on as it did: then white space was not added either.
    let is_clean = joint.from == AskedFrom::Cut
        && stories.iter().zip(&rounds).any(|(story, round)| *round && says_something(joint, story))
        && stories.iter().zip(&goes_on).any(|(story, goes_on)| story.is_clean && *goes_on);
    let excluded = |story: &Candidate| {
        // What begins with the whole text is no round of it.
        is_clean
            && story.start > 0
            && story.repeated < joint.initial.len()
            && joint.continuation[..story.opening].trim().is_empty()
    };
    let costs: Vec<f64> = (stories.iter().zip(&rounds).zip(costs))
        .map(
            |((story, round), cost)| {
                if *round && told(story) || excluded(story) { cost + ROUND } else { cost }
            },
        )
        .collect();
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
    let needed = needed(joint, &stories[best]);
    let confidence = share(best);
    // What leaves the tags badly nested as it stands was not meant so.
    let is_broken = asked.is_some_and(|clean| nesting[clean] > nesting[best]);
    let ties = ties(joint, stories, &values, best, (confidence, total));
    let reached = confidence / (1.0 - ties).max(confidence);
    Some(Weighed {
        best,
        confidence: if joint.lost_character { confidence.min(0.5) } else { confidence },
        alternatives: values.len() - 1,
        settled: reached >= needed
            && !joint.lost_character
            && !rounds[best]
            && !may_go_round(joint, stories, &rounds, best, goes_on[best])
            && (is_broken || !shortens_slightly(joint, &stories[best]))
            && !(stories[best].style == SeamStyle::Preamble && stories[best].announced < NO_ANNOUNCEMENT)
            && !is_guessed(joint, &stories[best]),
        something_else: nothing > confidence * total && confidence < needed,
        costs,
        nothing: nothing_bits,
    })
}

/// The share of the stories that differ from a clean seam that was asked for by so little that it wins over them: by
/// white space, or by a less likely repetition.
fn ties(
    joint: &Joint<'_>,
    stories: &[Candidate],
    values: &[(usize, f64)],
    best: usize,
    (confidence, total): (f64, f64),
) -> f64 {
    if !stories[best].is_clean || joint.from != AskedFrom::Cut {
        return 0.0;
    }
    // How far a line is indented its neighbours tell.
    let last_line = joint.initial.rsplit('\n').next().unwrap_or_default();
    let in_indentation = !last_line.is_empty() && last_line.trim().is_empty();
    let is_tie = |story: &Candidate| {
        let is_same_end = story.end == stories[best].end;
        let is_repeated = matches!(story.style, SeamStyle::Overlap | SeamStyle::Restart);
        is_same_end && differs_by_whitespace(joint, story) && !in_indentation
            || is_repeated && confidence >= 0.5
    };
    let ties = values.iter().filter(|(index, _)| is_tie(&stories[*index]));
    ties.map(|(_, weight)| weight / total).sum()
}

/// The share that settles a story.
fn needed(joint: &Joint<'_>, best: &Candidate) -> f64 {
    let is_slight = (1..TELLING).contains(&best.repeated);
    // Below a blank line a block may be the text's own.
    let may_be_own = joint.format == Format::Markdown && joint.initial.ends_with("\n\n");
    // Who was not asked at the cut says with dots that something is left out.
    let begins_with_dots = joint.from != AskedFrom::Cut && ellipsis::after(joint.continuation).is_some();
    match (best.is_clean, joint.from, best.style) {
        (true, ..) if begins_with_dots => settled::SLIGHT,
        (true, AskedFrom::Cut, _) if is_wrapped_code(joint) => settled::SURE,
        (true, AskedFrom::Cut | AskedFrom::Token, _) => settled::LIKELY,
        (_, _, SeamStyle::Fence) if !is_slight => settled::BY_FENCE,
        (_, _, SeamStyle::Preamble) if is_spaced(joint, best) => settled::SLIGHT,
        (_, _, SeamStyle::Preamble) if best.fenced && may_be_own => settled::SURE,
        (_, _, SeamStyle::Preamble) if best.fenced && !is_slight => settled::LIKELY,
        (_, _, SeamStyle::Fence) if joint.format != Format::Tags => settled::HAIR,
        _ if repeats_white_space(joint, best) => settled::SLIGHT,
        (_, _, SeamStyle::Overlap) if is_slight => settled::SLIGHT,
        (_, _, SeamStyle::Restart) if best.end < joint.continuation.trim_end().len() => settled::LIKELY,
        (_, _, SeamStyle::Restart) => settled::CLEAR,
        (_, _, SeamStyle::Remark) => settled::LIKELY,
        (_, _, SeamStyle::Whitespace) => settled::SLIGHT,
        (_, _, SeamStyle::Ellipsis) if is_spaced_behind_dots(joint, best) => settled::SLIGHT,
        _ => settled::SURE,
    }
}

/// The share that settles a story that white space, dots or a few repeated words alone tell; none where something else does.
pub(super) fn needed_in_doubt(joint: &Joint<'_>, story: &Candidate) -> f64 {
    let is_slight = (1..TELLING).contains(&story.repeated);
    let begins_with_dots = joint.from != AskedFrom::Cut && ellipsis::after(joint.continuation).is_some();
    let by_white_space = is_spaced_behind_dots(joint, story) || story.is_clean && begins_with_dots;
    match story.style {
        _ if by_white_space => settled::SLIGHT,
        SeamStyle::Overlap if story.repeated < HAIR && is_slight => settled::HAIR,
        SeamStyle::Overlap if is_slight => settled::SLIGHT,
        _ => 0.0,
    }
}

/// Whether another story takes more or less of what the text goes round with: unless a clean continuation was asked for,
/// nothing tells how often it was said.
fn may_go_round(
    joint: &Joint<'_>,
    stories: &[Candidate],
    rounds: &[bool],
    best: usize,
    goes_on: bool,
) -> bool {
    let own = &stories[best];
    let rival = |story: &Candidate| {
        story.opening == own.opening && story.repeated != own.repeated && says_something(joint, story)
    };
    let has_rivals = || stories.iter().zip(rounds).any(|(story, round)| *round && rival(story));
    // Who wraps what it says may begin the text or its block anew.
    let begins_anew = own.fenced && (joint.fence_is_open || joint.goes_round(joint.initial.len()));
    let asked = match joint.from {
        AskedFrom::Unknown => false,
        // Where the text does not go on as it stands, it was not what was asked for.
        AskedFrom::Cut | AskedFrom::Token => goes_on && !begins_anew,
    };
    own.repeated < joint.initial.len() && !asked && has_rivals()
}

/// Whether more than one blank line stands around the place where the text begins behind an announcement: which of them is
/// the text's own only white space tells.
fn is_spaced(joint: &Joint<'_>, story: &Candidate) -> bool {
    let ahead = joint.continuation[..story.opening].trim_end().len();
    let rest = &joint.continuation[ahead..];
    let blank = &rest[..rest.len() - rest.trim_start().len()];
    story.repeated == 0 && blank.matches('\n').count() > 2
}

/// Whether a story takes white space alone for repeated.
fn repeats_white_space(joint: &Joint<'_>, story: &Candidate) -> bool {
    story.repeated > 0 && joint.initial[joint.initial.len() - story.repeated..].trim().is_empty()
}

/// Whether a story takes nothing but line ends for repeated: a blank line may be the text's own.
fn repeats_line_end(joint: &Joint<'_>, story: &Candidate) -> bool {
    let repeated = &joint.initial[joint.initial.len() - story.repeated..];
    !repeated.is_empty() && repeated.trim_matches(['\r', '\n']).is_empty()
}

/// Whether white space stands behind dots of omission that a story leaves out: how much of it is the text's own only white
/// space tells.
fn is_spaced_behind_dots(joint: &Joint<'_>, story: &Candidate) -> bool {
    let ahead = joint.continuation[..story.opening].trim_end();
    story.repeated == 0
        && ahead.ends_with(['.', '\u{2026}', ')', ']'])
        && joint.continuation[ahead.len()..].starts_with(char::is_whitespace)
}

/// Whether a text is two and more lines of fences, and nothing else.
fn has_fences_alone(text: &str) -> bool {
    let lines = fence::lines(text);
    lines > 1 && lines == text.lines().filter(|line| !line.trim().is_empty()).count()
}

/// Whether a continuation of a text that has no blocks is one.
fn is_wrapped_code(joint: &Joint<'_>) -> bool {
    let begins = fence::opening(joint.continuation);
    joint.format == Format::Text
        && fence::lines(joint.initial) == 0
        && begins.is_some_and(|length| fence::is_closed(&joint.continuation[length..]))
}

/// Whether a clean continuation that was not asked for at the cut begins with a fence: it may be a wrapper as well as the
/// text's own, unless the text announces a block.
fn may_be_wrapped(joint: &Joint<'_>, story: &Candidate) -> bool {
    let line = joint.continuation.trim_start().lines().next().unwrap_or_default().trim_end();
    let begins = fence::opening(joint.continuation).is_some()
        && if joint.fence_is_open {
            // What closes the text's own block is no longer than what opened it.
            fence::closing(line).is_none()
                || !joint.initial.contains(line)
                || has_fences_alone(joint.continuation)
        } else {
            !joint.announces_block()
        };
    story.is_clean && joint.from != AskedFrom::Cut && begins
}

/// Whether a story keeps a first line of words in brackets that end as a sentence does: they speak about the text, and are no
/// code.
fn begins_with_aside(joint: &Joint<'_>, story: &Candidate) -> bool {
    let line = joint.continuation.lines().next().unwrap_or_default().trim();
    let inside = |open: char, close: char| line.strip_prefix(open)?.strip_suffix(close);
    let said = inside('(', ')').or_else(|| inside('[', ']')).unwrap_or_default();
    let words = said.trim_end_matches(['.', '\u{2026}', ':']);
    story.start == 0
        && words.len() < said.len()
        && words.contains(char::is_alphabetic)
        && words.chars().all(|sign| sign.is_alphabetic() || matches!(sign, ' ' | ',' | '\''))
}

/// Whether what a story takes for repeated is more than a few signs.
fn says_something(joint: &Joint<'_>, story: &Candidate) -> bool {
    let said = || joint.initial[joint.initial.len() - story.repeated..].chars();
    said().filter(|sign| sign.is_alphanumeric()).nth(2).is_some()
        || said().filter(|sign| !sign.is_whitespace()).nth(7).is_some()
}

/// Whether a story takes a few words from what was asked for at the cut: two equal neighbours are ordinary.
fn shortens_slightly(joint: &Joint<'_>, story: &Candidate) -> bool {
    let bare = story.opening == 0 && story.repeated > 0;
    joint.from == AskedFrom::Cut && bare && story.repeated < TELLING
}

/// The share with which a clean continuation that was asked for wins over a likelier story. A remark, or whitespace
/// in the middle of a word, is no matter of ties.
fn least_share(likelier: &Candidate) -> f64 {
    let is_shortened = likelier.repeated == 0 && likelier.start > 0 || likelier.style == SeamStyle::Remark;
    if is_shortened { 0.5 } else { settled::TIED }
}

/// Whether the seam of a story differs from the clean one by nothing but whitespace.
fn differs_by_whitespace(joint: &Joint<'_>, story: &Candidate) -> bool {
    let same_seam = story.start == 0 && story.glue.is_empty();
    !same_seam && joint.continuation[..story.start].trim().is_empty()
}

/// Whether a story adds whitespace of which the text does not say what it was, where a space is certain only if a sentence
/// goes on, lets a quotation begin in the middle of a word, makes one word of two, or keeps a fence or words that may be none of the text's.
pub(super) fn is_guessed(joint: &Joint<'_>, story: &Candidate) -> bool {
    // What begins anew with other whitespace has it in the rest as well.
    let again = joint.continuation[story.opening..story.start].trim_start();
    let reflowed = story.repeated == joint.initial.len() && again != joint.initial.trim_start();
    let breaks_word = quotation::breaks_word(joint.initial, story.added(joint));
    story.glue.is_empty() && (reflowed || breaks_word)
        || may_be_wrapped(joint, story)
        || begins_with_aside(joint, story)
        || repeats_line_end(joint, story)
        || joint.asked != Asked::ByMessage && may_glue(joint, story)
        || is_guessed_glue(joint, story.glue, story.added(joint))
}

/// Whether this whitespace in front of a part is a guess.
fn is_guessed_glue(joint: &Joint<'_>, glue: &str, part: &str) -> bool {
    let goes_on = joint.initial.ends_with(|sign: char| sign.is_alphanumeric() || sign == ',')
        && part.starts_with(char::is_lowercase);
    match glue {
        "" => false,
        " " => !goes_on,
        _ => true,
    }
}

/// Whether two stories give the same text.
fn same(joint: &Joint<'_>, left: &Candidate, right: &Candidate) -> bool {
    let (one, other) = (left.added(joint), right.added(joint));
    if left.glue == right.glue {
        return one == other;
    }
    one.len() + left.glue.len() == other.len() + right.glue.len()
        && left.glue.chars().chain(one.chars()).eq(right.glue.chars().chain(other.chars()))
}
