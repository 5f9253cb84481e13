//! Tests how a line is classified. The tests append a tag line and a fence. The fence opens only if the tag
//! did not begin an HTML block, that is, if a paragraph was still open.

use super::{check, open_construct};

/// Whether `line` ends the paragraph before it and does not begin a new one.
fn ends_paragraph(line: &str) -> bool {
    open_construct(&format!("Text\n{line}\n<a>\n```\n")).is_none()
}

#[test]
fn breaks_headings_and_blank_lines_end_a_paragraph() {
    for line in [
        "", " ", "\t", "***", "---", "___", "*****", "* * *", "- - -", "_ _ _", "*\t*\t*", "  ***", "   ***",
        "***  ", "** *", "- --", "=", "===", "=  ", "===\t", " ==", "   ===", "-", "--", "--  ", "   -", "#",
        "# ", "# x", "## x", "###### x", "###### ", "#\tx", "   # x", "# x #", "######", "* *", "* - *",
    ] {
        assert!(ends_paragraph(line), "{line:?}");
    }
    for line in [
        "x",
        "**",
        "***a",
        "*** a",
        "_",
        "__",
        "*-*",
        "==a",
        "= =",
        "=-",
        "-=",
        "- =",
        "    ===",
        "    ***",
        "\t---",
        "    # x",
        "#x",
        "####### x",
        "#######",
        "#\\",
        "x ---",
        "x\n    y",
        "*",
        "+",
        "1.",
        "1)",
        "*x",
        "-x",
        "+x",
        "1.x",
        "1 .",
        "1234567890. x",
        "2. x",
        "0. x",
        "a. x",
        "> x",
        "`` x",
        "~~ x",
        "<b>",
        "\\# x",
        "+++",
        "|||",
        "...",
    ] {
        assert!(!ends_paragraph(line), "{line:?}");
    }
}

#[test]
fn only_a_paragraph_can_be_underlined() {
    check(&[
        ("===\n<a>\n```\n", Some(("```", 8))),
        ("# x\n===\n<a>\n```\n", Some(("```", 12))),
        ("\n===\n<a>\n```\n", Some(("```", 9))),
        ("> x\n===\n<a>\n```\n", Some(("```", 12))),
        ("> x\n> ===\n<a>\n```\n", None),
        ("> x\n---\n<a>\n```\n", None),
        ("- x\n---\n<a>\n```\n", None),
        ("- x\n  ---\n  <a>\n  ```\n", None),
    ]);
}

#[test]
fn a_list_item_begins_with_its_marker_and_whitespace() {
    for marker in ["-", "+", "*", "1.", "1)"] {
        let fence = open_construct(&format!("Text\n{marker} ```\n"));
        assert_eq!(fence, Some(("```".to_owned(), 5)), "{marker} in a paragraph");
    }
    for marker in ["2.", "0)", "10.", "123456789."] {
        assert_eq!(open_construct(&format!("Text\n{marker} ```\n")), None, "{marker} in a paragraph");
        assert_eq!(open_construct(&format!("{marker} ```\n")), Some(("```".to_owned(), 0)), "{marker}");
        assert_eq!(open_construct(&format!("# x\n{marker}\t```\n")), Some(("```".to_owned(), 4)), "{marker}");
    }
    for text in [
        "-```\n",
        "1.```\n",
        "1 ```\n",
        "1234567890. ```\n",
        "a. ```\n",
        ". ```\n",
        "1.) ```\n",
        "1a. ```\n",
        "= ```\n",
    ] {
        assert_eq!(open_construct(text), None, "{text:?}");
    }
}

