//! Weighs several continuations together, because a later one may resolve the ambiguity of an earlier one
//! (PC-4).
//!
//! A path is one way to join all parts so far. Its cost is the sum of the costs of its seams. The next part
//! is joined to every path. A path is dropped if the part does not fit, and becomes likelier if it fits well.

use endmark_text::detect::Detector;
use endmark_text::{Format, Verdict};

use super::decision::{self, DecisionSign, SeamLead};
use super::evidence::grammar::UNFINISHED_COST;
use super::evidence::{SupportedValue, doubts, weight};
use super::joint::Joint;
use super::plain;
use super::seam::{AskedFrom, Seam, SeamStyle, dropped_beginning};
use super::survivor::{self, Survivor};
use super::units::Reading;
use super::value_identity::text_identity;

/// A path is dropped if it costs this many bits more than the best path.
const MAX_EXTRA_COST_BITS: f64 = 16.0;

/// Cost, in bits, of removing a whitespace part that may belong to the text.
const WHITESPACE_REMOVAL_BITS: f64 = 1.0;

/// Maximum number of paths that are kept.
const MAX_PATHS: usize = 8;

/// The most serious doubt about a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Doubt {
    None,
    /// A seam removes a few repeated bytes that may be intended, or leaves the amount of whitespace unknown.
    Slight,
    /// A seam is a guess, even if a likely one, or the part is probably not a continuation but, for example, a remark.
    Guessed,
    /// A continuation was omitted as something else.
    Dropped,
}

/// One way to join all parts so far.
struct Path {
    text: String,
    record: PathRecord,
}

/// A path extended by one seam. Its text is not yet joined, because there are many more steps than paths that
/// are kept.
struct PathStep<'p> {
    parts: [&'p str; 3],
    record: PathRecord,
}

/// Everything about a path except its text.
#[derive(Clone)]
struct PathRecord {
    is_whole: bool,
    seams: Vec<Seam>,
    /// The sum of the costs of its seams, in bits.
    cost: f64,
    /// Whether every continuation was joined unchanged at the requested position.
    is_as_requested: bool,
    /// The doubt about its seams that later parts cannot resolve.
    doubt: Doubt,
    /// The yes-or-no features of its seams, from which the probability is computed.
    signs: Vec<DecisionSign>,
}

impl PathRecord {
    /// Returns the signs of all its seams and of one more.
    fn signs_with(&self, joint: &Joint<'_>, survivor: &Survivor) -> Vec<DecisionSign> {
        let mut signs = decision::candidate_signs(joint, &survivor.candidate, survivor.has_dropped_remark);
        signs.extend(&self.signs);
        signs
    }
}

/// The result of joining all parts.
pub(super) struct ChainResult {
    pub(super) text: String,
    pub(super) is_whole: bool,
    pub(super) seams: Vec<Seam>,
    pub(super) is_settled: bool,
}

