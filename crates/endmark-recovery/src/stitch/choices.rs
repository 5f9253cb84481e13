//! Lists the possible texts of an ambiguous seam, so that a person can choose one (PC-4).

use endmark_text::{Format, Verdict};

use super::evidence::weight;
use super::joint::Joint;
use super::seam::{AskedFrom, Merged};
use super::{is_same_value, survivor, weigh_candidates};

/// Maximum number of listed texts.
const MAX_LISTED_TEXTS: usize = 4;
/// A candidate is not listed if it costs this many bits more than the best one.
const MAX_EXTRA_COST_BITS: f64 = 10.0;

/// Returns the possible texts of two parts, likeliest first, at most four. They are the choices if
/// [`merge_chunks`](super::merge_chunks) returns [`Ambiguous`](super::MergeError::Ambiguous) (PC-4).
///
/// The texts have different values, and each is whole or a valid beginning. The list is empty if the parts
/// cannot be joined.
///
/// ```
/// use endmark_recovery::stitch::{AskedFrom, candidates};
/// use endmark_text::Format;
/// let found = candidates("[1, 2", "3]", &Format::Json, AskedFrom::Unknown);
/// let texts: Vec<&str> = found.iter().map(|merged| merged.text.as_str()).collect();
/// assert_eq!(texts, ["[1, 23]", "[1, 3]"]);
/// ```
pub fn candidates(initial: &str, continuation: &str, format: &Format, from: AskedFrom) -> Vec<Merged> {
    let joint = Joint::new(initial, continuation, format, from);
    if matches!(joint.verdict, Verdict::Malformed { .. }) || joint.has_nothing_to_join() {
        return Vec::new();
    }
    let Some((survivors, weighed)) = weigh_candidates(&joint) else { return Vec::new() };
    let mut order: Vec<usize> = (0..survivors.len()).collect();
    order.sort_by(|left, right| weighed.costs[*left].total_cmp(&weighed.costs[*right]));
    // The chosen candidate comes first, even if another one costs less: a requested join wins ties.
    order.retain(|index| *index != weighed.best);
    order.insert(0, weighed.best);
    let least = weighed.costs.iter().copied().fold(f64::INFINITY, f64::min);
    let total: f64 = weighed.costs.iter().chain([&weighed.nothing]).map(|cost| weight(cost - least)).sum();
    let mut found: Vec<Merged> = Vec::new();
    for index in order {
        let cost = weighed.costs[index] - least;
        if found.len() == MAX_LISTED_TEXTS || cost > MAX_EXTRA_COST_BITS && index != weighed.best {
            continue;
        }
        let merged =
            survivor::into_merged(&joint, &survivors[index], weight(cost) / total, weighed.alternatives);
        let is_known = |other: &Merged| {
            if joint.has_grammar() {
                is_same_value(&other.text, &merged.text)
            } else {
                other.text == merged.text
            }
        };
        if !found.iter().any(is_known) {
            found.push(merged);
        }
    }
    found
}
