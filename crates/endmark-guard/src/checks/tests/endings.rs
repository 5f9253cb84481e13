use super::{failed_checks, judge, names};
use crate::Verdict;

const PRECEDING_TEXT: &str = "# Report\n\nThe first part of the work is done and all of it is tested.\n\nThe second part of the work is done and all of it is tested.\n\n\
                      The third part of the work is done and all of it is tested.\n\n";

#[test]
fn a_text_that_stops_in_mid_sentence_is_truncated() {
    for (last, check) in [
        ("The fourth part needs more work in the", "mid_sentence"),
        ("The fourth part needs more work on its parser before it", "mid_sentence"),
        ("The following has to be done first:", "mid_sentence"),
        ("The fourth part (see the notes", "mid_sentence"),
        ("The fourth part is in [the notes](https://exam", "mid_sentence"),
        ("- one\n- two, and then,", "mid_sentence"),
        ("**Warn", "mid_sentence"),
        ("![the notes](", "mid_sentence"),
        ("Die Analyse zeigt, dass der Parser und", "mid_sentence"),
        ("```rust\nfn main() {", "open_fence"),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n| 3 |", "open_table"),
        ("- **Cause**: a lock.\n- **Fix**:", "mid_sentence"),
        ("1. One.\n2. Two.\n3.", "mid_sentence"),
        ("- The fourth part, and its sec", "mid_sentence"),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n| 3", "open_table"),
        ("| a | b |\n|---|---|", "open_table"),
        ("| a | b |", "open_table"),
    ] {
        let report = judge(&format!("{PRECEDING_TEXT}{last}"));
        let names: Vec<&str> = report.findings().iter().map(|finding| finding.check.name()).collect();
        assert_eq!((report.verdict(), names), (Verdict::Truncated, vec![check]), "{last}");
    }
}

/// The check works without another paragraph for comparison.
#[test]
fn a_single_paragraph_without_a_full_stop_is_truncated() {
    for text in
        ["The quick brown fox jumps over the laz", "# Foxes\n\nThe quick brown fox jumps over the laz\n"]
    {
        assert_eq!(names(text), ["mid_sentence"], "{text}");
    }
    for text in ["- The quick brown fox jumps over the laz", "The quick brown fox jumps over the lazy dog.\n"]
    {
        assert_eq!(names(text), [] as [&str; 0], "{text}");
    }
}

#[test]
fn a_text_with_a_proper_end_is_whole() {
    for last in [
        "That is all.",
        "MIT",
        "Licensed under MIT or Apache-2.0",
        "Ask us (or them)",
        "- one\n- two",
        "[The notes](https://example.org/a)",
        "Kim Lee, [The Notes](https://example.org/a), Journal of Notes and Papers 51 (5), 2021",
        "The cache of the fourth part holds ten items, and the eviction is LRU",
        "Use **/*.rs",
        "It takes *args and **kwargs",
        "**Version:** 3",
        "```rust\nfn main() {}\n```",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "a | b\n---|---\n1 | 2",
        "What comes next is on you!",
        "すべて完了しました。",
        "![picture](a.png)",
        "[a]: https://example.org",
        "It ends with `code`",
    ] {
        assert_eq!(failed_checks(&format!("{PRECEDING_TEXT}{last}\n")), [], "{last}");
    }
}

#[test]
fn the_last_heading_needs_content_below_it() {
    assert_eq!(names("# A\n\nWords stand here.\n\n## B\n"), ["section_empty"]);
    assert_eq!(names("# A\n\nWords stand here.\n\n## B\n\n<!-- what is it? -->\n"), ["section_empty"]);
    assert_eq!(names("# A\n\n## B\n\nWords stand here.\n"), [] as [&str; 0]);
    assert_eq!(names("# A\n"), [] as [&str; 0]);
    assert_eq!(names("# A\n\n## B\n\n## C\n"), ["section_empty"]);
}

#[test]
fn a_text_without_content_is_empty() {
    for text in ["", " \n\n", "\u{feff}", "---\na: 1\n---\n\n"] {
        let report = judge(text);
        let names: Vec<&str> = report.findings().iter().map(|finding| finding.check.name()).collect();
        assert_eq!((report.verdict(), names), (Verdict::WrappedUp, vec!["empty"]), "{text:?}");
    }
}
