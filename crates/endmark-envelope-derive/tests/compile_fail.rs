//! If a derive cannot work, its error states what to write instead.

#[test]
fn invalid_derives_fail_with_a_helpful_message() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
