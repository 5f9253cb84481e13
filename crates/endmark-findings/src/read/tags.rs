//! Tags of HTML that lay a finding out: `<summary><b>[F2] SQL</b></summary>`, `<li>Severity: High</li>`.
//!
//! Code has tags, too. What is taken for layout stands in front of a line's own words, or closes what stands there.

use std::ops::Range;

/// The names of tags that lay text out, and are hardly ever what a finding is about in front of its own words.
const LAYOUT: [&str; 30] = [
    "article", "b", "br", "center", "code", "dd", "details", "div", "dl", "dt", "em", "h1", "h2", "h3", "h4",
    "h5", "h6", "hr", "i", "li", "ol", "p", "section", "small", "span", "strong", "summary", "u", "ul", "td",
];

/// The names of more that stand in front of a line's own words; alone in a line they are code as well.
const IN_FRONT: [&str; 9] = ["blockquote", "font", "header", "label", "mark", "tbody", "th", "thead", "tr"];

/// Tags in which others stand, so that the last of these is often closed in one line with them.
const AROUND_OTHERS: [&str; 13] = [
    "article",
    "blockquote",
    "details",
    "div",
    "dl",
    "ol",
    "section",
    "table",
    "tbody",
    "thead",
    "tr",
    "ul",
    "header",
];

/// Tags that nothing closes.
const VOID: [&str; 2] = ["br", "hr"];

/// Tags in which blocks of their own stand, and no code.
const AROUND_BLOCKS: [&str; 5] = ["article", "details", "hr", "section", "summary"];

/// A tag at the beginning of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tag<'a> {
    /// As it is written.
    pub(super) name: &'a str,
    pub(super) closes: bool,
    /// What stands behind it.
    pub(super) behind: &'a str,
}

/// The tag that a text begins with, if it lays text out.
pub(super) fn layout(text: &str) -> Option<Tag<'_>> {
    known(text).filter(|tag| is_one_of(&LAYOUT, tag.name))
}

/// The same, also if it does so in front of a line's own words alone.
fn known(text: &str) -> Option<Tag<'_>> {
    let inner = text.strip_prefix('<')?;
    let (closes, inner) = inner.strip_prefix('/').map_or((false, inner), |inner| (true, inner));
    let length = inner.find(|sign: char| !sign.is_ascii_alphanumeric()).unwrap_or(inner.len());
    let (name, rest) = inner.split_at(length);
    let (attributes, behind) = rest.split_once('>')?;
    let is_known = is_one_of(&LAYOUT, name) || is_one_of(&IN_FRONT, name);
    let is_apart = attributes.is_empty() || attributes.starts_with([' ', '/']);
    (is_known && is_apart && !attributes.contains('<')).then_some(Tag { name, closes, behind })
}

/// The tag that opens in front of a line's own words.
pub(super) fn opening(text: &str) -> Option<Tag<'_>> {
    known(text).filter(|tag| !tag.closes && !is_one_of(&VOID, tag.name))
}

/// What stands behind a place to jump to: `<a id="f2"></a>[F2] SQL`.
pub(super) fn behind_anchor(text: &str) -> Option<&str> {
    let (attributes, behind) = text.strip_prefix("<a ")?.split_once("></a>")?;
    (!attributes.contains(['<', '>'])).then(|| behind.trim_start())
}

/// A value without the tags that close what stands open in front of its line.
pub(super) fn closed<'a>(value: &'a str, line: &str) -> &'a str {
    without_closing(value, line, |value, name| {
        last_closing(value).filter(|(_, last)| last.eq_ignore_ascii_case(name)).map(|(before, _)| before)
    })
}

/// The same of a line that the text stops in, and perhaps in one of these tags.
pub(super) fn closed_at_cut<'a>(value: &'a str, line: &str) -> &'a str {
    let whole = closed(value, line);
    // `x</li></u`
    if let Some(before) = AROUND_OTHERS.iter().find_map(|name| before_begun(whole, name)) {
        let inner = closed(before, line);
        if inner.len() < before.len() {
            return inner;
        }
    }
    without_closing(whole, line, before_begun)
}

