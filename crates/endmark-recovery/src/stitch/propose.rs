//! Proposes the candidates in JSON: every explainable way to join the two parts, with its cost.

use endmark_text::Format;

use super::candidate::Candidate;
use super::continuation_start::ContinuationStart;
use super::continuation_starts::continuation_starts;
use super::escape;
use super::joint::{Joint, Readings};
use super::overlap::{SEARCHED_UNITS, may_overlap, may_overlap_beyond, overlaps};
use super::seam::{AskedFrom, SeamStyle};
use super::units::{Reading, Units, character};

/// Minimum length, in bytes, of a repetition that is more than a few letters.
const TRIVIAL_REPETITION_BYTES: usize = 8;

/// Returns all candidates of a joint.
pub(super) fn propose(joint: &Joint<'_>) -> Vec<Candidate> {
    let mut found = Vec::new();
    let readings = Readings::new(joint);
    for opening in continuation_starts(joint) {
        add_unchanged(joint, opening, &mut found);
        add_after_repetition(joint, &readings, opening, &mut found);
    }
    // Several explanations may give the same join. Keep the likeliest.
    let place =
        |candidate: &Candidate| (candidate.keep, candidate.glue, candidate.start, candidate.is_fenced);
    found.sort_by(|left, right| place(left).cmp(&place(right)).then(left.cost.total_cmp(&right.cost)));
    found.dedup_by(|second, first| place(second) == place(first) && !second.is_as_requested(joint));
    found
}

/// Returns the positions in the first part at which a continuation may begin: the cut, and the end of the
/// settled part.
fn join_positions(joint: &Joint<'_>) -> impl Iterator<Item = usize> + use<> {
    let settled = joint.has_unsettled_token().then_some(joint.settled_bytes);
    std::iter::once(joint.initial.len()).chain(settled)
}

/// Returns how unlikely it is, in bits, that the model continues at this position.
fn position_cost(joint: &Joint<'_>, keep: usize) -> f64 {
    let at_cut = keep == joint.initial.len();
    match joint.from {
        AskedFrom::Unknown if at_cut => 0.5,
        AskedFrom::Unknown => 1.5,
        AskedFrom::Cut if at_cut => 0.0,
        // This is least likely within a number.
        AskedFrom::Cut if !joint.in_text => 8.0,
        AskedFrom::Cut => 6.0,
        AskedFrom::Token if at_cut && joint.has_unsettled_token() => 6.5,
        AskedFrom::Token => 0.0,
    }
}

fn add_unchanged(joint: &Joint<'_>, opening: ContinuationStart, found: &mut Vec<Candidate>) {
    for keep in join_positions(joint) {
        let at_cut = keep == joint.initial.len();
        // The token at the cut should be written again from its beginning. A model that did not see the token
        // may write a different one.
        let odd = match joint.from {
            _ if at_cut || rewrites_token(joint, opening.start) => 0.0,
            AskedFrom::Token if !joint.in_text && opening.removes_nothing() => 1.0,
            AskedFrom::Token if !joint.in_text => 4.0,
            AskedFrom::Unknown if !joint.in_text => 3.0,
            _ => 8.0,
        };
        // A row of JSON Lines must not contain a line break.
        let spaces = &joint.continuation[opening.start..];
        let spaces = &spaces[..spaces.len() - spaces.trim_start().len()];
        let breaks_row = joint.format == Format::Jsonl && !joint.verdict.is_whole() && spaces.contains('\n');
        // A row cannot begin in the line of another row.
        let joins_rows = joint.format == Format::Jsonl
            && at_cut
            && joint.verdict.is_whole()
            && !spaces.contains('\n')
            && joint.initial.ends_with(['}', ']'])
            && (joint.initial.contains('\n') || joint.continuation.contains('\n'))
            && joint.continuation[opening.start..].trim_start().starts_with(['{', '[']);
        let odd = odd + if breaks_row { 6.0 } else { 0.0 } + if joins_rows { 12.0 } else { 0.0 };
        let odd = odd + lost_character_cost(joint, opening.start, at_cut);
        let exact = if at_cut { SeamStyle::Exact } else { SeamStyle::Token };
        let plain = Candidate {
            keep,
            glue: "",
            start: opening.start,
            end: joint.continuation.len(),
            style: opening.style.unwrap_or(exact),
            cost: opening.cost + position_cost(joint, keep) + odd,
            text_start: opening.start,
            repeated_bytes: 0,
            is_clean: opening.removes_nothing(),
            is_fenced: opening.fence.is_some(),
            announcement_bits: opening.announcement_bits,
        };
        if at_cut && joint.in_text && may_lack_whitespace(joint, opening) {
            // In a string, a raw line break in the continuation may stand for an escaped one or for a space.
            let left_out = &joint.continuation[..opening.start];
            let is_line_break = left_out.contains('\n') && left_out.trim().is_empty();
            let lost = match (opening.removes_nothing(), joint.from) {
                _ if is_line_break => 2.0,
                (false, _) => 11.0,
                (true, AskedFrom::Cut) => 8.0,
                (true, _) => 5.0,
            };
            let cost = plain.cost + lost;
            let style = opening.style.unwrap_or(SeamStyle::Whitespace);
            found.push(Candidate { glue: " ", style, cost, is_clean: false, ..plain.clone() });
            found.push(Candidate { glue: "\\n", style, cost: cost + 1.0, is_clean: false, ..plain.clone() });
        }
        found.push(plain);
    }
}

