//! The evidence of joined findings, none of it twice. (AR-5)

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Bound;

/// A piece of evidence, and whether it was cut in the middle.
pub(super) type Piece<'a> = (&'a str, bool);

/// The pieces in order, without those that are there before, whose lines stand in another one, or that were cut off as the
/// beginning of another one. Runs in time linear in their lines, but for sorting them.
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

/// Whether the lines of each text stand one behind the other in another text; no two of the texts are alike.
///
/// The texts are put into a tree, a line a step, and each place of it is linked with the longest other one that the way to it
/// ends with (Aho and Corasick): what ends at such a place stands in what goes on from here.
fn within_others(texts: &[&str]) -> Vec<bool> {
    let mut tree = Tree::default();
    let ends: Vec<usize> = texts.iter().map(|text| tree.insert(text)).collect();
    let mut is_end = vec![false; tree.steps.len()];
    for end in &ends {
        is_end[*end] = true;
    }
    let mut by_depth: Vec<usize> = (1..tree.steps.len()).collect();
    by_depth.sort_by_key(|at| tree.steps[*at].depth);
    let mut links = vec![0; tree.steps.len()];
    // The longest text that the way to each place ends with, besides the way itself; 0 where there is none.
    let mut nearest = vec![0; tree.steps.len()];
    let mut is_within = vec![false; tree.steps.len()];
    for at in by_depth {
        let Step { from, line, depth } = tree.steps[at];
        if depth > 1 {
            let mut link = links[from];
            while link != 0 && !tree.next.contains_key(&(link, line)) {
                link = links[link];
            }
            links[at] = tree.next.get(&(link, line)).copied().unwrap_or_default();
        }
        nearest[at] = if is_end[links[at]] { links[at] } else { nearest[links[at]] };
        is_within[nearest[at]] = true;
        // What goes on behind its end is the beginning of another one.
        is_within[from] = true;
    }
    ends.into_iter().map(|end| is_within[end]).collect()
}

/// Texts with the same first lines are one way as far as they are alike; its root is 0.
struct Tree<'a> {
    lines: HashMap<&'a str, usize>,
    steps: Vec<Step>,
    next: HashMap<(usize, usize), usize>,
}

/// How a place of the tree is come to.
#[derive(Clone, Copy, Default)]
struct Step {
    from: usize,
    line: usize,
    depth: usize,
}

impl Default for Tree<'_> {
    fn default() -> Self {
        Self { lines: HashMap::new(), steps: vec![Step::default()], next: HashMap::new() }
    }
}

impl<'a> Tree<'a> {
    /// Answers where the text ends.
    fn insert(&mut self, text: &'a str) -> usize {
        let mut at = 0;
        for (line, depth) in text.split('\n').zip(1..) {
            let number = self.lines.len();
            let line = *self.lines.entry(line).or_insert(number);
            let steps = &mut self.steps;
            at = *self.next.entry((at, line)).or_insert_with(|| {
                steps.push(Step { from: at, line, depth });
                steps.len() - 1
            });
        }
        at
    }
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
