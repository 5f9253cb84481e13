//! Checks whether a corrected document keeps the received values (PC-6).
//!
//! A correction should only change the form. Each value that was received completely must be in the corrected
//! document, unchanged and at the same path. It may differ or be missing only if the schema requires this:
//! the schema must reject the corrected document with the received value restored.

use std::collections::BTreeMap;

use endmark_text::{CompleteError, CompletedText, Format, UnfinishedKind, complete, replace_lone_surrogates};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::stitch::is_same_value;

/// Maximum nesting of compared documents. `serde_json` cannot read deeper ones.
const MAX_COMPARED_LEVELS: usize = 120;
/// Maximum number of changes that are checked against the schema. A document with more changes is rejected.
const MAX_SCHEMA_CHANGES: usize = 200;

/// Returns the path (a JSON Pointer) of the first complete received value that is lost in the corrected
/// document although the schema does not require this. Returns `None` if no such value is lost. `is_refused`
/// reports whether the schema rejects a document.
pub(crate) fn first_lost(
    received: &str,
    corrected: &str,
    is_refused: &dyn Fn(&str) -> bool,
) -> Option<String> {
    first_difference(received, corrected, ComparisonMode::Extensions(is_refused))
}

/// Returns the path of the first complete received value that differs in a regenerated reply. The value at
/// the cut may differ, because a model rarely repeats it in the same words.
pub(crate) fn first_changed(received: &str, again: &str) -> Option<String> {
    first_difference(received, again, ComparisonMode::Complete)
}

/// Returns the path (a JSON Pointer) of the first complete received value without a counterpart in the other
/// text. `null` and the empty string do not count as values.
pub(crate) fn first_missing(received: &str, other: &str) -> Option<String> {
    first_difference(received, other, ComparisonMode::Presence)
}

/// How values are compared.
#[derive(Clone, Copy)]
enum ComparisonMode<'a> {
    /// Any value may replace a received one.
    Presence,
    /// Complete values must be equal.
    Complete,
    /// Values must be equal unless the schema rejects the received one. A value at the cut must be extended.
    Extensions(&'a dyn Fn(&str) -> bool),
}

fn first_difference(received: &str, corrected: &str, comparing: ComparisonMode<'_>) -> Option<String> {
    let received = received.strip_prefix('\u{feff}').unwrap_or(received);
    // If the received text cannot be closed, it contains no complete value.
    let (received, unfinished) = close_received(received)?;
    let (received, corrected) = (&*replace_lone_surrogates(&received), &*replace_lone_surrogates(corrected));
    let comparison = Comparison {
        unfinished,
        document: serde_json::from_str(corrected).unwrap_or(Value::Null),
        comparing,
    };
    let (Ok(before), Ok(after)) = (serde_json::from_str(received), serde_json::from_str(corrected)) else {
        return Some(String::new());
    };
    let mut state = ComparisonState { path: String::new(), required_count: 0, levels: 0 };
    if comparison.keeps(before, after, &mut state) { None } else { Some(state.path) }
}

/// Closes the received text, and also returns the path of the string or number at the cut.
fn close_received(received: &str) -> Option<(String, Option<String>)> {
    let completed = match complete(received.as_bytes(), &Format::Json) {
        Err(CompleteError::Malformed { index, .. }) => {
            // A number before an error, such as `0` in `012`, is not a valid beginning.
            complete(&received.as_bytes()[..received.floor_char_boundary(index)], &Format::Json).ok()?
        }
        completed => {
            let completed = completed.ok()?;
            let number = cut_value_path(&completed, UnfinishedKind::Number);
            // Add a space after the number, so that it counts as complete and its digits can be compared.
            let ended = number.and_then(|path| {
                Some((complete([received, " "].concat().as_bytes(), &Format::Json).ok()?.text, Some(path)))
            });
            if ended.is_some() {
                return ended;
            }
            completed
        }
    };
    let string = cut_value_path(&completed, UnfinishedKind::String);
    Some((completed.text, string))
}

/// Returns the path of the last unfinished value if it is of this kind.
fn cut_value_path(completed: &CompletedText, kind: UnfinishedKind) -> Option<String> {
    let last = completed.unfinished().next_back()?;
    (last.kind == kind).then(|| last.pointer.to_owned())
}

struct Comparison<'a> {
    /// The path of the string or number at the cut.
    unfinished: Option<String>,
    document: Value,
    comparing: ComparisonMode<'a>,
}

/// The state of the comparison. After a lost value, `path` remains at that value.
struct ComparisonState {
    path: String,
    required_count: usize,
    levels: usize,
}

