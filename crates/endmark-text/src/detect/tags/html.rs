//! The names of HTML elements: all of them, those without an end tag, and those that end implicitly.

/// Elements that never have an end tag.
const VOID_ELEMENTS: [&str; 4] = ["br", "hr", "img", "wbr"];

/// Elements without an end tag in HTML, where they always have attributes. In other documents, these names
/// have content.
const VOID_ELEMENTS_WITH_ATTRIBUTES: [&str; 10] =
    ["area", "base", "col", "embed", "input", "link", "meta", "param", "source", "track"];

/// Elements with content that is not parsed as markup.
const RAW_TEXT_ELEMENTS: [&str; 2] = ["script", "style"];

/// Elements that may lack their end tag.
const OPTIONAL_END_ELEMENTS: [&str; 18] = [
    "caption", "colgroup", "dd", "dt", "li", "optgroup", "option", "p", "rp", "rt", "tbody", "td", "tfoot",
    "th", "thead", "tr", "head", "body",
];

/// The other elements.
const OTHER_ELEMENTS: [&str; 84] = [
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

/// Elements that end an open paragraph.
const PARAGRAPH_ENDING_ELEMENTS: [&str; 30] = [
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

/// Whether an element with this name has no end tag. For some names, this depends on whether it has
/// attributes.
pub(super) fn is_void(name: &str, has_attributes: bool) -> bool {
    VOID_ELEMENTS.contains(&name) || has_attributes && VOID_ELEMENTS_WITH_ATTRIBUTES.contains(&name)
}

/// Whether the content of an element with this name is not parsed as markup.
pub(super) fn is_raw(name: &str) -> bool {
    RAW_TEXT_ELEMENTS.contains(&name)
}

/// Whether an element with this name may lack its end tag in HTML.
pub(super) fn has_optional_end(name: &str) -> bool {
    OPTIONAL_END_ELEMENTS.contains(&name)
}

/// Whether HTML has an element with this name.
pub(super) fn is_html_element(name: &str) -> bool {
    OTHER_ELEMENTS.contains(&name)
        || OPTIONAL_END_ELEMENTS.contains(&name)
        || VOID_ELEMENTS.contains(&name)
        || VOID_ELEMENTS_WITH_ATTRIBUTES.contains(&name)
        || RAW_TEXT_ELEMENTS.contains(&name)
}

/// Whether the start of an element `next` implicitly ends an open element `last`.
pub(super) fn is_ended_by(last: &str, next: &str) -> bool {
    match last {
        "li" => next == "li",
        "dt" | "dd" => matches!(next, "dt" | "dd"),
        "td" | "th" => matches!(next, "td" | "th" | "tr" | "tbody" | "tfoot"),
        "tr" => matches!(next, "tr" | "tbody" | "tfoot"),
        "thead" | "tbody" | "tfoot" => matches!(next, "tbody" | "tfoot"),
        "option" => matches!(next, "option" | "optgroup"),
        "p" => PARAGRAPH_ENDING_ELEMENTS.contains(&next),
        _ => false,
    }
}
