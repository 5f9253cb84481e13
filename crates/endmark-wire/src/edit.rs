//! Edits JSON bytes in place. Anything not edited stays byte for byte: unknown fields, order, numbers,
//! whitespace and duplicates.
//!
//! Edits refer to the original bytes and are applied together. If a key occurs twice, the last occurrence is
//! edited, because most parsers use it. A removal removes all occurrences, because otherwise an earlier one
//! would take effect.

mod container;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;

use crate::json::{JsonError, Kind, PathStep, PathSteps, Value, append_escaped, quote};
use container::ContainerEdit;

/// Error of an impossible edit. The document is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The bytes to edit are not JSON.
    #[error("the document is not JSON: {0}")]
    Document(#[source] JsonError),
    /// The new value is not JSON.
    #[error("the new value is not JSON: {0}")]
    Value(#[source] JsonError),
    /// The path leads nowhere, or to a value of the wrong type for the edit.
    #[error("no place for this edit at `{0}`")]
    InvalidPath(String),
}

/// Edits of one JSON document, collected and then written out at once.
///
/// ```
/// use endmark_wire::edit::Edits;
/// let mut edits = Edits::new(br#"{ "n": 2,  "max_tokens":1e2, "messages": [ {"role":"user"} ] }"#)?;
/// edits.set("max_tokens", "4096")?;
/// edits.remove("n")?;
/// edits.push("messages", r#"{"role":"assistant"}"#)?;
/// edits.set("stream", "true")?;
/// let expected = r#"{ "max_tokens":4096, "messages": [ {"role":"user"},{"role":"assistant"} ],"stream":true }"#;
/// assert_eq!(String::from_utf8(edits.finish())?, expected);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Edits<'a> {
    root: Value<'a>,
    patches: Vec<Patch>,
    containers: Vec<ContainerEdit<'a>>,
    /// The index into `containers`, by the offset of the container's first byte.
    container_indices: HashMap<usize, usize>,
}

/// Bytes that replace a span of the document.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Patch {
    span: Range<usize>,
    text: String,
}

impl<'a> Edits<'a> {
    /// Creates edits of these bytes, which must be one JSON document.
    pub fn new(bytes: &'a [u8]) -> Result<Self, EditError> {
        Value::parse(bytes).map(Self::for_document).map_err(EditError::Document)
    }

    /// Creates edits of the document that contains this value.
    pub(crate) fn for_document(root: Value<'a>) -> Self {
        Self { root, patches: Vec::new(), containers: Vec::new(), container_indices: HashMap::new() }
    }

