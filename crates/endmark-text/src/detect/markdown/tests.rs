use super::*;

/// Returns the open construct of `text` and its start. Checks that chunking does not change the result.
#[track_caller]
fn open_construct(text: &str) -> Option<(String, usize)> {
    let mut single_bytes = MarkdownMachine::default();
    for byte in text.bytes() {
        single_bytes.push(&[byte]);
    }
    for split in 0..=text.len() {
        let mut machine = MarkdownMachine::default();
        machine.push(&text.as_bytes()[..split]);
        machine.push(&text.as_bytes()[split..]);
        assert_eq!(machine.verdict(), single_bytes.verdict(), "{text:?} split at {split}");
        assert_eq!(machine.is_whole(), machine.verdict().is_whole(), "{text:?} split at {split}");
    }
    let verdict = single_bytes.verdict();
    let truncation = verdict.truncation()?;
    Some((truncation.open.iter().next()?.opener().into_owned(), truncation.balanced_index))
}

#[track_caller]
fn check(cases: &[(&str, Option<(&str, usize)>)]) {
    for (text, expected) in cases {
        assert_eq!(open_construct(text), expected.map(|(sign, start)| (sign.to_owned(), start)), "{text:?}");
    }
}

#[test]
fn a_fence_is_open_until_its_closing_line() {
    check(&[
        ("```\ncode", Some(("```", 0))),
        ("```", Some(("```", 0))),
        ("Text\n```rust", Some(("```", 5))),
        ("```\ncode\n```", None),
        ("```\ncode\n```\n", None),
        ("```\ncode\n``", Some(("```", 0))),
        ("```\ncode\n`````  ", None),
        ("````\n```\n", Some(("````", 0))),
        ("```\n~~~\n", Some(("```", 0))),
        ("~~~ a `b`\n", Some(("~~~", 0))),
        ("``` a `b`\n", None),
        ("``` a``", None),
        ("```\ncode\n``` rust\n", Some(("```", 0))),
        ("   ```\ncode\n   ```\n", None),
        ("    ```\ncode", None),
        ("```\n    ```\n", Some(("```", 0))),
        ("Text\n    ```\n", None),
        ("\t```\n", None),
        ("`` `x ``", None),
        ("\u{FEFF}```\r\ncode\r\n", Some(("```", 3))),
        ("```\rcode\r```", None),
    ]);
}

#[test]
fn fences_are_found_in_quotations_and_lists() {
    check(&[
        ("> ```\n> code", Some(("```", 0))),
        ("> ```\n> code\n> ```\n", None),
        ("> ```\ntext", None),
        (">```\n>\n> a", Some(("```", 0))),
        ("- ```\n  code", Some(("```", 0))),
        ("- ```\n  code\n  ```\n", None),
        ("- ```\n\n  code", Some(("```", 0))),
        ("1. Do:\n\n   ```sh\n   ls", Some(("```", 8))),
        ("10) Do:\n    ```sh\n    ls\n    ```", None),
        ("- a\n  - b\n    ```\n    x", Some(("```", 10))),
        ("- a\n\n      ```\n", None),
        ("-     ```\n", None),
        ("> - > ~~~\n> - > x\n", None),
        ("> - > ~~~\n>   > x\n", Some(("~~~", 0))),
        ("* * *\n```\n", Some(("```", 6))),
        ("- - -\n    ```\n", None),
        ("-\n  ```\n  x", Some(("```", 2))),
        ("-\n\n  ```\n", Some(("```", 3))),
        ("\t- ```\n", None),
        ("-\t```\n\tx", Some(("```", 0))),
    ]);
}

#[test]
fn a_fence_that_ends_with_its_container_is_uncertain() {
    check(&[
        // By the specification, the last line opens another fence. Its author meant to close the one in the
        // list.
        ("1. Do:\n   ```sh\nls\n   ```\nText", None),
        ("1. Do:\n   ```sh\nls\n```\nText\n", None),
        ("1. Do:\n   ```sh\nls\n```\n\n```sh\nls", Some(("```", 24))),
        ("1. Do:\n   ```sh\nls\n```\n\n```sh\nls\n```\n", None),
        ("<div>\n```sh\n\nls\n```\n</div>\n", None),
        ("<div>\n```sh\nls\n```\n</div>\n\n```\n", Some(("```", 27))),
    ]);
}

#[test]
fn html_blocks_end_by_their_own_rules() {
    check(&[
        ("<!-- note", Some(("<!--", 0))),
        ("Text\n<!-- note\n\nmore", Some(("<!--", 5))),
        ("<!-- note -->", None),
        ("<!-->\n", None),
        ("<!-- note --\n> -->\n", None),
        ("Text <!-- note", None),
        ("    <!-- note", None),
        ("<?php\n\necho 1;", Some(("<?", 0))),
        ("<?php echo 1; ?>", None),
        ("<!DOCTYPE html\n\n", Some(("<!", 0))),
        ("<![CDATA[ ]] >\n", Some(("<![CDATA[", 0))),
        ("<![CDATA[ x ]]>\n", None),
        ("<script>\n\nlet a;", Some(("<script>", 0))),
        ("<PRE\n", Some(("<pre>", 0))),
        ("<pre>\n\n</pre>", None),
        ("<style>a</stylex></style", Some(("<style>", 0))),
        ("<pre", Some(("<pre>", 0))),
        ("<!", None),
        ("<preface>\n\n", None),
        ("<div>\n```\n", None),
        ("<div>\n\n```\n", Some(("```", 7))),
        ("<a href=\"x\">\n```\n", None),
        ("<a href=\"x\"> y\n```\n", Some(("```", 15))),
        ("Text\n<a>\n```\n", Some(("```", 9))),
        ("</b >\n```\n", None),
        ("- <!-- x\n\ntext", None),
        ("- <!-- x\n\n  text", Some(("<!--", 0))),
    ]);
}

