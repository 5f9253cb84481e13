//! Tests which lines form a table, and when its last row is incomplete.

use super::{check, open_construct};

/// Whether `head` and `delimiter` begin a table. If so, the next row must end like both of them.
fn is_table(head: &str, delimiter: &str) -> bool {
    open_construct(&format!("{head}\n{delimiter}\n| 1")).is_some()
}

#[test]
fn a_delimiter_row_has_as_many_cells_as_the_head() {
    for delimiter in [
        "|-|-|",
        "|--|--|",
        "| - | - |",
        "|:-|-:|",
        "|:-:|:--:|",
        "| :-: |\t-- |",
        "|-|-|  ",
        "  |-|-|",
        "-|-|",
        ":-|-:|",
    ] {
        assert!(is_table("| a | b |", delimiter), "{delimiter:?}");
    }
    for delimiter in [
        "|-|",
        "|-|-|-|",
        "|-|-",
        "|-|x|",
        "|- -|-|",
        "|:|-|",
        "|::-|-|",
        "|-::|-|",
        "|-:-|-|",
        "||-|",
        "|-||",
        "|=|=|",
        "|-|\\-|",
        "|",
        "||",
        "| | |",
        "|-|:|",
        "x|-|-|",
        "|-|-|x",
        "    |-|-|x",
    ] {
        assert!(!is_table("| a | b |", delimiter), "{delimiter:?}");
    }
    for head in ["| a | b |", " | a | b | ", "a | b |", "| a \\| c | b |", "| a |\\| b |"] {
        assert!(is_table(head, "|-|-|"), "{head:?}");
    }
    for head in ["| a |", "| a | b", "| a | b | c |", "| a \\| b |", "a | b", "x"] {
        assert!(!is_table(head, "|-|-|"), "{head:?}");
    }
    assert!(is_table("| a \\\\| b |", "|-|-|"), "a backslash that is itself escaped");
}

#[test]
fn the_head_of_a_table_is_the_line_before_its_delimiter_row() {
    check(&[
        ("Text\n| a |\n|-|\n| 1", Some(("|", 15))),
        ("| a |\nText\n|-|\n| 1", None),
        ("| a |\n\n|-|\n| 1", None),
        ("# | a |\n|-|\n| 1", None),
        ("> | a |\n|-|\n| 1", None),
        ("| a |\n|-|\n\n| 1", None),
        ("| a |\n|-|\n# x\n| 1", None),
        ("| a |\n|-|\n| 1 |\n|-|\n| 2", Some(("|", 20))),
        ("- | a |\n  |-|\n  | 1", Some(("|", 14))),
        ("- | a |\n  |-|\n| 1", None),
    ]);
}

#[test]
fn a_row_is_incomplete_only_if_all_earlier_rows_end_with_a_bar() {
    check(&[
        ("| a | b |\n|-|-|\n| 1 | 2", Some(("|", 16))),
        ("| a | b |\n|-|-|\n| 1 | 2 ", Some(("|", 16))),
        ("| a | b |\n|-|-|\n| 1 | 2 |", None),
        ("| a | b |\n|-|-|\n| 1 |", Some(("|", 16))),
        ("| a | b |\n|-|-|\n|", Some(("|", 16))),
        ("| a | b |\n|-|-|\n| 1 | 2 | 3", Some(("|", 16))),
        ("| a | b |\n|-|-|\n1 | 2", None),
        ("| a | b |\n|-|-|\nText", None),
        ("| a | b |\n|-|-|\n| 1 | 2\n| 3", None),
        ("| a | b |\n|-|-|\n| 1 |\n| 3 |", None),
        ("| a | b |\n|-|-|\n| 1 |\n| 3", Some(("|", 22))),
        ("| a | b |\n|-|-|\n1 | 2 |\n3 | 4", Some(("|", 24))),
        ("| a | b |\n|-|-|\n1 | 2 |\nText", None),
        ("a | b |\n-|-|\n1 | 2", Some(("|", 13))),
        ("a | b |\n-|-|\nText", None),
        ("| a | b\n|-|-\n| 1", None),
    ]);
}