#[test]
fn a_list_item_contains_the_text_indented_below_it() {
    check(&[
        ("- ```\n  x", Some(("```", 0))),
        ("- ```\n x", None),
        ("-  ```\n   x", Some(("```", 0))),
        ("-  ```\n  x", None),
        ("-    ```\n     x", Some(("```", 0))),
        ("-    ```\n    x", None),
        ("10. ```\n    x", Some(("```", 0))),
        ("10. ```\n   x", None),
        (" - ```\n   x", Some(("```", 0))),
        (" - ```\n  x", None),
        ("   1) ```\n      x", Some(("```", 0))),
        ("   1) ```\n     x", None),
        // If five or more columns of white space follow the marker, only one belongs to it, and the rest is code.
        ("-     ```\n  ```\n", Some(("```", 10))),
        ("-      x\n\n  ```\n", Some(("```", 10))),
        ("- a\n\n  ```\n", Some(("```", 5))),
        ("- a\n\n     ```\n  x", Some(("```", 5))),
        ("- a\n\n      ```\n  x", None),
        // A tab extends to the next multiple of four columns.
        ("-\t```\n    x", Some(("```", 0))),
        ("-\t```\n   x", None),
        ("- a\n\n\t```\n\tx", Some(("```", 5))),
        ("1.\t```\n\tx", Some(("```", 0))),
        ("1234.\t```\n\t    x", Some(("```", 0))),
        ("1234.\t```\n\t   x", None),
        ("- \t```\n    x", Some(("```", 0))),
        (" \t```\n", None),
        ("   \t```\n", None),
        // The content of an item that begins with a blank line is indented by its marker and one space. A
        // second blank line ends the item.
        ("-\n  ```\n  x", Some(("```", 2))),
        ("-\n ```\n", Some(("```", 2))),
        ("-  \n  ```\n  x", Some(("```", 4))),
        ("-\n\n  <a>\n```\n", None),
        ("-\n\n  ```\nx", Some(("```", 3))),
        ("1.\n   ```\n   x", Some(("```", 3))),
        ("1.\n   ```\n  x", None),
        ("- a\n-\n  ```\n  x", Some(("```", 6))),
        ("- - ```\n    x", Some(("```", 0))),
        ("- - ```\n   x", None),
        ("- 1. ```\n     x", Some(("```", 0))),
        ("- a\n  - b\n    - ```\n      x", Some(("```", 10))),
        ("- a\n  - b\n    - ```\n     x", None),
    ]);
}

#[test]
fn a_quotation_ends_without_its_marker_unless_in_a_paragraph() {
    check(&[
        ("> ```\n> x", Some(("```", 0))),
        (">```\n>x", Some(("```", 0))),
        ("   > ```\n   > x", Some(("```", 0))),
        ("    > ```\n", None),
        ("> ```\nx", None),
        ("> ```\n\n", None),
        ("> ```\n    > x", None),
        (">     ```\n", None),
        (">\t```\n", Some(("```", 0))),
        (">\t\t```\n", None),
        ("> > ```\n> > x", Some(("```", 0))),
        (">> ```\n>> x", Some(("```", 0))),
        ("> > ```\n> x", None),
        ("> <!-- a\n> b", Some(("<!--", 0))),
        ("> <!-- a\nb", None),
        // A line without the marker continues the paragraph, so its tag does not begin a block.
        ("> a\n<a>\n```\n", Some(("```", 8))),
        ("> a\n> \n<a>\n```\n", None),
        ("> a\n\n<a>\n```\n", None),
        ("> # a\n<a>\n```\n", None),
        ("> - a\n<a>\n```\n", Some(("```", 10))),
        ("> - a\n> <a>\n> ```\n", Some(("```", 12))),
        ("> - a\n>\n> <a>\n> ```\n", None),
        ("- > a\n\n  <a>\n  ```\n", None),
        ("- > ```\n  > x", Some(("```", 0))),
        ("- > ```\n  x", None),
        ("- > ```\n\n  ```\n  x", None),
        ("- > ```\n\n  ```\n  x\n  ```\n", None),
    ]);
}

#[test]
fn a_fence_has_three_or_more_characters_and_closes_with_as_many() {
    check(&[
        ("``\nx", None),
        ("~~\nx", None),
        ("~~~\nx", Some(("~~~", 0))),
        ("~~~~~\nx\n~~~~\n", Some(("~~~~~", 0))),
        ("~~~~~\nx\n~~~~~\n", None),
        ("~~~~~\nx\n~~~~~~ \t\n", None),
        ("~~~\nx\n~~~ ~\n", Some(("~~~", 0))),
        ("~~~\nx\n~~~ x\n", Some(("~~~", 0))),
        ("~~~\nx\n~~~~ x", Some(("~~~", 0))),
        ("```\nx\n   ```", None),
        ("```\nx\n    ```", Some(("```", 0))),
        ("```\nx\n\t```", Some(("```", 0))),
        ("``` ` x\n", None),
        ("```x`\n", None),
        ("~~~ ` ~ x\n", Some(("~~~", 0))),
        ("``~\n", None),
        ("```~\n", Some(("```", 0))),
        ("Text\n```", Some(("```", 5))),
        ("Text ```", None),
        ("```\r\nx\r\n```\r\n<a>\r\n```\r\n", None),
        ("```\r\nx\r\n```\r\n\r\n```\r\n", Some(("```", 15))),
        ("x\r\r```\n", Some(("```", 3))),
        ("\u{FEFF}# x\n```\n", Some(("```", 7))),
        ("\u{FEFF}\u{FEFF}```\n", None),
        ("x\n\u{FEFF}```\n", None),
    ]);
}