    /// Returns the document without the edits.
    pub fn original(&self) -> Value<'a> {
        self.root
    }

    /// Replaces the value at this path. A missing field becomes the last field of its object.
    pub fn set(&mut self, path: &str, json: &str) -> Result<(), EditError> {
        Value::parse_str(json).map_err(EditError::Value)?;
        match self.parent(path)? {
            (parent, PathStep::Field(name)) if parent.kind() == Kind::Object => {
                self.set_field(parent, name, json);
            }
            (parent, PathStep::Item(position)) => match parent.item(position) {
                Some(item) => self.replace(item, json),
                None => return Err(EditError::InvalidPath(path.to_owned())),
            },
            _ => return Err(EditError::InvalidPath(path.to_owned())),
        }
        Ok(())
    }

    /// Removes the field at this path, including duplicates. Does nothing if the field is absent.
    pub fn remove(&mut self, path: &str) -> Result<(), EditError> {
        match self.parent(path)? {
            (parent, PathStep::Field(name)) if parent.kind() == Kind::Object => {
                self.remove_field(parent, name);
            }
            _ => return Err(EditError::InvalidPath(path.to_owned())),
        }
        Ok(())
    }

    /// Appends an item to the array at this path, right after its last one.
    pub fn push(&mut self, path: &str, json: &str) -> Result<(), EditError> {
        Value::parse_str(json).map_err(EditError::Value)?;
        match self.root.at(path) {
            Some(array) if array.kind() == Kind::Array => self.push_item(array, json),
            _ => return Err(EditError::InvalidPath(path.to_owned())),
        }
        Ok(())
    }

    /// Appends characters to the string at this path. Its existing characters stay as written.
    pub fn extend_string(&mut self, path: &str, text: &str) -> Result<(), EditError> {
        match self.root.at(path) {
            Some(string) if string.kind() == Kind::String => self.append_text(string, text),
            _ => return Err(EditError::InvalidPath(path.to_owned())),
        }
        Ok(())
    }

    /// Returns the document with its edits.
    ///
    /// An edit inside a value that is itself replaced or removed has no effect.
    pub fn finish(self) -> Vec<u8> {
        let document = self.root.document();
        let mut patches = self.patches;
        for container in &self.containers {
            container.add_patches(&mut patches);
        }
        // Spans are disjoint or nested. An outer span sorts first and takes precedence.
        patches.sort_by_key(|patch| (patch.span.start, Reverse(patch.span.end)));
        let added: usize = patches.iter().map(|patch| patch.text.len()).sum();
        let mut bytes = Vec::with_capacity(document.len() + added);
        let mut written = 0;
        for (position, patch) in patches.iter().enumerate() {
            // Of several replacements of one value, the last counts.
            let is_replaced = patches.get(position + 1).is_some_and(|next| next.span == patch.span);
            if is_replaced && !patch.span.is_empty() {
                continue;
            }
            if patch.span.start >= written {
                bytes.extend_from_slice(
                    document.get(written..patch.span.start).unwrap_or_default().as_bytes(),
                );
                bytes.extend_from_slice(patch.text.as_bytes());
                written = patch.span.end;
            }
        }
        bytes.extend_from_slice(document.get(written..).unwrap_or_default().as_bytes());
        bytes
    }

    /// Replaces a value.
    pub(crate) fn replace(&mut self, value: Value<'a>, json: &str) {
        self.patches.push(Patch { span: value.span(), text: json.to_owned() });
    }

    /// Replaces or inserts a field of this object.
    pub(crate) fn set_field(&mut self, object: Value<'a>, name: &str, json: &str) {
        let container = self.container_mut(object);
        container.removed.retain(|removed| removed != name);
        match object.field(name) {
            Some(value) => self.replace(value, json),
            None => container.add_field(name, json),
        }
    }

    /// Removes all fields of this name from this object.
    pub(crate) fn remove_field(&mut self, object: Value<'a>, name: &str) {
        self.container_mut(object).remove_field(name);
    }

    /// Appends an item to this array.
    pub(crate) fn push_item(&mut self, array: Value<'a>, json: &str) {
        self.container_mut(array).added.push((None, json.to_owned()));
    }

    /// Removes the item at this position of this array.
    pub(crate) fn remove_item(&mut self, array: Value<'a>, position: usize) {
        self.container_mut(array).removed_items.insert(position);
    }

    /// Inserts an item into this array before the one at this position, or at its end. Several items at one position
    /// keep their order.
    pub(crate) fn insert_item(&mut self, array: Value<'a>, position: usize, json: &str) {
        self.container_mut(array).insertions.entry(position).or_default().push(json.to_owned());
    }

    /// Appends characters to this string.
    pub(crate) fn append_text(&mut self, string: Value<'a>, text: &str) {
        let quote = string.span().end.saturating_sub(1);
        let mut escaped = String::with_capacity(text.len());
        append_escaped(&mut escaped, text);
        self.patches.push(Patch { span: quote..quote, text: escaped });
    }

    /// Sets a string to this text. If the text extends the current one, the current characters stay as written.
    pub(crate) fn set_text(&mut self, value: Value<'a>, text: &str) {
        let held = value.decode().filter(|held| held.exact);
        match held.as_ref().and_then(|held| text.strip_prefix(held.text.as_ref())) {
            Some("") => {}
            Some(rest) => self.append_text(value, rest),
            None => self.replace(value, &quote(text)),
        }
    }

    /// Sets several strings so that together they form this text. Strings that match the beginning of the
    /// text stay. The first string that does not match, or else the last string, gets the rest.
    pub(crate) fn set_texts(&mut self, values: &[Value<'a>], text: &str) {
        let mut rest = text;
        for (position, value) in values.iter().enumerate() {
            let held = value.text().unwrap_or_default();
            match rest.strip_prefix(held.as_ref()) {
                Some(next) if position + 1 < values.len() => rest = next,
                _ => self.set_text(*value, std::mem::take(&mut rest)),
            }
        }
    }

    fn container_mut(&mut self, value: Value<'a>) -> &mut ContainerEdit<'a> {
        // The offset at which a value begins identifies it within the document.
        let next = self.containers.len();
        let position = *self.container_indices.entry(value.span().start).or_insert(next);
        if position == next {
            self.containers.push(ContainerEdit::new(value));
        }
        &mut self.containers[position]
    }

    /// Returns the value to which the path's last step applies, and that step.
    fn parent<'p>(&self, path: &'p str) -> Result<(Value<'a>, PathStep<'p>), EditError> {
        let no_place = || EditError::InvalidPath(path.to_owned());
        let mut steps = PathSteps::new(path).peekable();
        let mut value = self.root;
        while let Some(step) = steps.next() {
            if steps.peek().is_none() {
                return Ok((value, step));
            }
            value = match step {
                PathStep::Field(name) => value.field(name),
                PathStep::Item(position) => value.item(position),
                PathStep::Invalid => None,
            }
            .ok_or_else(no_place)?;
        }
        Err(no_place())
    }
}

#[cfg(test)]
mod tests;