/// What stands before the beginning of what closes such a tag.
fn before_begun<'a>(value: &'a str, name: &str) -> Option<&'a str> {
    let at = value.rfind('<')?;
    let begun = value[at..].to_ascii_lowercase();
    format!("</{}>", name.to_ascii_lowercase()).starts_with(&begun).then(|| value[..at].trim_end())
}

fn without_closing<'a>(
    value: &'a str,
    line: &str,
    without: impl Fn(&'a str, &str) -> Option<&'a str>,
) -> &'a str {
    let mut open = Vec::new();
    let mut rest = line.trim_start();
    loop {
        if let Some(behind) = behind_anchor(rest) {
            rest = behind;
        } else if let Some(tag) = behind_lead(rest) {
            open.push(tag.name);
            rest = tag.behind.trim_start();
        } else {
            break;
        }
    }
    let mut value = value.trim();
    while let Some(tag) = known(value).filter(|tag| tag.closes) {
        let Some(at) = open.iter().rposition(|name| name.eq_ignore_ascii_case(tag.name)) else { break };
        open.remove(at);
        value = tag.behind.trim_start();
    }
    value = within_others(value, &open);
    for name in open {
        value = without(value, name).unwrap_or(value);
    }
    value
}

/// A value without what is closed behind the first tag in front of its line, and was opened in lines before: `x</li></ul>`.
fn within_others<'a>(value: &'a str, open: &[&str]) -> &'a str {
    let mut rest = value;
    while let Some((before, name)) = last_closing(rest) {
        if open.first().is_some_and(|first| first.eq_ignore_ascii_case(name)) {
            return rest;
        }
        if !is_one_of(&AROUND_OTHERS, name) || opens(before, name) {
            break;
        }
        rest = before;
    }
    value
}

/// Whether a text opens such a tag, and does not close it.
fn opens(text: &str, name: &str) -> bool {
    let (text, name) = (text.to_ascii_lowercase(), name.to_ascii_lowercase());
    let count = |sign: &str| {
        let behind = text.split(sign).skip(1).filter_map(|behind| behind.strip_prefix(name.as_str()));
        behind.filter(|behind| !behind.starts_with(|sign: char| sign.is_ascii_alphanumeric())).count()
    };
    count("<") > count("</")
}

/// A value without the tags of code around all of it.
pub(super) fn without_code(value: &str) -> &str {
    let inner = value.strip_prefix("<code>").and_then(|inner| inner.strip_suffix("</code>"));
    inner.filter(|inner| !inner.contains("<code>")).unwrap_or(value)
}

/// A text without any tags around it, whatever their names, and without the signs of a comment.
pub(super) fn without_any(text: &str) -> &str {
    let is_tag = |tag: &str| {
        tag.starts_with(|sign: char| sign.is_ascii_alphabetic() || sign == '/') && !tag.contains(['<', '='])
    };
    let mut text = text.trim();
    loop {
        let commented = text.strip_prefix("<!--").and_then(|inner| inner.strip_suffix("-->"));
        let opened = || {
            let (tag, behind) = text.strip_prefix('<')?.split_once('>')?;
            is_tag(tag).then_some(behind)
        };
        let closed = || {
            let (before, tag) = text.strip_suffix('>')?.rsplit_once('<')?;
            is_tag(tag).then_some(before)
        };
        match commented.or_else(opened).or_else(closed) {
            Some(inner) => text = inner.trim(),
            None => return text,
        }
    }
}

/// The tag that opens behind the signs of a list or a heading.
fn behind_lead(text: &str) -> Option<Tag<'_>> {
    opening(text.trim_start_matches(['#', '-', '*', '+', ' ']))
}

/// What stands before the closing tag that a text ends with, and its name.
fn last_closing(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_suffix('>')?;
    let (before, name) = inner.rsplit_once("</")?;
    name.chars().all(|sign| sign.is_ascii_alphanumeric()).then_some((before.trim_end(), name))
}

/// Where the pieces of a line stand that ends of lines in HTML part.
pub(super) fn pieces(text: &str) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let mut begins = 0;
    for (at, _) in text.match_indices('<') {
        let end_of_line =
            layout(&text[at..]).filter(|tag| at >= begins && tag.name.eq_ignore_ascii_case("br"));
        if let Some(tag) = end_of_line {
            pieces.push(begins..at);
            begins = text.len() - tag.behind.len();
        }
    }
    pieces.push(begins..text.len());
    pieces
}

