//! Caps a JSON document.

use endmark_envelope::{FieldPath, Size, grapheme_boundary};
use serde_json::Value;

use super::json::{JsonNode, JsonTape, Kind, ShortenedValue, Shortener, char_size};
use super::limits::Limits;
use super::marker::{OmissionValue, group_thousands};

/// A capped document with its cuts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CappedDocument {
    pub(super) text: String,
    pub(super) cuts: Vec<ShortenedValue>,
}

/// Caps JSON. Returns `None` if the text is not JSON.
pub(super) fn cap_document(text: &str, limits: &Limits, path: &FieldPath) -> Option<CappedDocument> {
    let mut tape = JsonTape::default();
    tape.read(text, limits.max_items)?;
    let nodes = tape.nodes();
    if limits.fits(text) && !nodes[0].has_long_list {
        return Some(CappedDocument { text: text.to_owned(), cuts: Vec::new() });
    }
    let is_object = nodes[0].kind == Kind::Object;
    let original = Size::of(text);
    let error = if is_object { narrower_query_message(text, nodes, original) } else { String::new() };
    Some(limits.render_within(
        |most| {
            let mut shortener = Shortener::new(text, nodes, limits);
            let smaller = shortener.render_value(0, most, path, 0);
            // A program could mistake a root object that lost members for a complete one.
            let lacks_members =
                is_object && shortener.cuts.iter().any(|cut| cut.path == *path && cut.items.is_some());
            if lacks_members
                && let Some(preview) = CappedDocument::from_members(&error, text, nodes, most, limits, path)
            {
                return preview;
            }
            match smaller {
                Some(text) => CappedDocument { text, cuts: shortener.cuts },
                None => CappedDocument::from_beginning(&error, text, original, is_object, most, limits, path),
            }
        },
        |document| &document.text,
    ))
}

/// An error message names at most this many of the largest members.
const MAX_NAMED_MEMBERS: usize = 3;
const MAX_MEMBER_NAME_CHARS: usize = 60;

/// Returns a message that suggests a narrower query. It names the largest members and their sizes.
fn narrower_query_message(text: &str, nodes: &[JsonNode], original: Size) -> String {
    let mut members = Vec::new();
    let mut key = 1;
    while let (Some(name), Some(value)) = (nodes.get(key), nodes.get(key + 1)) {
        let source = |node: &JsonNode| &text[node.begin as usize..node.end as usize];
        members.push((source(value).chars().count() as u64, source(name)));
        key = value.next as usize;
    }
    let count = members.len() as u64;
    members.sort_by_key(|(size, _)| std::cmp::Reverse(*size));
    let named = members
        .iter()
        .filter(|(_, name)| name.chars().count() <= MAX_MEMBER_NAME_CHARS)
        .take(MAX_NAMED_MEMBERS);
    let named: Vec<String> = named
        .map(|(size, name)| {
            let name: String = serde_json::from_str(name).unwrap_or_default();
            format!("`{name}` ({} characters)", group_thousands(*size))
        })
        .collect();
    let largest =
        if named.is_empty() { String::new() } else { format!(" The largest: {}.", named.join(", ")) };
    format!(
        "The result is too large to be shown ({} characters in {} members), so that members are left out.{largest} Ask for less: name the fields that you need, leave out the largest ones, filter, or ask for pages.",
        group_thousands(original.chars),
        group_thousands(count)
    )
}

/// Returns an object that replaces a document whose form cannot be kept. No other function changes the form
/// of a document (CX-5).
fn replacement_json(error: &str, preview: &str, original: Size, limits: &Limits) -> String {
    let handle = limits.marker_handle().map_or(Value::Null, Value::from);
    format!(
        r#"{{"error": {}, "preview": {preview}, "original_chars": {}, "handle": {handle}}}"#,
        Value::from(error),
        original.chars
    )
}

impl CappedDocument {
    /// Returns a replacement for an object that loses members. Its preview contains the members that fit.
    /// Returns `None` if the message would need more room than the preview.
    fn from_members(
        error: &str,
        text: &str,
        nodes: &[JsonNode],
        most: usize,
        limits: &Limits,
        path: &FieldPath,
    ) -> Option<Self> {
        let original = Size::of(text);
        let form = limits.size(&replacement_json(error, "", original, limits));
        let room = most.min(limits.size(text)).checked_sub(form).filter(|room| *room >= form)?;
        let mut shortener = Shortener::new(text, nodes, limits);
        let preview = shortener.render_value(0, room, path, 0)?;
        let text = replacement_json(error, &preview, original, limits);
        Some(Self { text, cuts: shortener.cuts })
    }

    /// Returns a replacement that shows only the beginning of a document that cannot be parsed or shortened.
    /// `error` is used as the message if it needs at most half of the room.
    pub(super) fn from_beginning(
        error: &str,
        beginning: &str,
        original: Size,
        is_object: bool,
        most: usize,
        limits: &Limits,
        path: &FieldPath,
    ) -> Self {
        let short = format!(
            "The result is too large to be shown ({} characters). Ask for less: with a filter, with fewer fields, or in pages.",
            group_thousands(original.chars)
        );
        let form = |error: &str, preview: &str| {
            replacement_json(error, &Value::from(preview).to_string(), original, limits)
        };
        let is_short = error.is_empty() || limits.size(&form(error, "")) > most / 2;
        let written = |preview: &str| form(if is_short { &short } else { error }, preview);
        let room = most.checked_sub(limits.size(&written("")));
        let text = room.map(|room| {
            let mut left = room;
            let fits = |character: &char| {
                let rest = left.checked_sub(char_size(*character, limits));
                left = rest.unwrap_or(left);
                rest.is_some()
            };
            let bytes = beginning.chars().take_while(fits).map(char::len_utf8).sum();
            written(&beginning[..grapheme_boundary(beginning, bytes)])
        });
        let none = || {
            let of = 1;
            let omitted = OmissionValue { items: of, of, handle: limits.marker_handle().map(str::to_owned) };
            if is_object { omitted.item() } else { format!("[{}]", omitted.item()) }
        };
        let text = text.unwrap_or_else(none);
        let cut = ShortenedValue { path: path.clone(), returned: Size::default(), original, items: None };
        Self { text, cuts: vec![cut] }
    }
}
