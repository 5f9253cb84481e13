//! Anchors in JSON: every value with the name of its field.

use std::borrow::Cow;
use std::collections::HashSet;

use endmark_text::replace_lone_surrogates;
use serde_json::Value;

use super::text::{MAX_VALUE_CHARS, add_exact_values, clip, is_error_line};
use super::{Anchor, AnchorKind, Shape, Source, word_shape};

/// Longer strings (in characters) are not values, but texts that are searched for anchors.
const MAX_STRING_CHARS: usize = 80;
/// A name with at least this many digits is an id, regardless of its value.
const MIN_DIGITS: usize = 3;
/// States of an open step of a plan.
const OPEN_STATES: [&str; 5] = ["pending", "in_progress", "todo", "open", "not_started"];
/// Names of the field with the description of a step.
const STEP_NAMES: [&str; 6] = ["content", "step", "title", "text", "task", "description"];

/// Adds the names of all fields in a JSON text.
pub(super) fn names(text: &str, names: &mut HashSet<String>) {
    fn walk(value: &Value, found: &mut HashSet<String>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    if !found.contains(name) {
                        found.insert(name.clone());
                    }
                    walk(value, found);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| walk(item, found)),
            _ => {}
        }
    }
    if let Some(value) = parse(text) {
        walk(&value, names);
    }
}

/// Parses a text that is a JSON object or array.
pub(super) fn parse(text: &str) -> Option<Value> {
    let text = text.trim();
    if !text.starts_with(['{', '[']) {
        return None;
    }
    serde_json::from_str(&replace_lone_surrogates(text)).ok()
}

/// Adds the anchors of a JSON value.
pub(super) fn anchors(value: &Value, place: Source, anchors: &mut Vec<Anchor<'_>>) {
    Walk { place, anchors }.collect_value("", value);
}

struct Walk<'w, 'a> {
    place: Source,
    anchors: &'w mut Vec<Anchor<'a>>,
}

impl Walk<'_, '_> {
    fn collect_value(&mut self, name: &str, value: &Value) {
        match value {
            Value::Object(fields) => {
                if let Some(step) = open_step(fields) {
                    self.push(AnchorKind::Todo, "", step);
                }
                let is_table = is_table(fields);
                for (inner, value) in fields {
                    // The names in a table object are ids. They belong to the field that contains the object.
                    if is_table || is_row_id(inner, value) {
                        self.push(AnchorKind::Identifier, name, inner);
                        self.collect_value(name, value);
                    } else {
                        self.collect_value(inner, value);
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.collect_value(name, item)),
            Value::String(text) => self.collect_text(name, text),
            Value::Number(number) => self.push(AnchorKind::Number, name, &number.to_string()),
            Value::Bool(_) | Value::Null => {}
        }
    }

    fn collect_text(&mut self, name: &str, text: &str) {
        let is_long = text.chars().nth(MAX_STRING_CHARS).is_some() || text.contains('\n');
        if is_long {
            let mut found = Vec::new();
            text.lines().for_each(|line| add_exact_values(line, self.place, &mut found));
            for anchor in found {
                self.anchors.push(anchor.into_owned());
            }
            return;
        }
        let kind = match word_shape(text) {
            Shape::Url => AnchorKind::Url,
            Shape::File => AnchorKind::File,
            Shape::Number => AnchorKind::Number,
            // An error word in a call's arguments, such as a filter for errors, is not an error.
            Shape::Word
                if self.place == Source::Result
                    && (name.eq_ignore_ascii_case("error") || is_error_line(text)) =>
            {
                AnchorKind::Error
            }
            Shape::Identifier | Shape::Date | Shape::Word => AnchorKind::Identifier,
        };
        self.push(kind, name, text);
    }

    fn push(&mut self, kind: AnchorKind, name: &str, value: &str) {
        let value = clip(value, MAX_VALUE_CHARS);
        if !value.is_empty() {
            let name = clip(name, MAX_STRING_CHARS);
            let key = if name.contains(": ") { name.replace(": ", ":") } else { name.into_owned() };
            let value = Cow::Owned(value.into_owned());
            self.anchors.push(Anchor { kind, key: Cow::Owned(key), value, place: self.place });
        }
    }
}

/// Whether an object is a table: it has several values, which are all objects with the same first two field names.
fn is_table(fields: &serde_json::Map<String, Value>) -> bool {
    let first_fields =
        |row: &Value| row.as_object().map(|row| row.keys().take(2).cloned().collect::<Vec<_>>());
    let mut rows = fields.values().map(first_fields);
    let Some(Some(first)) = rows.next() else { return false };
    fields.len() > 1 && !first.is_empty() && rows.all(|row| row.as_ref() == Some(&first))
}

/// Whether a name is the id of a row and not a field name.
fn is_row_id(name: &str, value: &Value) -> bool {
    let digits = name.bytes().filter(u8::is_ascii_digit).count();
    let has_fields = matches!(value, Value::Object(_) | Value::Array(_));
    digits > 0
        && (has_fields || digits >= MIN_DIGITS)
        && matches!(word_shape(name), Shape::Identifier | Shape::Date)
}

/// Returns the open step in an object: a step with a state, as in agents' plans.
fn open_step(fields: &serde_json::Map<String, Value>) -> Option<&str> {
    let state = ["status", "state"].iter().find_map(|name| fields.get(*name)?.as_str())?;
    if !OPEN_STATES.contains(&state) {
        return None;
    }
    STEP_NAMES.iter().find_map(|name| fields.get(*name)?.as_str())
}
