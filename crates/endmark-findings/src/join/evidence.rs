//! Joins the texts and unknown fields of findings without repetition. (AR-5)

use std::collections::{HashMap, HashSet};

use crate::finding::{Finding, OtherField};

/// A text, and whether its finding was cut.
pub(crate) type Piece<'a> = (&'a str, bool);

/// The maximum number of pieces that are compared. Further ones may repeat others, but none is lost.
const MAX_PIECES: usize = 512;

/// Joins the distinct texts with semicolons. Returns `None` if there are no texts.
pub(crate) fn join_text<'a>(pieces: impl IntoIterator<Item = Piece<'a>>) -> Option<String> {
    let distinct = distinct_pieces(pieces);
    (!distinct.is_empty()).then(|| distinct.join("; "))
}

/// Returns the pieces in order, without repetitions. Also drops a piece whose lines occur together in another one, and
/// a cut piece that another one starts with.
pub(crate) fn distinct_pieces<'a>(pieces: impl IntoIterator<Item = Piece<'a>>) -> Vec<&'a str> {
    let mut known = HashSet::new();
    let pieces: Vec<Piece<'a>> = pieces.into_iter().filter(|(text, _)| known.insert(*text)).collect();
    let lines: Vec<String> = pieces.iter().take(MAX_PIECES).map(|(text, _)| format!("\n{text}\n")).collect();
    let is_contained = |own: &String, is_cut: bool| {
        let cut_line = &own[..own.len() - 1];
        let mut longer = lines.iter().filter(|other| other.len() > own.len());
        longer.any(|other| other.contains(own.as_str()) || is_cut && other.starts_with(cut_line))
    };
    let contained = lines.iter().zip(&pieces).map(|(own, (_, is_cut))| is_contained(own, *is_cut));
    let within = contained.chain(std::iter::repeat(false));
    let remaining = pieces.iter().zip(within).filter(|(_, is_within)| !is_within);
    remaining.map(|((text, _), _)| *text).collect()
}

/// Joins the unknown fields of several findings. The flag of a field states whether its finding was cut. The result
/// contains each name once, with all its distinct values.
pub(crate) fn join_fields<'f>(fields: impl IntoIterator<Item = (&'f OtherField, bool)>) -> Vec<OtherField> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut joined: Vec<(&OtherField, Vec<Piece<'_>>)> = Vec::new();
    for (field, is_cut) in fields {
        let place = *places.entry(&field.name).or_insert(joined.len());
        if place == joined.len() {
            joined.push((field, Vec::new()));
        }
        joined[place].1.push((&field.value, is_cut));
    }
    let written = joined.into_iter().map(|(field, values)| {
        let value = if values.iter().any(|(value, _)| value.contains('\n')) {
            distinct_pieces(values).join("\n")
        } else {
            // Split values that were joined before, so that joining them again repeats nothing.
            let pieces =
                values.iter().flat_map(|(value, is_cut)| value.split("; ").map(|piece| (piece, *is_cut)));
            distinct_pieces(pieces).join("; ")
        };
        OtherField { value, ..field.clone() }
    });
    written.collect()
}

/// The field for the titles of joined findings.
pub(crate) const ALSO_TITLED: &str = "also_titled";

/// Adds the titles of the findings that were joined with this one.
pub(crate) fn add_titles(finding: &mut Finding, titles: &[String]) {
    if !titles.is_empty() {
        let titles = OtherField { name: ALSO_TITLED.to_owned(), value: titles.join("; "), after: "" };
        finding.other = join_fields(finding.other.iter().chain([&titles]).map(|field| (field, false)));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Piece, distinct_pieces};

    /// Reference implementation that compares each text with all others.
    fn naive_distinct_pieces<'a>(pieces: &[Piece<'a>]) -> Vec<&'a str> {
        let is_dropped = |at: usize, (text, is_cut): &Piece<'_>| {
            let lines: Vec<&str> = text.split('\n').collect();
            pieces[..at].iter().any(|(earlier, _)| earlier == text)
                || pieces.iter().filter(|(other, _)| other != text).any(|(other, _)| {
                    let others: Vec<&str> = other.split('\n').collect();
                    others.windows(lines.len()).any(|window| window == lines)
                        || *is_cut && other.starts_with(text)
                })
        };
        let left = pieces.iter().enumerate().filter(|(at, piece)| !is_dropped(*at, piece));
        left.map(|(_, (text, _))| *text).collect()
    }

    #[test]
    fn contained_evidence_is_dropped() {
        assert_eq!(distinct_pieces([("a\nb", false), ("b", false), ("a", true), ("a\nb", true)]), ["a\nb"]);
        assert_eq!(
            distinct_pieces([("b\nc", false), ("a\nb\nc\nd", false), ("c\nd\ne", false)]),
            ["a\nb\nc\nd", "c\nd\ne"]
        );
        // A piece that is neither whole lines nor cut is kept.
        assert_eq!(distinct_pieces([("call(a)", false), ("call", false), ("all(a)", true)]).len(), 3);
        assert_eq!(distinct_pieces([("call(a)", false), ("call", true)]), ["call(a)"]);
    }

    proptest! {
        #[test]
        fn distinct_pieces_equals_the_naive_comparison(
            pieces in prop::collection::vec(("[ab]{1,2}(\n[ab]{0,2}){0,4}", any::<bool>()), 0..12),
        ) {
            let pieces: Vec<Piece<'_>> = pieces.iter().map(|(text, is_cut)| (text.as_str(), *is_cut)).collect();
            prop_assert_eq!(distinct_pieces(pieces.iter().copied()), naive_distinct_pieces(&pieces));
        }
    }
}