/// Joins a first part with all its continuations. Returns `None` if no path explains all of them.
pub(super) fn join_chain(
    initial: &str,
    continuations: &[String],
    format: &Format,
    from: AskedFrom,
) -> Option<ChainResult> {
    let record = PathRecord {
        is_whole: is_whole(&[initial], format),
        seams: Vec::new(),
        cost: 0.0,
        is_as_requested: true,
        doubt: Doubt::None,
        signs: Vec::new(),
    };
    let mut paths = vec![Path { text: initial.to_owned(), record }];
    for (index, continuation) in continuations.iter().enumerate() {
        let is_last = index + 1 == continuations.len();
        if continuation.trim().is_empty() {
            let steps =
                paths.iter().flat_map(|path| paths_after_space(path, continuation, format, from)).collect();
            paths = likeliest_paths(steps, format);
            continue;
        }
        let mut steps = Vec::new();
        for path in &paths {
            let joint = Joint::new(&path.text, continuation, format, from);
            if joint.has_lost_character || matches!(joint.verdict, Verdict::Malformed { .. }) {
                return None;
            }
            if joint.has_nothing_to_join() {
                continue;
            }
            let Some((survivors, weighed)) = super::weigh_candidates(&joint) else { continue };
            // The part may also be something else, so that the next part continues the same text. After one
            // omitted part, all later parts are omitted, too, because nearly every part could continue a
            // text.
            let record = PathRecord {
                cost: path.record.cost + weighed.nothing,
                is_as_requested: false,
                doubt: Doubt::Dropped,
                ..path.record.clone()
            };
            steps.push(PathStep { parts: [&path.text, "", ""], record });
            if path.record.doubt == Doubt::Dropped && !joint.has_grammar() {
                continue;
            }
            let cheapest = weighed.costs.iter().copied().fold(f64::INFINITY, f64::min);
            let is_settled = |index: usize| weighed.is_settled() && weighed.best == index;
            for (index, (survivor, cost)) in survivors.iter().zip(&weighed.costs).enumerate() {
                if *cost > cheapest + MAX_EXTRA_COST_BITS {
                    continue;
                }
                let candidate = &survivor.candidate;
                let is_whole = survivor::is_whole(&joint, candidate);
                let mut seams = path.record.seams.clone();
                seams.push(survivor::seam(&joint, candidate, 0.0, 0));
                let is_expected = candidate.is_as_requested(&joint) && !survivor.has_dropped_remark;
                let doubt = doubt(&joint, survivor, is_settled(index), &weighed);
                let record = PathRecord {
                    is_whole,
                    seams,
                    cost: path.record.cost + cost - if is_last || is_whole { 0.0 } else { UNFINISHED_COST },
                    is_as_requested: path.record.is_as_requested && is_expected,
                    doubt: path.record.doubt.max(doubt),
                    signs: path.record.signs_with(&joint, survivor),
                };
                steps.push(PathStep { parts: survivor::parts(&joint, candidate), record });
            }
        }
        paths = likeliest_paths(steps, format);
        if paths.iter().all(|path| path.record.doubt == Doubt::Dropped) {
            return None;
        }
    }
    choose_path(paths, format, from)
}

/// Returns the doubt about one seam. In JSON, a seam in a string is a guess if it removes one or two
/// letters as a repetition or adds whitespace. So is a seam between two words that may be equal neighbours.
/// Without a grammar, a seam is a guess if it adds or removes unproven whitespace, removes a period of the
/// text as a repetition, or omits the whole continuation.
fn doubt(joint: &Joint<'_>, survivor: &Survivor, is_settled: bool, weighed: &SupportedValue) -> Doubt {
    let own = &survivor.candidate;
    let begins_anew = joint.has_grammar() && joint.initial[own.keep - own.repeated_bytes..].starts_with('"');
    let repeats = |most: usize| (1..most).contains(&own.repeated_bytes) && !begins_anew;
    let is_slight =
        repeats(decision::MAX_SMALL_OVERLAP_BYTES) || decision::has_uncertain_whitespace(joint, own);
    let is_guessed = if joint.has_grammar() {
        joint.in_text && (repeats(decision::MAX_TRIVIAL_OVERLAP_BYTES) || !own.glue.is_empty())
            || repeats(decision::MAX_SMALL_OVERLAP_BYTES) && doubts::may_be_neighbours(joint, survivor)
    } else {
        own.style == SeamStyle::Whitespace && !is_settled
            || weighed.is_likelier_unrelated
            || plain::is_guessed(joint, own)
            || joint.is_periodic(own.repeated_bytes)
            || plain::adds_nothing(joint, survivor)
    };
    match (is_guessed || super::may_be_reasoning(joint, survivor), is_slight) {
        (true, _) => Doubt::Guessed,
        (_, true) => Doubt::Slight,
        _ => Doubt::None,
    }
}

/// Returns the likeliest paths, best first. Of paths with the same value, it keeps the one with the least
/// doubt.
fn likeliest_paths(mut steps: Vec<PathStep<'_>>, format: &Format) -> Vec<Path> {
    let reading =
        if matches!(format, Format::Json | Format::Jsonl) { Reading::Structure } else { Reading::Plain };
    steps.sort_by(|left, right| left.record.cost.total_cmp(&right.record.cost));
    let least = steps.first().map_or(0.0, |step| step.record.cost);
    let mut known = Vec::new();
    let mut found: Vec<Path> = Vec::new();
    for PathStep { parts, record } in
        steps.into_iter().take_while(|step| step.record.cost <= least + MAX_EXTRA_COST_BITS)
    {
        let text = parts.concat();
        let value = text_identity(&text, reading);
        match known.iter().position(|other| *other == value) {
            Some(same) if record.doubt < found[same].record.doubt => {
                let cost = found[same].record.cost;
                found[same] = Path { text, record: PathRecord { cost, ..record } };
            }
            None if found.len() < MAX_PATHS => {
                known.push(value);
                found.push(Path { text, record });
            }
            Some(_) | None => {}
        }
    }
    found
}

