//! If a derive cannot work, its error states what to write instead.

#[test]
fn wrong_derives_do_not_compile_and_say_what_to_do() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
