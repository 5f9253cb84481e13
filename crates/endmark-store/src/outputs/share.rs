//! Divides a limit among several texts.

use endmark_context::cap::{MIN_LIMIT, Unit};

/// Minimum share of a text, in the unit of the limit. A smaller excerpt would not be useful.
pub const MIN_TEXT_SHARE: usize = 4 * MIN_LIMIT;

/// Returns the size of a text in this unit.
pub fn size(text: &str, unit: Unit) -> usize {
    match unit {
        Unit::Chars => text.chars().count(),
        Unit::Bytes => text.len(),
        Unit::Tokens(count) => count(text),
    }
}

/// Returns the size to which each text must be cut, so that the total is at most `most`. Shorter texts are
/// not cut. Returns `None` if all texts fit.
pub fn fair_share(sizes: &[usize], most: usize) -> Option<usize> {
    let mut sorted = sizes.to_vec();
    sorted.sort_unstable();
    let mut room = most;
    for (index, size) in sorted.iter().enumerate() {
        let share = room / (sorted.len() - index);
        if *size > share {
            return Some(share);
        }
        room -= size;
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn short_texts_are_not_cut() {
        assert_eq!(fair_share(&[10, 1000, 2000], 1010), Some(500));
        assert_eq!(fair_share(&[10, 20], 30), None);
    }

    proptest! {
        #[test]
        fn shares_never_exceed_the_limit(sizes in prop::collection::vec(0usize..5_000, 0..40), most in 0usize..20_000) {
            let total = |share: usize| sizes.iter().map(|size| (*size).min(share)).sum::<usize>();
            match fair_share(&sizes, most) {
                None => prop_assert!(sizes.iter().sum::<usize>() <= most),
                Some(share) => prop_assert!(total(share) <= most && total(usize::MAX) > most),
            }
        }
    }
}
