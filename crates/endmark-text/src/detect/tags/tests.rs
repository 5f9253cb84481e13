use super::elements::MAX_OPEN_ELEMENTS;
use super::*;
use crate::{InToken, Truncation};

/// Returns the verdict on `text`. Checks that chunking does not change it.
#[track_caller]
fn judge(text: &str) -> Verdict {
    let mut single_bytes = TagsMachine::default();
    for byte in text.bytes() {
        single_bytes.push(&[byte]);
    }
    for split in 0..=text.len() {
        let mut machine = TagsMachine::default();
        machine.push(&text.as_bytes()[..split]);
        machine.push(&text.as_bytes()[split..]);
        assert_eq!(machine.verdict(), single_bytes.verdict(), "{text:?} split at {split}");
        assert_eq!(machine.is_whole(), machine.verdict().is_whole(), "{text:?} split at {split}");
    }
    single_bytes.verdict()
}

#[track_caller]
fn cut(text: &str) -> Truncation {
    judge(text).truncation().unwrap_or_else(|| panic!("{text:?} is whole")).clone()
}

fn open_tags(truncation: &Truncation) -> String {
    truncation.open.iter().map(|open| open.opener()).collect()
}

#[test]
fn a_text_is_whole_when_every_tag_is_closed() {
    for text in [
        "<a>b</a>",
        "<a></a>",
        "<a/>",
        "<a b=\"c\" d='e' />",
        "Sure!\n<a><b>c</b></a>\nDone.",
        "<A>b</a>",
        "<a\n  b=\"c > d\"\n>e</a >",
        "<a:b c.d-e=\"\">x</a:b>",
        "<思考>好</思考>",
        "<!-- c --><a>b</a>",
        "<?xml version=\"1.0\"?>\n<a/>",
        "<a><![CDATA[</a> <b>]]></a>",
        "<!DOCTYPE a [<!ENTITY b \"c>\">]>\n<a/>",
        "<p>one<br>two<img src=\"x\"></p>",
        "<ul><li>one<li>two</ul>",
        "<table><tr><td>1<td>2<tr><td>3</table>",
        "<function=get><parameter=city>Bern</parameter></function>",
        "<script>if (a<b && c>d) f(\"<div>\")</script>",
        "<link>http://a.b</link>",
        "<input type=\"text\">",
        "<!doctype html><title>a</title><p>text",
    ] {
        assert_eq!(judge(text), Verdict::Whole, "{text:?}");
    }
}

#[test]
fn code_in_tags_is_text() {
    for code in [
        "if a < b && c > d { }",
        "let x: List<String> = Vec::<u8>::new();",
        "x <- y",
        "for (i=0;i<n;i++) a<<=1; cout << x;",
        "cat <<EOF > file\nEOF",
        "#include <stdio.h>\nint main() {}",
        "a <b and c> d",
        "fn f<'a, T: Clone>(x: &'a T) {}",
        "<?php echo 1;",
        "</div>",
        "if (a <!b) {}",
        "map<string, vector<int>> m;",
        "&amp; & &x",
        "`<T>`",
        "\\<b",
        "a <b && c",
        "<",
        "</",
        "a<b",
        "<Foo {...props} />",
        "<b>",
    ] {
        let text = format!("<file path=\"a\"><content>{code}</content></file>");
        assert_eq!(judge(&text), Verdict::Whole, "{text:?}");
        let open = format!("<file path=\"a\"><content>{code} ");
        assert!(open_tags(&cut(&open)).starts_with("<file><content>"), "{open:?}");
    }
}

#[test]
fn open_elements_are_listed_outermost_first() {
    let found = cut("Here:\n<file path=\"a\">\n<content>\nfn main");
    assert_eq!(open_tags(&found), "<file><content>");
    assert_eq!((found.truncation_index, found.balanced_index), (39, 0));
    assert_eq!((found.last_valid_token.as_str(), found.in_token), ("fn main", None));
    let found = cut("<a>x</a> <b><c>");
    assert_eq!((open_tags(&found).as_str(), found.balanced_index), ("<b><c>", 8));
    assert_eq!(found.last_valid_token, "<c>");
    assert_eq!(open_tags(&cut("<a><b>x</a><c>")), "<c>");
    assert_eq!(open_tags(&cut("<html><body><p>text")), "<html><body><p>");
}

