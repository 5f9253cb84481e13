//! Cut documents with continuations in the styles that models use.

use std::fmt::Write as _;

use endmark_recovery::stitch::{AskedFrom, merge_chunks, stitch};
use endmark_text::Format;
use serde_json::json;

use crate::documents::{Random, code};

/// A cut document and its continuation, with a name for the tables.
pub struct Cut {
    /// The kind of the document, the position of the cut, and the style of the continuation.
    pub name: String,
    format: Format,
    parts: [String; 2],
}

impl Cut {
    /// Stitches the parts and discards the result, because only the time is measured.
    ///
    /// Never inlined, so that a profiler can count this function alone.
    #[inline(never)]
    pub fn stitch(&self) {
        std::hint::black_box(stitch(&self.parts, &self.format, AskedFrom::Unknown));
    }

    /// Stitches once before the measurement, so that one-time initialisation is not measured.
    pub fn warm_up(&self) {
        let [initial, continuation] = &self.parts;
        let _ = std::hint::black_box(merge_chunks(initial, continuation, &self.format, AskedFrom::Unknown));
    }

    /// Returns the total length of both parts in bytes.
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

/// The name, format and generator of a kind of document. The generator gets a length in bytes, which the
/// document has approximately.
type DocumentKind = (&'static str, Format, fn(usize) -> String);

static DOCUMENT_KINDS: [DocumentKind; 8] = [
    ("tool call with code", Format::Json, tool_call),
    ("records", Format::Json, records),
    ("rows of zeros", Format::Json, zeros),
    ("the same line in a string", Format::Json, repetitive_call),
    ("code", Format::Text, plain_code),
    ("prose", Format::Markdown, prose),
    ("tags", Format::Tags, tags),
    ("the same line again and again", Format::Text, repetitive),
];

const CUT_POSITIONS: [&str; 2] = ["middle", "end"];

const STYLES: [&str; 6] = ["clean", "overlap of 600", "preamble", "fence", "restart", "another text"];

/// Returns documents of this length that are cut in the middle and near the end, with a continuation in each
/// style. Only cuts whose names contain `part_of_name` are generated, and only when the iterator reaches
/// them.
pub fn cuts(length: usize, part_of_name: &str) -> impl Iterator<Item = Cut> {
    let names = DOCUMENT_KINDS.iter().flat_map(|kind| {
        CUT_POSITIONS
            .into_iter()
            .flat_map(move |place| STYLES.into_iter().map(move |style| (kind, place, style)))
    });
    let name = |kind: &str, place: &str, style: &str| format!("{kind}, {place}, {style}");
    let wanted =
        names.filter(move |((kind, ..), place, style)| name(kind, place, style).contains(part_of_name));
    wanted.map(move |((kind, format, make), place, style)| {
        let whole = make(length);
        let at = if place == "middle" { whole.len() / 2 } else { whole.len() - 1_500 };
        let at = whole.floor_char_boundary(at);
        Cut {
            name: name(kind, place, style),
            format: format.clone(),
            parts: [whole[..at].to_owned(), continuation_in_style(&whole, at, style)],
        }
    })
}

fn continuation_in_style(whole: &str, at: usize, style: &str) -> String {
    let overlap = whole.floor_char_boundary(at.saturating_sub(600));
    match style {
        "overlap of 600" => whole[overlap..].to_owned(),
        "preamble" => format!("Here is the rest of the document:\n\n{}", &whole[at..]),
        "fence" => format!("```\n{}\n```", &whole[overlap..]),
        "restart" => whole.to_owned(),
        "another text" => "I'm sorry, but I can't see the rest of the document. ".repeat(40),
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

fn zeros(length: usize) -> String {
    let row = "[0, 0, 0, 1, 0, 0, 0, 0], ";
    format!("[{}[]]", row.repeat(length / row.len() + 1))
}

fn repetitive_call(length: usize) -> String {
    json!({"tool": "write_file", "content": repetitive(length), "mode": 420}).to_string()
}

fn prose(length: usize) -> String {
    let mut random = Random::new(4);
    let mut text = String::new();
    while text.len() < length {
        let _ = write!(text, "## Chapter {}\n\n", random.below(90));
        for _ in 0..4 {
            for _ in 0..6 + random.below(5) {
                let mut word = || WORDS[random.below(WORDS.len())];
                let _ = write!(text, "The {} {} of the {} was {}. ", word(), word(), word(), word());
            }
            text.push_str("\n\n");
        }
    }
    text
}

fn tags(length: usize) -> String {
    let mut random = Random::new(5);
    let mut text = String::from("<shelf>\n");
    while text.len() < length {
        let (number, mut word) = (random.below(10_000), || WORDS[random.below(WORDS.len())]);
        let (name, owner) = (word(), word());
        let _ = writeln!(text, "  <item id=\"{number}\"><name>{name}</name><owner>{owner}</owner></item>");
    }
    text.push_str("</shelf>\n");
    text
}

/// Words for generated prose and tags.
const WORDS: [&str; 24] = [
    "river",
    "engine",
    "garden",
    "letter",
    "window",
    "market",
    "signal",
    "teacher",
    "bridge",
    "harbour",
    "lantern",
    "winter",
    "quiet",
    "narrow",
    "painted",
    "borrowed",
    "silver",
    "forgotten",
    "distant",
    "honest",
    "early",
    "broken",
    "patient",
    "salted",
];

/// Returns the code of this repository, repeated up to this length. Each repetition shifts the letters,
/// because the stitcher would have to track exact copies as repetitions.
fn plain_code(length: usize) -> String {
    let code = code();
    let mut text = String::with_capacity(length + code.len());
    let mut turn = 0;
    while text.len() < length {
        text.extend(code.chars().map(|letter| shift_letter(letter, turn)));
        turn = (turn + 1) % 26;
    }
    text.truncate(text.floor_char_boundary(length));
    text
}

/// Shifts a lower-case ASCII letter by this number of places in the alphabet.
fn shift_letter(letter: char, places: u8) -> char {
    match u8::try_from(letter) {
        Ok(letter @ b'a'..=b'z') => char::from((letter - b'a' + places) % 26 + b'a'),
        _ => letter,
    }
}

fn repetitive(length: usize) -> String {
    let mut random = Random::new(3);
    let line = format!("    total += values[{}] * 0.5;\n", random.below(100));
    line.repeat(length / line.len() + 1)
}
