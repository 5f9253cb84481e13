//! A JSON document within its limits.

use endmark_envelope::{FieldPath, Size, grapheme_boundary};
use serde_json::Value;

use super::json::{Cut, Shortener, Tape, cost};
use super::limits::Limits;
use super::marker::{Omitted, grouped};

/// A document within its limits, and what is cut in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Document {
    pub(super) text: String,
    pub(super) cuts: Vec<Cut>,
}

/// Caps a JSON text; none if it is none.
pub(super) fn cap(text: &str, limits: &Limits, path: &FieldPath) -> Option<Document> {
    let mut tape = Tape::default();
    tape.read(text, limits.max_items)?;
    let nodes = tape.nodes();
    if limits.admits(text) && !nodes[0].has_long_list {
        return Some(Document { text: text.to_owned(), cuts: Vec::new() });
    }
    let is_object = text.trim_start_matches('\u{FEFF}').trim_start().starts_with('{');
    Some(limits.fit(
        |most| {
            let mut shortener = Shortener::new(text, nodes, limits);
            match shortener.value(0, most, path, 0) {
                Some(text) => Document { text, cuts: shortener.cuts },
                None => Document::preview(text, Size::of(text), is_object, most, limits, path),
            }
        },
        |document| &document.text,
    ))
}

impl Document {
    /// What stands for a document that cannot be made smaller, or is too large to be taken apart: the one change of
    /// shape (CX-5). Of the text its beginning is enough.
    pub(super) fn preview(
        beginning: &str,
        original: Size,
        is_object: bool,
        most: usize,
        limits: &Limits,
        path: &FieldPath,
    ) -> Self {
        let error = format!(
            "The result is too large to be shown ({} characters). Ask for less: with a filter, with fewer fields, or in pages.",
            grouped(original.chars)
        );
        let handle = limits.shown_handle().map_or(Value::Null, Value::from);
        let written = |preview: &str| {
            let preview = Value::from(preview);
            format!(
                r#"{{"error": "{error}", "preview": {preview}, "original_chars": {}, "handle": {handle}}}"#,
                original.chars
            )
        };
        let room = most.checked_sub(written("").len());
        let text = room.map(|room| {
            let mut left = room;
            let fits = |character: &char| {
                let rest = left.checked_sub(cost(*character, limits));
                left = rest.unwrap_or(left);
                rest.is_some()
            };
            let bytes = beginning.chars().take_while(fits).map(char::len_utf8).sum();
            written(&beginning[..grapheme_boundary(beginning, bytes)])
        });
        let none = || {
            let of = 1;
            let omitted = Omitted { items: of, of, handle: limits.shown_handle().map(str::to_owned) };
            if is_object { omitted.item() } else { format!("[{}]", omitted.item()) }
        };
        let text = text.unwrap_or_else(none);
        let cut = Cut { path: path.clone(), returned: Size::default(), original, items: None };
        Self { text, cuts: vec![cut] }
    }
}