#[test]
fn a_cut_within_a_tag_is_reported() {
    for (text, index, token, in_token) in [
        ("<", 0, "<", InToken::Tag),
        ("<fi", 0, "<fi", InToken::Tag),
        ("<a>b</", 4, "b", InToken::Tag),
        ("<a>b</a", 4, "b", InToken::Tag),
        ("<a>b<", 4, "b", InToken::Tag),
        ("<a><b", 3, "<a>", InToken::Tag),
        ("<a b", 3, "<a ", InToken::Tag),
        ("<a b=", 5, "<a b=", InToken::Tag),
        ("<a b=\"c d", 9, "<a b=\"c d", InToken::Attribute),
        ("<a b=\"c\" ", 9, "<a b=\"c\" ", InToken::Tag),
        ("<a b=\"c\" /", 9, "<a b=\"c\" ", InToken::Tag),
        ("<a/>\n<!-- c", 11, "<!-- c", InToken::Comment),
        ("<a><![CDATA[x]", 14, "<![CDATA[x]", InToken::CharacterData),
        ("<?xml version", 13, "<?xml version", InToken::Instruction),
        ("<!DOCTYPE html", 14, "<!DOCTYPE html", InToken::Declaration),
        ("<!DOC", 0, "<!DOC", InToken::Tag),
    ] {
        let found = cut(text);
        assert_eq!(
            (found.truncation_index, found.last_valid_token.as_str(), found.in_token),
            (index, token, Some(in_token)),
            "{text:?}"
        );
    }
    assert_eq!(open_tags(&cut("<a/>\n<!-- c")), "<!--");
}

#[test]
fn only_certain_tags_count_outside_elements() {
    for text in
        ["<a/> i<n", "<a/> List<String> x", "<a/> a <b and c> d", "<a/> `<T>`", "<a/> x <- y", "<a/></b>"]
    {
        assert_eq!(judge(text), Verdict::Whole, "{text:?}");
    }
    for text in ["", " \n", "text", "a < b", "List<String>", "</a>", "&lt;a&gt;"] {
        assert_eq!(judge(text).name(), "truncated", "{text:?}");
    }
}

#[test]
fn only_invalid_characters_are_malformed() {
    let mut machine = TagsMachine::default();
    machine.push(b"<a></b><c></a>");
    assert_eq!(machine.verdict(), Verdict::Whole);
    machine.push(b"\xFF");
    assert!(matches!(machine.verdict(), Verdict::Malformed { index: 14, .. }));
}

#[test]
fn deep_nesting_and_unmatched_ends_take_linear_time() {
    let depth = 100_000;
    let mut machine = TagsMachine::default();
    machine.push("<a>".repeat(depth).as_bytes());
    machine.push("</b>".repeat(depth).as_bytes());
    assert_eq!(machine.verdict().truncation().unwrap().open.len(), depth);
    machine.push("</a>".repeat(depth).as_bytes());
    assert!(machine.is_whole());
}

#[test]
fn a_long_text_in_an_element_takes_linear_time() {
    let mut machine = TagsMachine::default();
    machine.push(format!("<a>{}</a>", "x".repeat(4_000_000)).as_bytes());
    assert!(machine.is_whole());
}

mod growing;
mod html;

#[test]
fn open_elements_are_bounded() {
    let mut machine = TagsMachine::default();
    machine.push("<a>".repeat(MAX_OPEN_ELEMENTS).as_bytes());
    assert_eq!(machine.verdict().truncation().map(|cut| cut.open.len()), Some(MAX_OPEN_ELEMENTS));
    let mut closes = machine.clone();
    closes.push(b"</a><b>");
    assert_eq!(closes.verdict().name(), "truncated");
    let refused =
        Verdict::Malformed { index: 3 * MAX_OPEN_ELEMENTS + 1, reason: TOO_MANY_ELEMENTS.to_owned() };
    // An invalid byte after the limit does not change the verdict, and neither does an end tag of the
    // rejected element.
    for rest in [&b" <a>"[..], b" <a></a>", b" <a>\xff"] {
        let mut bytewise = machine.clone();
        for byte in rest {
            bytewise.push(&[*byte]);
        }
        machine.clone().push(rest);
        assert_eq!((bytewise.verdict(), bytewise.is_malformed()), (refused.clone(), true));
    }
    machine.push(b"\xff<a>");
    assert_eq!(
        machine.verdict(),
        Verdict::Malformed { index: 3 * MAX_OPEN_ELEMENTS, reason: "invalid UTF-8".to_owned() }
    );
}