/// Whether these parts form a whole text.
fn is_whole(parts: &[&str], format: &Format) -> bool {
    let mut detector = Detector::new(format);
    for part in parts {
        detector.push(part.as_bytes());
    }
    detector.is_whole()
}

fn choose_path(paths: Vec<Path>, format: &Format, from: AskedFrom) -> Option<ChainResult> {
    let weight_of = |paths: &[Path]| paths.iter().map(|path| weight(path.record.cost)).sum::<f64>();
    let (left_out, mut paths): (Vec<_>, Vec<_>) =
        paths.into_iter().partition(|path| path.record.doubt == Doubt::Dropped);
    let nothing = weight_of(&left_out);
    let has_grammar = matches!(format, Format::Json | Format::Jsonl);
    let asked_is_whole = from == AskedFrom::Cut
        && paths.iter().skip(1).any(|path| path.record.is_as_requested && path.record.is_whole);
    let alternatives = paths.len().saturating_sub(1);
    if paths.is_empty() {
        return None;
    }
    let Path { text, record: mut best } = paths.swap_remove(0);
    let (own, others) = (weight(best.cost), weight_of(&paths));
    let rival = paths.iter().map(|path| weight(path.record.cost)).fold(0.0, f64::max);
    let ahead = SeamLead::from_weights(own, others, rival, nothing);
    // The weights were fitted on single seams. Several seams must not be more certain than their share of the
    // evidence.
    let probability = decision::probability(&best.signs, ahead).min(own / (own + others + nothing));
    // Without a grammar, every text counts as whole. So a removed wrapper (an announcement or a fence) is no
    // evidence against a path, but text removed within it is.
    let is_wrapper = |style| {
        matches!(
            style,
            SeamStyle::Exact
                | SeamStyle::Preamble
                | SeamStyle::Fence
                | SeamStyle::Quotation
                | SeamStyle::Remark
        )
    };
    let is_shortened = !best.seams.iter().all(|seam| is_wrapper(seam.style));
    for seam in &mut best.seams {
        (seam.confidence, seam.alternatives) = (probability, alternatives);
    }
    let is_asked = best.is_as_requested && from == AskedFrom::Cut;
    let cost = match is_asked {
        true => decision::COST_OF_WRONG_AS_ASKED,
        false if best.doubt == Doubt::Slight => decision::COST_OF_WRONG_ONCE_SENT,
        false => decision::COST_OF_WRONG,
    };
    Some(ChainResult {
        is_settled: decision::is_sufficient(probability, cost)
            && !ahead.may_be_nothing()
            && !(asked_is_whole && (has_grammar || is_shortened))
            && best.doubt < Doubt::Guessed,
        text,
        is_whole: best.is_whole,
        seams: best.seams,
    })
}

/// Returns the paths after a part that is only whitespace. Between tokens, it has no effect. In text, it is
/// kept if the cut was requested. Otherwise, it may be kept or removed.
fn paths_after_space<'p>(
    path: &'p Path,
    space: &'p str,
    format: &Format,
    from: AskedFrom,
) -> Vec<PathStep<'p>> {
    let joint = Joint::new(&path.text, space, format, from);
    let is_content =
        !space.is_empty() && (!joint.has_grammar() || joint.in_text && !space.contains(['\n', '\r']));
    let step = |added: &'p str, seam: Seam, cost: f64, is_whole: bool| {
        let mut record = PathRecord { is_whole, ..path.record.clone() };
        record.seams.push(seam);
        record.cost += cost;
        PathStep { parts: [&path.text, "", added], record }
    };
    let mut found = Vec::new();
    if is_content {
        let style = SeamStyle::Exact;
        let seam = Seam { style, dropped_bytes: 0, dropped: String::new(), ..empty_seam(path, space) };
        found.push(step(space, seam, 0.0, is_whole(&[&path.text, space], format)));
    }
    if !is_content || from != AskedFrom::Cut {
        let cost = if is_content { WHITESPACE_REMOVAL_BITS } else { 0.0 };
        found.push(step("", empty_seam(path, space), cost, path.record.is_whole));
    }
    found
}

fn empty_seam(path: &Path, continuation: &str) -> Seam {
    Seam {
        at: path.text.len(),
        style: SeamStyle::Whitespace,
        dropped_bytes: continuation.len(),
        dropped: dropped_beginning([continuation]),
        confidence: 1.0,
        alternatives: 0,
    }
}