type Members<'v> = BTreeMap<String, &'v RawValue>;
type Elements<'v> = Vec<&'v RawValue>;

impl Comparison<'_> {
    /// Whether the corrected document keeps a received value, or the schema requires the change.
    fn keeps(&self, before: &RawValue, after: &RawValue, state: &mut ComparisonState) -> bool {
        if self.unfinished.as_ref() == Some(&state.path) {
            return self.extends(before, after, state);
        }
        if state.levels >= MAX_COMPARED_LEVELS {
            return false;
        }
        let kinds = (before.get().as_bytes().first(), after.get().as_bytes().first());
        state.levels += 1;
        let kept = match kinds {
            (Some(b'{'), Some(b'{')) => {
                let (Some(before), Some(after)) = (read::<Members<'_>>(before), read::<Members<'_>>(after))
                else {
                    return false;
                };
                before.iter().all(|(name, value)| {
                    let step = name.replace('~', "~0").replace('/', "~1");
                    self.keeps_child(&step, value, after.get(name).copied(), state)
                })
            }
            (Some(b'['), Some(b'[')) => {
                let (Some(before), Some(after)) = (read::<Elements<'_>>(before), read::<Elements<'_>>(after))
                else {
                    return false;
                };
                before.iter().enumerate().all(|(index, value)| {
                    self.keeps_child(&index.to_string(), value, after.get(index).copied(), state)
                })
            }
            (Some(b'{' | b'['), _) if matches!(self.comparing, ComparisonMode::Presence) => false,
            _ if matches!(self.comparing, ComparisonMode::Presence) => {
                !matches!(after.get(), "null" | "\"\"") || after.get() == before.get()
            }
            _ => is_same_value(before.get(), after.get()) || self.is_change_required(before, state),
        };
        state.levels -= 1;
        kept
    }

    fn keeps_child(
        &self,
        step: &str,
        before: &RawValue,
        after: Option<&RawValue>,
        state: &mut ComparisonState,
    ) -> bool {
        let length = state.path.len();
        state.path.push('/');
        state.path.push_str(step);
        let kept = match after {
            Some(after) => self.keeps(before, after, state),
            // The value at the cut is incomplete, but a correction may not drop it.
            None if self.unfinished.as_ref() == Some(&state.path) => {
                !matches!(self.comparing, ComparisonMode::Extensions(_))
                    || self.is_change_required(before, state)
            }
            None => self.is_change_required(before, state),
        };
        if kept {
            state.path.truncate(length);
        }
        kept
    }

    /// Whether a value extends the one at the cut. A string must begin with the received characters, even if
    /// the schema forbids them: a correction once replaced 1,587 received characters with 35. Any other value
    /// may change only if the schema requires it.
    fn extends(&self, before: &RawValue, after: &RawValue, state: &mut ComparisonState) -> bool {
        if !matches!(self.comparing, ComparisonMode::Extensions(_)) {
            return true;
        }
        match (read::<String>(before), read::<String>(after)) {
            (Some(before), Some(after)) => after.starts_with(&before),
            (None, None) if is_number(after) => after.get().starts_with(before.get()),
            _ => self.is_change_required(before, state),
        }
    }

    /// Whether the schema rejects the corrected document with the received value restored.
    fn is_change_required(&self, before: &RawValue, state: &mut ComparisonState) -> bool {
        state.required_count += 1;
        let ComparisonMode::Extensions(is_refused) = self.comparing else { return false };
        let (true, Ok(value)) =
            (state.required_count <= MAX_SCHEMA_CHANGES, serde_json::from_str(before.get()))
        else {
            return false;
        };
        let mut document = self.document.clone();
        restore_value(&mut document, &state.path, value) && is_refused(&document.to_string())
    }
}

fn is_number(value: &RawValue) -> bool {
    value.get().starts_with(|character: char| character.is_ascii_digit() || character == '-')
}

fn read<'v, T: serde::Deserialize<'v>>(value: &'v RawValue) -> Option<T> {
    serde_json::from_str(value.get()).ok()
}

