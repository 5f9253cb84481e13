use super::*;

fn evidence<'a>(value: impl Into<ReceivedValue<'a>>, rule: &FieldRule) -> Option<Evidence> {
    detect_cut(value, rule).map(|cut| cut.evidence)
}

#[test]
fn a_value_at_a_size_limit_is_cut_and_a_shorter_one_is_not() {
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
fn a_declared_length_takes_precedence_and_is_reported() {
    let rule = FieldRule { declared_bytes: Some(9), declared_chars: Some(8), ..FieldRule::default() };
    let cut = detect_cut("abc...", &rule).unwrap();
    assert_eq!(cut.evidence, Evidence::LengthDiffers);
    assert_eq!((cut.original_bytes, cut.original_chars), (Some(9), Some(8)));
    assert_eq!(evidence("abcdefghi", &rule), None);
    let items = FieldRule { declared_items: Some(3), ..FieldRule::default() };
    assert_eq!(detect_cut(&serde_json::json!([1]), &items).unwrap().original_items, Some(3));
}

#[test]
fn a_matching_declared_length_proves_the_value_whole() {
    let rule = FieldRule { declared_bytes: Some(6), max_bytes: Some(6), ..FieldRule::default() };
    assert_eq!(evidence("abcdef", &rule), None);
    assert_eq!(evidence("abc...", &rule), None);
    let rule = FieldRule { declared_chars: Some(3), max_chars: Some(3), max_bytes: Some(4), ..rule };
    assert_eq!(evidence("ééé", &rule), None);
    // One of two declared sizes that differs is enough.
    assert_eq!(evidence("abc", &rule), Some(Evidence::LengthDiffers));
    let rule = FieldRule { declared_items: Some(2), max_items: Some(2), ..FieldRule::default() };
    assert_eq!(evidence(&serde_json::json!([1, 2]), &rule), None);
    assert_eq!(evidence(&serde_json::json!([1]), &rule), Some(Evidence::LengthDiffers));
    // A page token takes precedence, because the declared number often counts only the current page.
    let rule = FieldRule { has_page_token: true, ..rule };
    assert_eq!(evidence(&serde_json::json!([1, 2]), &rule), Some(Evidence::PageTokenWithoutPage));
}

#[test]
fn half_a_character_is_a_cut_despite_the_declared_length() {
    let rule = FieldRule { declared_bytes: Some(4), ..FieldRule::default() };
    assert_eq!(evidence(b"caf\xc3".as_slice(), &rule), Some(Evidence::IncompleteUtf8));
    assert_eq!(evidence("a\u{fffd}", &rule), Some(Evidence::IncompleteUtf8));
}

#[test]
fn a_value_longer_than_declared_has_an_unknown_original() {
    let rule = FieldRule { declared_bytes: Some(3), declared_chars: Some(3), ..FieldRule::default() };
    let cut = detect_cut("abc...", &rule).unwrap();
    assert_eq!((cut.evidence, cut.original_bytes, cut.original_chars), (Evidence::Marker, None, None));
}

#[test]
fn only_incomplete_utf8_at_the_end_is_a_cut() {
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
fn an_unusable_page_token_is_a_cut() {
    let rule = FieldRule { has_page_token: true, ..FieldRule::default() };
    assert_eq!(evidence(&serde_json::json!([]), &rule), Some(Evidence::PageTokenWithoutPage));
    assert_eq!(evidence("text", &rule), None);
}

#[test]
fn an_exact_value_is_never_a_cut() {
    let rule = FieldRule { max_bytes: Some(1), declared_bytes: Some(99), ..FieldRule::exact() };
    assert_eq!(detect_cut("cut …", &rule), None);
}
