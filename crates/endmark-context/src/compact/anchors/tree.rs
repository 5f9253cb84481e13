//! Collects anchors in JSON: every value with the name of its field.

use std::borrow::Cow;
use std::collections::HashSet;

use endmark_text::replace_lone_surrogates;
use serde_json::Value;

use super::text::{MAX_VALUE_CHARS, add_exact_values, clip_line, is_error_line};
use super::{Anchor, AnchorKind, AnchorSource, WordShape, word_shape};

/// A longer string is not a value, but text in which anchors are searched.
const MAX_STRING_CHARS: usize = 80;
/// A field name with at least this many digits is an id, whatever its value is.
const MIN_ID_DIGITS: usize = 3;
/// States of an unfinished step in a plan.
const OPEN_STATES: [&str; 5] = ["pending", "in_progress", "todo", "open", "not_started"];
/// Names of fields that may contain the description of a step.
const STEP_NAMES: [&str; 6] = ["content", "step", "title", "text", "task", "description"];

/// Adds the names of all fields in a JSON text.
pub(super) fn collect_names(text: &str, names: &mut HashSet<String>) {
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

/// Parses a JSON object or array. Returns `None` for any other text.
pub(super) fn parse(text: &str) -> Option<Value> {
    let text = text.trim();
    if !text.starts_with(['{', '[']) {
        return None;
    }
    serde_json::from_str(&replace_lone_surrogates(text)).ok()
}

/// Adds the anchors of a JSON value.
pub(super) fn add_json_anchors(value: &Value, place: AnchorSource, anchors: &mut Vec<Anchor<'_>>) {
    AnchorCollector { place, anchors }.collect_value("", value);
}

struct AnchorCollector<'w, 'a> {
    place: AnchorSource,
    anchors: &'w mut Vec<Anchor<'a>>,
}

impl AnchorCollector<'_, '_> {
    fn collect_value(&mut self, name: &str, value: &Value) {
        match value {
            Value::Object(fields) => {
                if let Some(step) = open_step(fields) {
                    self.push(AnchorKind::Todo, "", step);
                }
                let is_table = is_table(fields);
                for (inner, value) in fields {
                    // In a table object, the field names are ids. They are values of the field that contains
                    // the object.
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
            WordShape::Url => AnchorKind::Url,
            WordShape::File => AnchorKind::File,
            WordShape::Number => AnchorKind::Number,
            // In the arguments of a call, an error word is not an error. It may be a filter for errors.
            WordShape::Word
                if self.place == AnchorSource::Result
                    && (name.eq_ignore_ascii_case("error") || is_error_line(text)) =>
            {
                AnchorKind::Error
            }
            WordShape::Identifier | WordShape::Date | WordShape::Word => AnchorKind::Identifier,
        };
        self.push(kind, name, text);
    }

    fn push(&mut self, kind: AnchorKind, name: &str, value: &str) {
        let value = clip_line(value, MAX_VALUE_CHARS);
        if !value.is_empty() {
            let name = clip_line(name, MAX_STRING_CHARS);
            let key = if name.contains(": ") { name.replace(": ", ":") } else { name.into_owned() };
            let value = Cow::Owned(value.into_owned());
            self.anchors.push(Anchor { kind, key: Cow::Owned(key), value, place: self.place });
        }
    }
}

/// Whether an object is a table: it has several values, all of which are objects with the same first two
/// field names.
fn is_table(fields: &serde_json::Map<String, Value>) -> bool {
    let first_fields =
        |row: &Value| row.as_object().map(|row| row.keys().take(2).cloned().collect::<Vec<_>>());
    let mut rows = fields.values().map(first_fields);
    let Some(Some(first)) = rows.next() else { return false };
    fields.len() > 1 && !first.is_empty() && rows.all(|row| row.as_ref() == Some(&first))
}

/// Whether a name is the id of a row instead of a field name.
fn is_row_id(name: &str, value: &Value) -> bool {
    let digits = name.bytes().filter(u8::is_ascii_digit).count();
    let has_fields = matches!(value, Value::Object(_) | Value::Array(_));
    digits > 0
        && (has_fields || digits >= MIN_ID_DIGITS)
        && matches!(word_shape(name), WordShape::Identifier | WordShape::Date)
}

/// Returns the description of an unfinished step, if the object is a step with a state. Agents write plans
/// this way.
fn open_step(fields: &serde_json::Map<String, Value>) -> Option<&str> {
    let state = ["status", "state"].iter().find_map(|name| fields.get(*name)?.as_str())?;
    if !OPEN_STATES.contains(&state) {
        return None;
    }
    STEP_NAMES.iter().find_map(|name| fields.get(*name)?.as_str())
}
