//! What a value of JSON says, as text. (AR-1)

use super::DEEPEST;
use crate::read::json::{Node, Value};
use crate::read::names::folded;

/// A value as text; several with this between them. Of an object the texts in it.
pub(super) fn text(node: &Node, between: &str) -> Option<String> {
    let joined = |nodes: &mut dyn Iterator<Item = &Node>| {
        let texts: Vec<String> = nodes.filter_map(scalar).collect();
        (!texts.is_empty()).then(|| texts.join(between))
    };
    match &node.value {
        Value::List(items) => joined(&mut items.iter().flat_map(|item| {
            let members = item.members().iter().map(|(_, value)| value);
            members.chain(std::iter::once(item))
        })),
        Value::Object(members) => joined(&mut members.iter().map(|(_, value)| value)),
        _ => scalar(node),
    }
}

/// Evidence as text: what has a name in an object stands behind it, but for code, which stands as it is; each in a line of its own.
pub(super) fn evidence(node: &Node) -> Option<String> {
    let mut said = Vec::new();
    lines_of(node, "", MOST_NESTED, &mut said);
    (!said.is_empty()).then(|| said.join("\n"))
}

/// Deeper evidence is not looked into.
const MOST_NESTED: usize = 8;

/// What objects call the code that they show.
const CODE_NAMES: [&str; 9] =
    ["code", "snippet", "code_snippet", "excerpt", "quote", "text", "content", "value", "evidence"];

fn lines_of(node: &Node, name: &str, depth: usize, said: &mut Vec<String>) {
    if let Some(text) = scalar(node) {
        let is_code = name.is_empty() || CODE_NAMES.contains(&&*folded(name));
        said.push(if is_code { text } else { format!("{name}: {text}") });
        return;
    }
    let Some(depth) = depth.checked_sub(1) else { return };
    for item in node.items().unwrap_or_default() {
        lines_of(item, name, depth, said);
    }
    for (name, value) in node.members() {
        lines_of(value, name, depth, said);
    }
}

fn scalar(node: &Node) -> Option<String> {
    match &node.value {
        Value::Text(text) => Some(text.clone()),
        Value::Number(number) => Some(number.clone()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Null | Value::List(_) | Value::Object(_) => None,
    }
}

/// A place as text, or as an object: `{"file": "a.c", "start_line": 3, "end_line": 9}`, `{"uri": "a.c", "region": {"startLine": 3}}`,
/// `{"file": "a.c", "function": "get"}`; several with commas between.
pub(super) fn location(node: &Node) -> Option<String> {
    let place = |node: &Node| {
        let mut said = Vec::new();
        leaves(node, "", DEEPEST, &mut said);
        let file = said.iter().position(|(name, _)| FILE_NAMES.iter().any(|file| is_last(name, file)))?;
        let (_, file) = said.remove(file);
        let (lines, words): (Vec<_>, Vec<_>) = said.into_iter().partition(|(name, value)| {
            value.starts_with(|sign: char| sign.is_ascii_digit())
                && IN_LINES.iter().any(|word| name.contains(word))
        });
        // Columns and offsets are beside the lines, and name none.
        let is_line = |name: &str| !["col", "offset", "char", "byte"].iter().any(|word| name.contains(word));
        let of = |is_end: bool| {
            let mut fitting =
                lines.iter().filter(|(name, _)| is_line(name) && name.contains("end") == is_end);
            fitting.next().map(|(_, value)| value.as_str())
        };
        let lines = match (of(false), of(true)) {
            (Some("0") | None, _) => String::new(),
            (Some(start), Some(end)) => format!(":{start}-{end}"),
            (Some(start), None) => format!(":{start}"),
        };
        let words: Vec<String> =
            words.into_iter().map(|(_, value)| value).filter(|value| is_word(value)).collect();
        let words = if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) };
        Some(format!("{file}{lines}{words}"))
    };
    let one = |node: &Node| {
        if node.members().is_empty() { scalar(node) } else { place(node).or_else(|| text(node, ", ")) }
    };
    match node.items() {
        Some(items) => {
            Some(items.iter().filter_map(one).collect::<Vec<_>>().join(", ")).filter(|text| !text.is_empty())
        }
        None => one(node),
    }
}

/// What an object calls the file of a place.
const FILE_NAMES: [&str; 6] = ["file", "path", "file_path", "filename", "filepath", "uri"];

/// What is in the names of its lines.
const IN_LINES: [&str; 5] = ["line", "start", "end", "region", "range"];

/// Whether the last of the names that lead to a value is this one.
fn is_last(names: &str, wanted: &str) -> bool {
    names.rsplit('/').next() == Some(wanted)
}

/// Whether a value says something besides numbers: a function, a class, words.
fn is_word(value: &str) -> bool {
    value.contains(char::is_alphabetic) && !matches!(value, "true" | "false")
}

/// The texts and numbers in an object, each with the names that lead to it.
fn leaves(node: &Node, names: &str, depth: usize, found: &mut Vec<(String, String)>) {
    for (name, value) in node.members().iter().filter(|_| depth > 0) {
        let names = format!("{names}/{}", folded(name));
        match scalar(value) {
            Some(text) => found.extend(Some((names, text)).filter(|(_, text)| !text.trim().is_empty())),
            None if value.items().is_some() => found.extend(text(value, "-").map(|text| (names, text))),
            None => leaves(value, &names, depth.saturating_sub(1), found),
        }
    }
}
