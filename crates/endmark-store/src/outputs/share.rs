//! How a limit is shared by several texts.

use endmark_context::cap::{LEAST_LIMIT, Unit};

/// A text within a result is not cut below this: there would be nothing left to read.
pub const LEAST_SHARE: usize = 4 * LEAST_LIMIT;

/// The size of a text in a limit's unit.
pub fn size(text: &str, unit: Unit) -> usize {
    match unit {
        Unit::Chars => text.chars().count(),
        Unit::Bytes => text.len(),
        Unit::Tokens(count) => count(text),
    }
}

/// How much each of several texts may have, so that all of them have at most `most` together and no short one gives way to
/// a long one. None where they have no more as they are.
pub fn share(sizes: &[usize], most: usize) -> Option<usize> {
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
    fn short_texts_do_not_give_way() {
        assert_eq!(share(&[10, 1000, 2000], 1010), Some(500));
        assert_eq!(share(&[10, 20], 30), None);
    }

    proptest! {
        #[test]
        fn all_together_never_have_more(sizes in prop::collection::vec(0usize..5_000, 0..40), most in 0usize..20_000) {
            let total = |share: usize| sizes.iter().map(|size| (*size).min(share)).sum::<usize>();
            match share(&sizes, most) {
                None => prop_assert!(sizes.iter().sum::<usize>() <= most),
                Some(share) => prop_assert!(total(share) <= most && total(usize::MAX) > most),
            }
        }
    }
}