/// Returns the cost, in bits, of losing the character of a cut escape. A model that saw the escape completes
/// it or writes the character. Hexadecimal digits that form a word may be either.
fn lost_character_cost(joint: &Joint<'_>, start: usize, at_cut: bool) -> f64 {
    let is_lost = if at_cut {
        escape::leaves_lone_surrogate(joint, start)
            || (joint.from != AskedFrom::Token && escape::may_be_a_word(joint, start))
    } else {
        joint.from != AskedFrom::Token && escape::is_cut_in_escape(joint) && !rewrites_token(joint, start)
    };
    if is_lost { 24.0 } else { 0.0 }
}

/// Whether there is no whitespace on either side of the seam, so that a space may have been lost.
fn may_lack_whitespace(joint: &Joint<'_>, opening: ContinuationStart) -> bool {
    // No whitespace belongs after opening punctuation or before closing punctuation.
    let opens = |character: char| character.is_whitespace() || "\"'`([{<*_/\\-#$@".contains(character);
    let closes = |character: char| character.is_whitespace() || "\"'`\\.,;:!?)]}>".contains(character);
    let ends_bare = !joint.initial.ends_with(opens) && !joint.initial.is_empty();
    let rest = &joint.continuation[opening.start..];
    ends_bare && !rest.is_empty() && !rest.starts_with(closes)
}

fn add_after_repetition(
    joint: &Joint<'_>,
    readings: &Readings<'_>,
    opening: ContinuationStart,
    found: &mut Vec<Candidate>,
) {
    let body = &joint.continuation[opening.start..];
    for reading in joint.readings() {
        let mut again = Units::read_up_to(body, *reading, SEARCHED_UNITS);
        let mut is_all = again.end.position == body.len();
        for keep in join_positions(joint) {
            let half_an_escape = keep == joint.initial.len() && joint.in_text && joint.has_unsettled_token();
            if half_an_escape && *reading != Reading::Plain {
                // An incomplete escape is read as letters, and not as a unit.
                continue;
            }
            if *reading == Reading::Plain && !may_overlap(&joint.initial[..keep], body) {
                continue;
            }
            let units = readings.at(keep, *reading);
            if !is_all && may_overlap_beyond(&units.codes, &again.codes) {
                again = Units::read(body, *reading);
                is_all = true;
            }
            let counts = overlaps(&units.codes, &again.codes);
            // All lengths of a repetition share the likelihood of one explanation.
            let one_of = f64::from(u32::try_from(counts.len()).unwrap_or(u32::MAX)).log2();
            for count in counts {
                let again = repetition(joint, opening, (keep, units), &again, count);
                found.push(Candidate { cost: again.cost + one_of, ..again });
            }
        }
    }
}

