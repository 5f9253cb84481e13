//! Tests which lines begin an HTML block, in which no fence can begin.

use super::open_construct;

/// Whether `line` begins an HTML block that includes the next line.
fn begins_block(line: &str) -> bool {
    open_construct(&format!("{line}\n```\n")).is_none()
}

#[test]
fn a_complete_tag_on_its_own_line_begins_a_block() {
    for line in [
        "<a>",
        "<a >",
        "<a\t>",
        "<a b>",
        "<a b >",
        "<a  b  c>",
        "<a b=c>",
        "<a b = c>",
        "<a b\t=\tc>",
        "<a b=\"c > d\">",
        "<a b='\"'>",
        "<a b=\"c\" d>",
        "<a b=\"c\" >",
        "<a b=c d=e>",
        "<a b = \"c\">",
        "<a/>",
        "<a />",
        "<a b/>",
        "<a b />",
        "<a b=c/>",
        "<a b=c />",
        "<a b=\"c\"/>",
        "<a b=''/>",
        "<a-b1>",
        "<A1-b>",
        "<a _b.c:d-E1>",
        "<a :b>",
        "<a B>",
        "</a>",
        "</a >",
        "</a\t>",
        "</a-1>",
        "</A>",
        "<a>  ",
        "<a>\t",
        "   <a>",
        "<abcdefghijklmnopq>",
        "<abcdefghijklmnopq b>",
        "</abcdefghijklmnopq>",
        "<abcdefghijkl>",
        "<abcdefghijk>",
        "<abcdefghijklm/>",
        "<a b c=d>",
        "<a b =c>",
        "<a b= c>",
    ] {
        assert!(begins_block(line), "{line:?}");
        assert!(!begins_block(&format!("{line}x")), "{line:?} and more");
        assert!(!begins_block(&format!("Text\n{line}")), "{line:?} in a paragraph");
    }
}

#[test]
fn a_line_that_begins_with_an_incomplete_tag_is_text() {
    for line in [
        "<a",
        "<a ",
        "<a b",
        "<a b=",
        "<a b=>",
        "<a b= >",
        "<a b=c\"d>",
        "<a b=c'd>",
        "<a b=c=d>",
        "<a b=c`d>",
        "<a b=c<d>",
        "<a b='c>",
        "<a b=\"c>",
        "<a b=\"c\"d>",
        "<a b=\"c\"=d>",
        "<a b==c>",
        "<a b=<>",
        "<a b=`c`>",
        "<a\"b\">",
        "<a=b>",
        "<a 1>",
        "<a .b>",
        "<a -b>",
        "<a b @c>",
        "<a b$>",
        "<a/ >",
        "<a / >",
        "<a /b>",
        "<a b/c>",
        "</a b>",
        "</a/>",
        "</a b=c>",
        "</a -b>",
        "</a",
        "</",
        "</>",
        "</ a>",
        "<>",
        "< a>",
        "<",
        "<1>",
        "</1>",
        "<-a>",
        "<a.b>",
        "<a_b>",
        "<a$>",
        "</a.b>",
        "<é>",
        "<a b !>",
        "<a \"b\">",
        "<a b c",
        "<!>",
        "<!1>",
        "<!->",
        "<!-a>",
        "<![cdata[",
        "<![CDAT",
        "<abcdefghijklmnopq.r>",
    ] {
        assert!(!begins_block(line), "{line:?}");
    }
}

#[test]
fn a_block_element_interrupts_even_a_paragraph() {
    for name in ["div", "DIV", "p", "h1", "li", "table", "figcaption", "blockquote", "search", "ul"] {
        for (before, after) in [
            ("<", ">"),
            ("<", ""),
            ("<", " x"),
            ("<", "\tx"),
            ("<", "/>"),
            ("<", "/x"),
            ("<", ">x"),
            ("</", ">"),
            ("</", ""),
        ] {
            let line = format!("{before}{name}{after}");
            assert!(begins_block(&line), "{line:?}");
            assert!(begins_block(&format!("Text\n{line}")), "{line:?} in a paragraph");
        }
        for line in [format!("<{name}x"), format!("<{name}-x"), format!("<{name}="), format!("<x{name} y=")] {
            assert!(!begins_block(&line), "{line:?}");
        }
    }
}

#[test]
fn a_block_with_its_own_end_is_open_until_then() {
    for (begin, sign, ends, others) in [
        ("<!--", "<!--", &["-->", "x-->", "--->"][..], &["--", "- ->", "-- >", "--\n>"][..]),
        ("<?", "<?", &["?>", "??>"], &["?", "? >", "?\n>"]),
        ("<![CDATA[", "<![CDATA[", &["]]>", "]]]>", "[]]>"], &["]>", "]] >", "]]\n>"]),
        ("<!x", "<!", &[">", "\">"], &["\"", "/"]),
        ("<!X", "<!", &[">"], &["-"]),
        (
            "<pre",
            "<pre>",
            &[">x</pre>", " </PRE>", "\n</script>", "\n</textarea>", "\n</style>x", "></pre>"],
            &[
                "></pre",
                "></pre >",
                "></prex>",
                ">/pre>",
                "><pre>",
                "></ pre>",
                ">\n</abcdefghijkl>",
                "></pre\n>",
            ],
        ),
        ("<script", "<script>", &["></script>", ">a<b</script>"], &[">a</scr ipt>", "></scriptscript>"]),
        ("<style", "<style>", &["></style>"], &[">"]),
        ("<textarea", "<textarea>", &["></textarea>"], &[">"]),
    ] {
        assert_eq!(open_construct(&format!("{begin}\n\n")), Some((sign.to_owned(), 0)), "{begin:?}");
        assert_eq!(open_construct(&format!("Text\n{begin}\n\nx")), Some((sign.to_owned(), 5)), "{begin:?}");
        for end in ends {
            assert_eq!(open_construct(&format!("{begin}{end}")), None, "{begin}{end}");
            assert_eq!(
                open_construct(&format!("{begin}\n\n{end} more\n```")),
                Some(("```".to_owned(), begin.len() + 2 + end.len() + 6)),
                "{begin} {end}"
            );
        }
        for other in others {
            assert_eq!(
                open_construct(&format!("{begin}{other}")),
                Some((sign.to_owned(), 0)),
                "{begin}{other}"
            );
            assert_eq!(
                open_construct(&format!("{begin}{other}\n```\n")),
                Some((sign.to_owned(), 0)),
                "{begin}{other}"
            );
        }
    }
    for whole in ["<!-->", "<!--->", "<?>", "<!a>"] {
        assert_eq!(
            open_construct(&format!("{whole}\n```\n")),
            Some(("```".to_owned(), whole.len() + 1)),
            "{whole}"
        );
    }
}
