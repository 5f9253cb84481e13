//! Tests which HTML elements end implicitly, and which documents may omit end tags.

use super::*;

/// Elements, each with the elements that end it implicitly.
const ENDS_BEFORE: [(&str, &[&str]); 12] = [
    ("li", &["li"]),
    ("dt", &["dt", "dd"]),
    ("dd", &["dt", "dd"]),
    ("td", &["td", "th", "tr", "tbody", "tfoot"]),
    ("th", &["td", "th", "tr", "tbody", "tfoot"]),
    ("tr", &["tr", "tbody", "tfoot"]),
    ("thead", &["tbody", "tfoot"]),
    ("tbody", &["tbody", "tfoot"]),
    ("tfoot", &["tbody", "tfoot"]),
    ("option", &["option", "optgroup"]),
    ("p", &["p", "div", "ul", "ol", "table", "pre", "h1", "h6", "section", "blockquote"]),
    ("div", &[]),
];

/// Elements of different kinds that may follow an open element.
const FOLLOWING_ELEMENTS: [&str; 24] = [
    "li",
    "dt",
    "dd",
    "td",
    "th",
    "tr",
    "thead",
    "tbody",
    "tfoot",
    "option",
    "optgroup",
    "p",
    "div",
    "ul",
    "ol",
    "table",
    "pre",
    "h1",
    "h6",
    "section",
    "blockquote",
    "span",
    "b",
    "note",
];

#[test]
fn an_element_ends_implicitly_only_as_html_defines() {
    for (last, ends_before) in ENDS_BEFORE {
        for next in FOLLOWING_ELEMENTS {
            let open = open_tags(&cut(&format!("<x><{last}>1<{next} a='b'>2")));
            let expected = if ends_before.contains(&next) {
                format!("<x><{next}>")
            } else {
                format!("<x><{last}><{next}>")
            };
            assert_eq!(open, expected, "<{next}> behind <{last}>");
        }
    }
    assert_eq!(open_tags(&cut("<table><TR><TD>1<tbody>")), "<table><tbody>", "all of them, in any case");
}

#[test]
fn only_void_elements_need_no_end_tag() {
    for name in ["br", "hr", "img", "wbr", "BR"] {
        assert_eq!(open_tags(&cut(&format!("<x><{name}>"))), "<x>", "{name}");
        assert_eq!(open_tags(&cut(&format!("<x><{name} a=b>"))), "<x>", "{name}");
    }
    for name in ["area", "base", "col", "embed", "input", "link", "meta", "param", "source", "track"] {
        assert_eq!(open_tags(&cut(&format!("<x><{name}>"))), format!("<x><{name}>"));
        assert_eq!(open_tags(&cut(&format!("<x><{name} a=b>"))), "<x>", "{name}");
        assert_eq!(open_tags(&cut(&format!("<x><{name} a>"))), "<x>", "{name}");
    }
    assert_eq!(open_tags(&cut("<x><item a=b>")), "<x><item>");
}

#[test]
fn a_declared_html_document_may_omit_optional_ends() {
    for text in ["<!DOCTYPE html><p>a", "<!doctype HTML>\n<ul></ul><li>a", "<!DOCTYPE html><head><p>a"] {
        assert_eq!(judge(text), Verdict::Whole, "{text:?}");
    }
    for (text, open) in [
        // The open elements around an unclosed element are listed, too.
        ("<!DOCTYPE html><p><b>a", "<p><b>"),
        ("<!DOCTYPE html><p><B>a<li>b", "<p><B>"),
        ("<!DOCTYPE html><ul><li>a<li>b", "<ul>"),
        ("<!DOCTYPE html><html><p>a", "<html><p>"),
        ("<!DOCTYPE html><!DOCTYPE html><b>", "<b>"),
        ("<!DOCTYPE note><p>a", "<p>"),
        ("<!ELEMENT html><p>a", "<p>"),
        ("<p>a", "<p>"),
    ] {
        assert_eq!(open_tags(&cut(text)), open, "{text:?}");
    }
    // The text after the end tag belongs to the same document.
    assert_eq!(judge("<html></html><p>a"), Verdict::Whole);
    assert_eq!(judge("<html></html><html></html><p>a"), Verdict::Whole);
    assert_eq!(judge("<!DOCTYPE html><!DOCTYPE html><p>a"), Verdict::Whole);
}

#[test]
fn a_one_letter_tag_after_a_word_needs_a_value() {
    assert_eq!(open_tags(&cut("<x>word<em>")), "<x><em>");
    assert_eq!(open_tags(&cut("<x>word<td>")), "<x><td>");
    assert_eq!(open_tags(&cut("<x>word<b>")), "<x>");
    assert_eq!(open_tags(&cut("<x>word<b c=d>")), "<x><b>");
    assert_eq!(open_tags(&cut("<x>word<note>")), "<x>");
}

#[test]
fn comments_alone_are_not_a_document_but_a_declaration_is() {
    assert_eq!(judge("<!-- c -->").name(), "truncated");
    assert_eq!(judge("<![CDATA[x]]>").name(), "truncated");
    assert_eq!(cut("<!-- c -->").balanced_index, 0);
    assert_eq!(judge("<!DOCTYPE x>"), Verdict::Whole);
    assert_eq!(judge("<?xml version='1.0'?>"), Verdict::Whole);
    assert_eq!(judge("<!ENTITY x>").name(), "truncated");
    let found = cut("<x/><!-- c --><b>");
    assert_eq!((found.balanced_index, found.last_valid_token.as_str()), (14, "<b>"));
    assert_eq!(cut("<x><!-- c --><b>").balanced_index, 0);
}