/// Restores a value at its path, or appends it to its array. Returns `false` if the path does not exist.
fn restore_value(document: &mut Value, path: &str, value: Value) -> bool {
    if let Some(place) = document.pointer_mut(path) {
        *place = value;
        return true;
    }
    let Some((parent, step)) = path.rsplit_once('/') else { return false };
    match document.pointer_mut(parent) {
        Some(Value::Object(members)) => {
            members.insert(step.replace("~1", "/").replace("~0", "~"), value);
            true
        }
        Some(Value::Array(elements)) => {
            elements.push(value);
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{first_changed, first_lost};

    /// Returns the first lost path, with a schema that accepts every document.
    fn first_lost_path(received: &str, corrected: &str) -> Option<String> {
        first_lost(received, corrected, &|_| false)
    }

    #[test]
    fn complete_values_are_kept_unchanged() {
        for (received, corrected) in [
            (r#"{"id": 7, "name": "Ada", "tags": ["x"#, r#"{"id": 7, "name": "Ada", "tags": ["xy"]}"#),
            (r#"{"id": 7, "size": 12"#, r#"{"size": 120, "id": 7}"#),
            (r#"{"a": "\u00e9", "n": 1.50"}"#, r#"{"a": "é", "n": 1.5}"#),
            (r#"{"a": [1, 2], "b": {"#, r#"{"b": {}, "a": [1, 2, 3]}"#),
            (r#"{"a": "one" "b": 2}"#, r#"{"a": "one", "b": 3}"#),
            (r#"{"a": "caf\u00e9 o"#, r#"{"a": "café open"}"#),
            (r#"{"n": 012"#, r#"{"n": 12}"#),
            ("", "{}"),
        ] {
            assert_eq!(first_lost_path(received, corrected), None, "{received} {corrected}");
        }
        for (received, corrected, path) in [
            (r#"{"id": 7, "name": "Ada", "tags": ["x"#, r#"{"id": 8, "name": "Ada", "tags": []}"#, "/id"),
            (r#"{"id": 7, "name": "Ada", "tags": ["x"#, r#"{"id": 7, "tags": ["x"]}"#, "/name"),
            (r#"{"a": [1, 2], "b": "#, r#"{"a": [1], "b": 1}"#, "/a/1"),
            (r#"{"a/b": {"~": [{}]}, "b": "#, r#"{"a/b": {"~": [[]]}, "b": 1}"#, "/a~1b/~0/0"),
            (r#"{"n": 12345678901234567890123, "#, r#"{"n": 12345678901234567890124}"#, "/n"),
            ("[1, 2", "{}", ""),
            (r#"{"a": "one" "b": 2}"#, r#"{"a": "two", "b": 2}"#, "/a"),
            // A string or number at the cut must be continued.
            (r#"{"id": 7, "tags": ["xyz"#, r#"{"id": 7, "tags": ["x"]}"#, "/tags/0"),
            (r#"{"id": 7, "tags": ["xyz"#, r#"{"id": 7, "tags": []}"#, "/tags/0"),
            (r#"{"id": 7, "size": 12"#, r#"{"id": 7, "size": 2}"#, "/size"),
            (r#"{"id": 7, "size": 12"#, r#"{"id": 7, "size": "12"}"#, "/size"),
        ] {
            assert_eq!(first_lost_path(received, corrected).as_deref(), Some(path), "{received} {corrected}");
        }
    }

    #[test]
    fn a_cut_string_may_change_only_its_type() {
        let no_text = |document: &str| document.contains("\"age\":\"");
        assert_eq!(first_lost(r#"{"age": "12"#, r#"{"age": 12}"#, &no_text), None);
        assert_eq!(first_lost(r#"{"age": "12"#, r#"{"age": "7"}"#, &no_text).as_deref(), Some("/age"));
        assert_eq!(first_changed(r#"{"id": 7, "name": "Ad"#, r#"{"id": 7, "name": "Eve"}"#), None);
    }

    #[test]
    fn values_that_violate_the_schema_may_change() {
        let no_text = |document: &str| document.contains("\"age\":\"");
        let received = r#"{"age": "12", "name": "Ada"}"#;
        assert_eq!(first_lost(received, r#"{"age": 12, "name": "Ada"}"#, &no_text), None);
        let changed = r#"{"age": 12, "name": "Eva"}"#;
        assert_eq!(first_lost(received, changed, &no_text).as_deref(), Some("/name"));
        // A value is also restored if the schema forbids its member, or if its type changed.
        let no_extra = |document: &str| document.contains("extra");
        assert_eq!(first_lost(r#"{"a": 1, "extra": 2}"#, r#"{"a": 1}"#, &no_extra), None);
        let no_list = |document: &str| document.starts_with('[');
        assert_eq!(first_lost("[1, 2]", r#"{"items": [1, 2]}"#, &no_list), None);
    }

    #[test]
    fn incomparable_values_do_not_count_as_kept() {
        let deep = |depth: usize| ["[".repeat(depth), "]".repeat(depth)].concat();
        assert_eq!(first_lost_path(&deep(100), &deep(100)), None);
        assert!(first_lost_path(&deep(100_000), &deep(100_000)).is_some());
    }
}
