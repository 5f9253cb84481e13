//! Tests where the text, the destination and the title of a link end.

use super::check;

#[test]
fn a_destination_ends_at_unbalanced_parentheses() {
    check(&[
        ("[a](", Some(("[", 0))),
        ("[a]( ", Some(("[", 0))),
        ("[a](\n", Some(("[", 0))),
        ("[a](\nb", Some(("[", 0))),
        ("[a]()", None),
        ("[a]( )", None),
        ("[a](b", Some(("[", 0))),
        ("[a](b)", None),
        ("[a](b(c)", Some(("[", 0))),
        ("[a](b(c))", None),
        ("[a]((b", Some(("[", 0))),
        ("[a]((b)", Some(("[", 0))),
        ("[a]((b))", None),
        ("[a](b(c d", None),
        ("[a](b((c))", Some(("[", 0))),
        ("[a](b((c)))", None),
        ("[a](\\)", Some(("[", 0))),
        ("[a](b\\)", Some(("[", 0))),
        ("[a](b\\\\)", None),
        ("[a](\\b)", None),
        ("[a](\\(b)", None),
        ("[a] (b", None),
        ("[a]x(b", None),
        ("[a]\\(b", None),
        ("[a](b)(c", None),
    ]);
}

#[test]
fn a_destination_in_angle_brackets_may_have_spaces_but_no_line_break() {
    check(&[
        ("[a](<", Some(("[", 0))),
        ("[a](<b c", Some(("[", 0))),
        ("[a](<b)", Some(("[", 0))),
        ("[a](<b>)", None),
        ("[a](<b>", Some(("[", 0))),
        ("[a](<b> ", Some(("[", 0))),
        ("[a](<b\\>", Some(("[", 0))),
        ("[a](<b\\>)", Some(("[", 0))),
        ("[a](<b<", None),
        ("[a](<b\n", None),
        ("[a](<b>c", None),
    ]);
}

#[test]
fn a_title_has_quotes_or_parentheses_and_nothing_after_it() {
    check(&[
        ("[a](b ", Some(("[", 0))),
        ("[a](b\n", Some(("[", 0))),
        ("[a](b  \t\"c", Some(("[", 0))),
        ("[a](b \"c)", Some(("[", 0))),
        ("[a](b \"c\")", None),
        ("[a](b \"c\" ", Some(("[", 0))),
        ("[a](b \"c\" )", None),
        ("[a](b \"c\\\")", Some(("[", 0))),
        ("[a](b \"c\\\"\")", None),
        ("[a](b 'c\")", Some(("[", 0))),
        ("[a](b 'c')", None),
        ("[a](b (c\")", Some(("[", 0))),
        ("[a](b (c))", None),
        ("[a](b \"c\" \"d", None),
        ("[a](b \"c\" (d", None),
        ("[a](b c", None),
        ("[a](<b> 'c", Some(("[", 0))),
        ("[a](<b> 'c')", None),
    ]);
}

#[test]
fn the_text_of_a_link_is_inside_its_brackets() {
    check(&[
        ("[", None),
        ("[a", None),
        ("[a]", None),
        ("a](b", None),
        ("[a [b](c", Some(("[", 3))),
        ("[a [b] c](d", Some(("[", 0))),
        ("[a [b]](d", Some(("[", 0))),
        ("[a]](d", None),
        ("[](a", None),
        ("![](a", Some(("[", 1))),
        ("! [](a", None),
        ("!\\[](a", None),
        ("\\![](a", None),
        ("!![](a", Some(("[", 2))),
        ("[ ](a", Some(("[", 0))),
        ("[\\](a", None),
        ("[\\]](a", Some(("[", 0))),
        ("[a\\[](b", Some(("[", 0))),
        ("[\\\\](b", Some(("[", 0))),
        ("[a\nb](c", Some(("[", 0))),
        ("[a\n\nb](c", None),
        ("[a\n# b](c", None),
        ("# [a\nb](c", None),
        ("[a](b) [c](d", Some(("[", 7))),
        ("[`]`](a", Some(("[", 0))),
        ("[`](a`", None),
        ("[``](a`](b``", None),
        ("`[a](b", None),
        ("`` ` [a](b", None),
        ("`` ` `` [a](b", Some(("[", 8))),
        ("\\`[a](b", Some(("[", 2))),
        ("`a\\`[a](b", Some(("[", 4))),
        ("` `` `[a](b", Some(("[", 6))),
        ("| [a](b", Some(("[", 2))),
    ]);
    let many = |brackets: usize| format!("{}a](b", "[".repeat(brackets));
    check(&[(&many(40), Some(("[", 39)))]);
    let closed = |brackets: usize| format!("{}a{}(b", "[".repeat(brackets), "]".repeat(32));
    check(&[(&closed(32), Some(("[", 0))), (&closed(33), Some(("[", 1)))]);
    let deeper = format!("{}a{}(b", "[".repeat(33), "]".repeat(33));
    check(&[(&deeper, None)]);
}
