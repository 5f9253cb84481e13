//! Cut documents and their continuations, by the styles in which models continue.

use endmark_core::Format;
use endmark_core::stitch::{AskedFrom, stitch};
use serde_json::json;

use crate::documents::{Random, code};

/// A cut document with its continuation, under the name it is told by.
pub struct Cut {
    /// What kind of document it is, where it is cut and how it is continued.
    pub name: String,
    format: Format,
    parts: [String; 2],
}

impl Cut {
    /// Stitches it. What comes out is judged elsewhere: here only how long it takes counts.
    pub fn stitch(&self) {
        std::hint::black_box(stitch(&self.parts, &self.format, AskedFrom::Unknown));
    }

    /// Bytes of both parts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts.iter().map(String::len).sum()
    }

    /// Whether there is nothing to stitch.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A kind of document, and how to make one of at least so many bytes.
type Kind = (&'static str, Format, fn(usize) -> String);

const KINDS: [Kind; 4] = [
    ("tool call with code", Format::Json, tool_call),
    ("records", Format::Json, records),
    ("code", Format::Text, plain_code),
    ("the same line again and again", Format::Text, repetitive),
];

const STYLES: [&str; 5] = ["clean", "overlap of 600", "preamble", "fence", "restart"];

/// All documents of a length, cut in the middle and near the end, continued in every style.
#[must_use]
pub fn cuts(length: usize) -> Vec<Cut> {
    let mut found = Vec::new();
    for (kind, format, make) in KINDS {
        let whole = make(length);
        for (place, at) in [("middle", whole.len() / 2), ("end", whole.len() - 1_500)] {
            let at = whole.floor_char_boundary(at);
            for style in STYLES {
                found.push(Cut {
                    name: format!("{kind}, {place}, {style}"),
                    format: format.clone(),
                    parts: [whole[..at].to_owned(), continued(&whole, at, style)],
                });
            }
        }
    }
    found
}

fn continued(whole: &str, at: usize, style: &str) -> String {
    let overlap = whole.floor_char_boundary(at.saturating_sub(600));
    match style {
        "overlap of 600" => whole[overlap..].to_owned(),
        "preamble" => format!("Here is the rest of the document:\n\n{}", &whole[at..]),
        "fence" => format!("```\n{}\n```", &whole[overlap..]),
        "restart" => whole.to_owned(),
        _ => whole[at..].to_owned(),
    }
}

fn tool_call(length: usize) -> String {
    let call =
        json!({"tool": "write_file", "path": "src/lib.rs", "content": plain_code(length), "mode": 420});
    call.to_string()
}

fn records(length: usize) -> String {
    String::from_utf8(crate::documents::small_objects(length)).unwrap_or_default()
}

fn plain_code(length: usize) -> String {
    let code = code();
    let mut text = String::with_capacity(length + code.len());
    while text.len() < length {
        text.push_str(&code);
    }
    text.truncate(text.floor_char_boundary(length));
    text
}

fn repetitive(length: usize) -> String {
    let mut random = Random::new(3);
    let line = format!("    total += values[{}] * 0.5;\n", random.below(100));
    line.repeat(length / line.len() + 1)
}
