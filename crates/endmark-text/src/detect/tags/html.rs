//! HTML elements: their names, those without an end tag, and those that end implicitly.

/// Elements without an end tag, whatever their attributes.
const VOID: [&str; 4] = ["br", "hr", "img", "wbr"];

/// Elements that have no end tag in HTML, where they always have attributes. In other documents they contain text.
const VOID_WITH_ATTRIBUTES: [&str; 10] =
    ["area", "base", "col", "embed", "input", "link", "meta", "param", "source", "track"];

/// Elements whose text contains no markup.
const RAW: [&str; 2] = ["script", "style"];

/// Elements whose end tag may be missing.
const OPTIONAL_END: [&str; 18] = [
    "caption", "colgroup", "dd", "dt", "li", "optgroup", "option", "p", "rp", "rt", "tbody", "td", "tfoot",
    "th", "thead", "tr", "head", "body",
];

/// The other elements.
const OTHERS: [&str; 84] = [
    "a",
    "abbr",
    "address",
    "article",
    "aside",
    "audio",
    "b",
    "bdi",
    "bdo",
    "big",
    "blockquote",
    "button",
    "canvas",
    "center",
    "cite",
    "code",
    "data",
    "datalist",
    "del",
    "details",
    "dfn",
    "dialog",
    "div",
    "dl",
    "em",
    "fieldset",
    "figcaption",
    "figure",
    "font",
    "footer",
    "form",
    "frame",
    "frameset",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hgroup",
    "html",
    "i",
    "iframe",
    "ins",
    "kbd",
    "label",
    "legend",
    "main",
    "map",
    "mark",
    "menu",
    "meter",
    "nav",
    "noscript",
    "object",
    "ol",
    "output",
    "picture",
    "pre",
    "progress",
    "q",
    "ruby",
    "s",
    "samp",
    "section",
    "select",
    "small",
    "span",
    "strong",
    "sub",
    "summary",
    "sup",
    "svg",
    "table",
    "template",
    "textarea",
    "time",
    "title",
    "tt",
    "u",
    "ul",
    "var",
    "video",
];

/// Elements before which an open paragraph ends.
const AFTER_PARAGRAPH: [&str; 30] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "center",
    "details",
    "dialog",
    "div",
    "dl",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "ul",
];

/// Whether an element of this name has no end tag.
pub(super) fn is_void(name: &str, attributes: bool) -> bool {
    VOID.contains(&name) || attributes && VOID_WITH_ATTRIBUTES.contains(&name)
}

/// Whether the text of an element of this name contains no markup.
pub(super) fn is_raw(name: &str) -> bool {
    RAW.contains(&name)
}

/// Whether the end tag of this name may be missing in HTML.
pub(super) fn may_lack_end(name: &str) -> bool {
    OPTIONAL_END.contains(&name)
}

/// Whether HTML has an element of this name.
pub(super) fn is_element(name: &str) -> bool {
    OTHERS.contains(&name)
        || OPTIONAL_END.contains(&name)
        || VOID.contains(&name)
        || VOID_WITH_ATTRIBUTES.contains(&name)
        || RAW.contains(&name)
}

/// Whether an open element `last` ends where an element `next` begins.
pub(super) fn ends_before(last: &str, next: &str) -> bool {
    match last {
        "li" => next == "li",
        "dt" | "dd" => matches!(next, "dt" | "dd"),
        "td" | "th" => matches!(next, "td" | "th" | "tr" | "tbody" | "tfoot"),
        "tr" => matches!(next, "tr" | "tbody" | "tfoot"),
        "thead" | "tbody" | "tfoot" => matches!(next, "tbody" | "tfoot"),
        "option" => matches!(next, "option" | "optgroup"),
        "p" => AFTER_PARAGRAPH.contains(&next),
        _ => false,
    }
}