#[test]
fn a_destination_is_open_until_its_bracket() {
    check(&[
        ("See [the page](http", Some(("[", 4))),
        ("See [the page](", Some(("[", 4))),
        ("See [the page]", None),
        ("See [the page](http://a.b/c)", None),
        ("See [the page](http://a.b/c_(d)", Some(("[", 4))),
        ("See [the page](<a b", Some(("[", 4))),
        ("See [the page](<a b>", Some(("[", 4))),
        ("See [the page](a \"title", Some(("[", 4))),
        ("See [the page](a \"title\")", None),
        ("[![badge](a.svg)](http", Some(("[", 0))),
        ("[![badge](a.s", Some(("[", 2))),
        ("![](a.p", Some(("[", 1))),
        ("auto f = [](int x", None),
        ("`[a](b", None),
        ("`x` [a](b", Some(("[", 4))),
        ("\\[a](b", None),
        ("[a\\](b", None),
        ("[a](b\n\ntext", None),
        ("[a](b c", None),
        ("# [a](b", Some(("[", 2))),
        ("# [a](b\ntext", None),
        ("> - [a](b", Some(("[", 4))),
        ("    [a](b", None),
        ("[a](b\n```\nx\n```\n", None),
    ]);
}

#[test]
fn the_last_row_of_a_table_ends_like_the_others() {
    let table = "| a | b |\n|---|---|\n| 1 | 2 |\n";
    let with = |row: &str| open_construct(&format!("{table}{row}"));
    let row = Some(("|".to_owned(), table.len()));
    assert_eq!(with(""), None);
    assert_eq!(with("|"), row);
    assert_eq!(with("| 3"), row);
    assert_eq!(with("| 3 |"), row);
    assert_eq!(with("| 3 |\n"), None);
    assert_eq!(with("| 3 |\n| 4 |"), None, "not all others are full");
    assert_eq!(with("| 3 | 4 |"), None);
    assert_eq!(with("| 3 | 4 | 5 |"), None);
    assert_eq!(with("| 3 | 4 \\|"), row);
    assert_eq!(with("| 3 | 4 |  "), None);
    assert_eq!(with("| 3 | 4\n"), None);
    assert_eq!(with("Text"), None);
    assert_eq!(with("\nText | a"), None);
    assert_eq!(with("- | a"), None);
    check(&[
        ("| a | b |\n|---|--", None),
        ("| a | b |\n|---|\n| 1", None),
        ("a | b\n--|--\n1 | 2", None),
        ("a | b |\n--|--|\n1 | 2", Some(("|", 15))),
        ("a | b |\n--|--|\nText", None),
        ("| a |\n| - |\n| 1", Some(("|", 12))),
        ("> | a |\n> | :-: |\n> | 1", Some(("|", 18))),
        ("a\n---\n| 1", None),
    ]);
}

#[test]
fn a_cut_within_a_character_is_reported_before_the_open_construct() {
    for (text, in_token) in [
        (&b"```\nx"[..], "code"),
        (b"<!-- x", "comment"),
        (b"<![CDATA[x", "cdata"),
        (b"<?x", "instruction"),
        (b"<!x", "declaration"),
        (b"<pre>", "html"),
        (b"[a](b", "link"),
        (b"| a |\n|-|\n| 1", "row"),
        (b"```\nx\xC3", "utf8"),
        (b"x\xC3", "utf8"),
    ] {
        let mut machine = MarkdownMachine::default();
        machine.push(text);
        let verdict = machine.verdict();
        assert_eq!(verdict.truncation().unwrap().in_token.unwrap().name(), in_token, "{text:?}");
    }
}

#[test]
fn only_prose_gets_the_mid_sentence_hint() {
    for (text, hinted) in [
        ("The result of this is not at all what we", true),
        ("```text\nThe result of this is not at all what we", false),
        ("<!-- The result of this is not at all what we", false),
        ("```\nx\n```\nThe result of this is not at all what we", true),
        ("- an item\n\nThe result of this is not at all what we\n", true),
        ("- The result of this is not at all what we", false),
        ("- an item\n\n  The result of this is not at all what we", false),
        ("> The result of this\nis not at all what we thought of", false),
        ("# The result of this is not at all what we", false),
        ("The result of this is not at all what we\n===", false),
        ("The result of this is not at all what we\n---\n", false),
        ("    The result of this is not at all what we", false),
        ("a | The result of this is not at all what we\n---|---\nb | c", false),
    ] {
        let mut machine = MarkdownMachine::default();
        machine.push(text.as_bytes());
        assert_eq!(machine.hint().is_some(), hinted, "{text:?}");
    }
}

#[test]
fn deep_containers_and_many_lines_take_linear_time() {
    let deep_list = format!("{}{}", "- ".repeat(100_000), "\n".repeat(200_000));
    let mut machine = MarkdownMachine::default();
    machine.push(deep_list.as_bytes());
    machine.push("> ".repeat(100_000).as_bytes());
    machine.push(format!("{}```\n{}", "\n>".repeat(100_000), "[".repeat(100_000)).as_bytes());
    assert!(machine.is_whole());
    machine.push(b"\n~~~\n");
    assert!(!machine.is_whole());
}

mod html_lines;
mod lines;
mod links;
mod tables;
