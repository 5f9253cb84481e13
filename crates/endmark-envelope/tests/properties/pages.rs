//! Reading all pages returns every item once, even while items are added. (EN-5)

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use endmark_envelope::Pages;
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

/// A sort key with two parts, like a time and an id in a table.
type Key = (u8, u16);

fn keys() -> impl Strategy<Value = BTreeSet<Key>> {
    btree_set((0..6_u8, 0..40_u16), 0..40)
}

proptest! {

    #[test]
    fn every_item_appears_exactly_once(
        there in keys(),
        added in vec(vec((0..6_u8, 0..40_u16), 0..4), 0..20),
        items in 1..7_usize,
        bytes in 0..60_usize,
    ) {
        let pages = Pages::of("list").with_items(items).with_bytes(bytes);
        let mut table: BTreeMap<Key, String> = there.iter().map(|key| (*key, format!("{key:?}"))).collect();
        let mut added = added.into_iter();
        let mut seen: Vec<Key> = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let after: Option<Key> = pages.decode_cursor(cursor.as_deref()).unwrap();
            let begin = after.map_or(Bound::Unbounded, Bound::Excluded);
            let rows = table.range((begin, Bound::Unbounded)).take(pages.rows_to_fetch());
            let page = pages.page(rows, |row| *row.0).unwrap();
            prop_assert!(page.items.len() <= items);
            prop_assert!(!page.items.is_empty() || page.next_cursor.is_none());
            seen.extend(page.items.iter().map(|row| *row.0));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
            for key in added.next().unwrap_or_default() {
                table.insert(key, "added".to_owned());
            }
        }
        let once: BTreeSet<Key> = seen.iter().copied().collect();
        prop_assert_eq!(once.len(), seen.len(), "an item came twice");
        prop_assert!(there.is_subset(&once), "an item was lost");
        prop_assert!(seen.is_sorted());
    }
}
