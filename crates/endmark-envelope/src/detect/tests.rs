use super::*;

fn evidence<'a>(value: impl Into<Received<'a>>, rule: &FieldRule) -> Option<Evidence> {
    detect_cut(value, rule).map(|cut| cut.evidence)
}

#[test]
fn a_size_that_is_reached_is_a_cut_and_one_less_is_not() {
    let bytes = FieldRule { max_bytes: Some(5), ..FieldRule::default() };
    assert_eq!(evidence("abcd", &bytes), None);
    assert_eq!(evidence("abcde", &bytes), Some(Evidence::SizeReached));
    assert_eq!(evidence("ééé", &bytes), Some(Evidence::SizeReached));
    let chars = FieldRule { max_chars: Some(3), ..FieldRule::default() };
    assert_eq!(evidence("éé", &chars), None);
    assert_eq!(evidence("ééé", &chars), Some(Evidence::SizeReached));
    let items = FieldRule { max_items: Some(2), ..FieldRule::default() };
    assert_eq!(evidence(&serde_json::json!([1]), &items), None);
    assert_eq!(evidence(&serde_json::json!([1, 2]), &items), Some(Evidence::SizeReached));
}

#[test]
fn a_declared_length_is_the_surest_and_is_reported() {
    let rule = FieldRule { declared_bytes: Some(9), declared_chars: Some(8), ..FieldRule::default() };
    let cut = detect_cut("abc...", &rule).unwrap();
    assert_eq!(cut.evidence, Evidence::LengthDiffers);
    assert_eq!((cut.original_bytes, cut.original_chars), (Some(9), Some(8)));
    assert_eq!(evidence("abcdefghi", &rule), None);
    let items = FieldRule { declared_items: Some(3), ..FieldRule::default() };
    assert_eq!(detect_cut(&serde_json::json!([1]), &items).unwrap().original_items, Some(3));
}

#[test]
fn incomplete_utf8_is_a_cut_and_invalid_utf8_in_the_middle_is_not() {
    let rule = FieldRule::default();
    let of = |bytes: &[u8]| evidence(bytes, &rule);
    assert_eq!(of("añ".as_bytes()), None);
    assert_eq!(of(&"añ".as_bytes()[..2]), Some(Evidence::IncompleteUtf8));
    assert_eq!(of(&"😀".as_bytes()[..3]), Some(Evidence::IncompleteUtf8));
    assert_eq!(of(b"a\xffb"), None);
    assert_eq!(of(b"a\xffb\xe2\x82"), Some(Evidence::IncompleteUtf8));
    assert_eq!(evidence("a\u{fffd}", &rule), Some(Evidence::IncompleteUtf8));
    assert_eq!(evidence("a\u{fffd}b", &rule), None);
}

#[test]
fn a_token_for_a_page_that_nobody_can_turn_is_a_cut() {
    let rule = FieldRule { has_page_token: true, ..FieldRule::default() };
    assert_eq!(evidence(&serde_json::json!([]), &rule), Some(Evidence::PageTokenWithoutPage));
    assert_eq!(evidence("text", &rule), None);
}

#[test]
fn what_is_exact_is_never_a_cut() {
    let rule = FieldRule { max_bytes: Some(1), declared_bytes: Some(99), ..FieldRule::exact() };
    assert_eq!(detect_cut("cut …", &rule), None);
}
