//! The evidence of joined findings, none of it twice. (AR-5)

use std::collections::{BTreeSet, HashSet};
use std::ops::Bound;

/// A piece of evidence, and whether it was cut in the middle.
pub(super) type Piece<'a> = (&'a str, bool);

/// The pieces in order, without those that are there before, whose lines stand in another one, or that were cut off as the
/// beginning of another one.
pub(super) fn distinct<'a>(pieces: impl IntoIterator<Item = Piece<'a>>) -> Vec<&'a str> {
    let mut known = HashSet::new();
    let pieces: Vec<Piece<'a>> = pieces.into_iter().filter(|(text, _)| known.insert(*text)).collect();
    let texts: Vec<&str> = pieces.iter().map(|(text, _)| *text).collect();
    let beginnings = Beginnings::of(texts.iter().copied());
    let within = within_others(&texts);
    let left = pieces.into_iter().zip(within);
    let left =
        left.filter(|((text, is_cut), is_within)| !(*is_within || *is_cut && beginnings.is_of_longer(text)));
    left.map(|((text, _), _)| text).collect()
}

/// Texts, to ask what they begin with.
pub(super) struct Beginnings<'a>(BTreeSet<&'a str>);

impl<'a> Beginnings<'a> {
    pub(super) fn of(texts: impl IntoIterator<Item = &'a str>) -> Self {
        Self(texts.into_iter().collect())
    }

    /// Whether one of them begins so, or is that.
    pub(super) fn is_of_any(&self, beginning: &str) -> bool {
        // Those that begin so stand directly behind it in order.
        let mut from = self.0.range::<str, _>((Bound::Included(beginning), Bound::Unbounded));
        from.next().is_some_and(|text| text.starts_with(beginning))
    }

    /// Whether a longer one begins so.
    fn is_of_longer(&self, beginning: &str) -> bool {
        let mut from = self.0.range::<str, _>((Bound::Excluded(beginning), Bound::Unbounded));
        from.next().is_some_and(|text| text.starts_with(beginning))
    }
}

/// More pieces than these are not looked for in each other: they may be there twice, and none is lost.
const MOST_PIECES: usize = 512;

/// Whether the lines of each text stand one behind the other in another text; no two of the texts are alike.
fn within_others(texts: &[&str]) -> Vec<bool> {
    let lines: Vec<String> = texts.iter().take(MOST_PIECES).map(|text| format!("\n{text}\n")).collect();
    let is_within =
        |own: &String| lines.iter().any(|other| other.len() > own.len() && other.contains(own.as_str()));
    let within = lines.iter().map(is_within);
    within.chain(std::iter::repeat(false)).take(texts.len()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Piece, distinct};

    /// The same, each text compared with all others.
    fn simply<'a>(pieces: &[Piece<'a>]) -> Vec<&'a str> {
        let is_left_out = |at: usize, (text, is_cut): &Piece<'_>| {
            let lines: Vec<&str> = text.split('\n').collect();
            pieces[..at].iter().any(|(earlier, _)| earlier == text)
                || pieces.iter().filter(|(other, _)| other != text).any(|(other, _)| {
                    let others: Vec<&str> = other.split('\n').collect();
                    others.windows(lines.len()).any(|window| window == lines)
                        || *is_cut && other.starts_with(text)
                })
        };
        let left = pieces.iter().enumerate().filter(|(at, piece)| !is_left_out(*at, piece));
        left.map(|(_, (text, _))| *text).collect()
    }

    #[test]
    fn what_stands_in_another_one_is_left_out() {
        assert_eq!(distinct([("a\nb", false), ("b", false), ("a", true), ("a\nb", true)]), ["a\nb"]);
        assert_eq!(
            distinct([("b\nc", false), ("a\nb\nc\nd", false), ("c\nd\ne", false)]),
            ["a\nb\nc\nd", "c\nd\ne"]
        );
        // Not whole lines, and not cut.
        assert_eq!(distinct([("call(a)", false), ("call", false), ("all(a)", true)]).len(), 3);
        assert_eq!(distinct([("call(a)", false), ("call", true)]), ["call(a)"]);
    }

    proptest! {
        #[test]
        fn it_is_the_same_as_comparing_all_with_all(
            pieces in prop::collection::vec(("[ab]{1,2}(\n[ab]{0,2}){0,4}", any::<bool>()), 0..12),
        ) {
            let pieces: Vec<Piece<'_>> = pieces.iter().map(|(text, is_cut)| (text.as_str(), *is_cut)).collect();
            prop_assert_eq!(distinct(pieces.iter().copied()), simply(&pieces));
        }
    }
}