/// Whether a line is nothing but tags, at least one.
pub(super) fn are_all(text: &str) -> bool {
    let mut rest = text.trim();
    let is_any = layout(rest).is_some();
    while let Some(tag) = layout(rest) {
        rest = tag.behind.trim_start();
    }
    is_any && rest.is_empty()
}

/// Whether a line of tags alone parts blocks, or closes what nothing in these lines has opened: it is none of their code.
pub(super) fn end_code(text: &str, lines: &[String]) -> bool {
    let Some(first) = layout(text.trim()).filter(|_| are_all(text)) else { return false };
    let opens =
        |line: &String| line.to_ascii_lowercase().contains(&format!("<{}", first.name.to_ascii_lowercase()));
    is_one_of(&AROUND_BLOCKS, first.name) || first.closes && !lines.iter().any(opens)
}

fn is_one_of(names: &[&str], name: &str) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::{are_all, closed, closed_at_cut, end_code, layout, pieces, without_any};

    #[test]
    fn tags_of_code_are_none_of_layout() {
        for text in ["<script>a", "<img src=x>", "<pre", "< b>", "<T>", "<bold>", "<p", "a<b>"] {
            assert_eq!(layout(text), None, "{text}");
        }
        let tag = layout("<SPAN style=\"color:red\">High").unwrap();
        assert_eq!((tag.name, tag.closes, tag.behind), ("SPAN", false, "High"));
    }

    #[test]
    fn a_value_loses_what_its_line_has_opened_and_no_more() {
        for (value, line, expected) in [
            ("Low</p>", "<p>Severity: Low</p>", "Low"),
            ("</strong> src/a.rs:1</li>", "- <li><strong>Location:</strong> src/a.rs:1</li>", "src/a.rs:1"),
            ("<p>hi</p></li>", "<li>Evidence: <p>hi</p></li>", "<p>hi</p>"),
            ("<p>hi</p>", "Evidence: <p>hi</p>", "<p>hi</p>"),
            ("a </b", "<b>Source: a </b", "a </b"),
        ] {
            assert_eq!(closed(value, line), expected, "{line}");
        }
        for value in ["SQL", "SQL<", "SQL</", "SQL</b", "SQL</b>", "SQL</b></summ", "SQL</b></summary>"] {
            assert_eq!(closed_at_cut(value, "<summary><b>[F1] SQL"), "SQL", "{value}");
        }
        assert_eq!(closed_at_cut("a <i", "<p>Source: a <i"), "a <i");
        for closing in ["</li></ul>", "</li></ul></div>", "</li>\u{20}</ul>", ""] {
            for cut in (0..=closing.len()).map(|length| format!("x{}", &closing[..length])) {
                assert_eq!(closed_at_cut(&cut, "<ul><li>Source: x"), "x", "{cut}");
            }
            assert_eq!(closed(&format!("x{closing}"), "<li>Source: x"), "x", "{closing}");
        }
        for value in ["</div>", "<ul><li>x</li></ul>", "x</td></tr>", "x</b></ul>"] {
            assert_eq!(closed(&format!("{value}</li></ul>"), "<li>Source: "), value);
            assert_eq!(closed(value, "Source: "), value);
        }
        for text in ["<result>x", "<!-- x -->", "<p><b>x</b></p>", "x</final_answer>", "x"] {
            assert_eq!(without_any(text), "x");
        }
    }

    #[test]
    fn lines_end_in_html_too() {
        let of = |text: &'static str| pieces(text).into_iter().map(|piece| &text[piece]).collect::<Vec<_>>();
        assert_eq!(of("a < b<br>c<BR />"), ["a < b", "c", ""]);
        assert_eq!(of("plain"), ["plain"]);
    }

    #[test]
    fn what_closes_something_else_is_no_code() {
        let code = ["<div>".to_owned(), "q".to_owned()];
        assert!(end_code("</details>", &code) && end_code("</li></ul>", &code) && end_code("<hr>", &code));
        assert!(!end_code("</div>", &code) && !end_code("<div>", &code) && !end_code("q", &code));
        assert!(are_all("</p> <p>") && !are_all("") && !are_all("<p>x"));
    }
}
