//! A cursor returns its input, and anything else is an error. (EN-5)

use endmark_envelope::Pages;
use proptest::prelude::*;

proptest! {
    #[test]
    fn a_cursor_round_trips_its_key(list in ".*", filter in ".*", key in any::<(String, i64)>()) {
        let pages = Pages::of(&list).filtered_by("filter", &filter).with_items(1);
        let page = pages.page([key.clone(), key.clone()], Clone::clone).unwrap();
        prop_assert_eq!(pages.decode_cursor::<(String, i64)>(page.next_cursor.as_deref()), Ok(Some(key)));
    }

    #[test]
    fn no_text_causes_a_panic(text in "(emc[0-9]{0,3}_)?[A-Za-z0-9_-]{0,40}|\\PC*") {
        prop_assert!(Pages::of("list").decode_cursor::<String>(Some(&text)).is_err());
    }
}