fn repetition(
    joint: &Joint<'_>,
    opening: ContinuationStart,
    (keep, units): (usize, &Units<'_>),
    again: &Units<'_>,
    count: usize,
) -> Candidate {
    let first = units.len() - count;
    let beginning = units.unit_start(first);
    let letters = units.chars(first..units.len()).filter(|sign| sign.is_alphanumeric()).take(4).count();
    let is_all = first == 0;
    let style = if is_all || begins_part(units, first) && count > 1 {
        SeamStyle::Restart
    } else {
        SeamStyle::Overlap
    };
    let mut start = opening.start + again.units_end(count);
    let rest = &joint.continuation[start..];
    if !joint.in_text && joint.initial[..keep].ends_with(char::is_whitespace) {
        // Between tokens, the existing whitespace is sufficient.
        start += rest.len() - rest.trim_start().len();
    }
    let mut cost = opening.cost;
    if keep < joint.initial.len() && !joint.in_text && !rewrites_token(joint, start) {
        cost += 20.0;
    }
    cost += lost_character_cost(joint, start, keep == joint.initial.len());
    // Whitespace between tokens does not count as letters.
    let signs = || {
        units
            .chars(first..units.len())
            .filter(|sign| !sign.is_whitespace())
            .take(TRIVIAL_REPETITION_BYTES)
            .count()
    };
    let few =
        keep - beginning < TRIVIAL_REPETITION_BYTES || !joint.in_text && signs() < TRIVIAL_REPETITION_BYTES;
    cost += match joint.from {
        // Two numbers and a comma are not a likely repetition either.
        AskedFrom::Unknown if few && !joint.in_text && letters < 3 => 8.0,
        AskedFrom::Unknown => 1.5,
        // A model that knows where to continue does not repeat a few letters, least of all in its own
        // message.
        AskedFrom::Cut if opening.removes_nothing() && few => 9.0,
        AskedFrom::Cut if opening.removes_nothing() => 4.0,
        _ if few => 5.0,
        AskedFrom::Cut | AskedFrom::Token => 1.5,
    };
    cost += if keep == joint.initial.len() { 0.0 } else { 0.5 };
    cost += match joint.from {
        _ if is_all || begins_word(units, first) => 0.0,
        AskedFrom::Token | AskedFrom::Unknown if count < 16 => 4.0,
        _ => 2.5,
    };
    cost += if joint.in_text && letters < 3 && count < 8 { 2.0 } else { 0.0 };
    let is_blank = || units.chars(first..units.len()).all(char::is_whitespace);
    cost += if joint.in_text && letters == 0 && count < 8 && is_blank() { 3.0 } else { 0.0 };
    Candidate {
        keep,
        glue: "",
        start,
        end: joint.continuation.len(),
        style: opening.style.unwrap_or(style),
        cost,
        text_start: opening.start,
        repeated_bytes: keep - beginning,
        is_clean: false,
        is_fenced: opening.fence.is_some(),
        announcement_bits: opening.announcement_bits,
    }
}

/// Whether the text at `start` of the continuation writes the token at the cut again.
fn rewrites_token(joint: &Joint<'_>, start: usize) -> bool {
    let rest = &joint.continuation[start..];
    let rest = if joint.in_text { rest } else { rest.trim_start() };
    rest.starts_with(&joint.initial[joint.settled_bytes..]) || escape::completes_escape(joint, start)
}

/// Whether an object, an array or a string begins at this unit.
fn begins_part(units: &Units<'_>, index: usize) -> bool {
    units
        .codes
        .get(index)
        .is_some_and(|code| *code == u32::from('{') || *code == u32::from('[') || *code == u32::from('"'))
}

/// Whether a model that repeats words would begin at this unit.
fn begins_word(units: &Units<'_>, index: usize) -> bool {
    let Some(sign) = units.codes.get(index).map(|code| character(*code)) else { return true };
    let before = index.checked_sub(1).and_then(|before| units.codes.get(before)).map(|code| character(*code));
    !sign.is_alphanumeric() || before.is_none_or(|before| !before.is_alphanumeric())
}
