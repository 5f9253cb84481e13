//! Whether a corrected document keeps what was received (PC-6).
//!
//! A correction is for the form: what stood complete in the received text is there in the corrected one, at the same
//! path and with the same value. It may change or drop a value only where the schema demands that: where the
//! corrected document with the received value in its place is refused.

use std::collections::BTreeMap;

use endmark_text::{CompleteError, Format, UnfinishedKind, complete, replace_lone_surrogates};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::stitch::is_same_value;

/// Deeper documents are not compared: `serde_json` reads none.
const MOST_LEVELS: usize = 120;
/// How many changes are tried against the schema; a correction with more of them is another document.
const MOST_DEMANDED: usize = 200;

/// The path (a JSON Pointer) of the first value that stood complete in the received text and is not in the corrected
/// document with the same value, though the schema does not demand that; none where all are kept. `is_refused` says whether
/// the schema refuses a document.
pub(crate) fn first_lost(
    received: &str,
    corrected: &str,
    is_refused: &dyn Fn(&str) -> bool,
) -> Option<String> {
    first_difference(received, corrected, Some(is_refused))
}

/// The path (a JSON Pointer) of the first value that stood complete in the received text and has none in its place in the
/// other one, whatever that is: `null` and the empty text are none.
pub(crate) fn first_missing(received: &str, other: &str) -> Option<String> {
    first_difference(received, other, None)
}

/// `is_refused` is given where values are compared, and not only whether they are there.
fn first_difference(
    received: &str,
    corrected: &str,
    is_refused: Option<&dyn Fn(&str) -> bool>,
) -> Option<String> {
    let received = received.strip_prefix('\u{feff}').unwrap_or(received);
    let completed = match complete(received.as_bytes(), &Format::Json) {
        Err(CompleteError::Malformed { index, .. }) => {
            complete(&received.as_bytes()[..received.floor_char_boundary(index)], &Format::Json)
        }
        completed => completed,
    };
    // Nothing was complete.
    let completed = completed.ok()?;
    let (received, corrected) =
        (&*replace_lone_surrogates(&completed.text), &*replace_lone_surrogates(corrected));
    let unfinished = completed.unfinished().next_back().filter(|place| {
        !place.left_out && matches!(place.kind, UnfinishedKind::String | UnfinishedKind::Number)
    });
    let comparison = Comparison {
        unfinished: unfinished.map(|place| place.pointer),
        document: serde_json::from_str(corrected).unwrap_or(Value::Null),
        is_refused,
    };
    let (Ok(before), Ok(after)) = (serde_json::from_str(received), serde_json::from_str(corrected)) else {
        return Some(String::new());
    };
    let mut state = State { path: String::new(), demanded: 0, levels: 0 };
    if comparison.keeps(before, after, &mut state) { None } else { Some(state.path) }
}

struct Comparison<'a> {
    /// The path of a string or a number that was cut: it goes on.
    unfinished: Option<&'a str>,
    document: Value,
    /// `None` where any value is kept by any other.
    is_refused: Option<&'a dyn Fn(&str) -> bool>,
}

/// Where the comparison stands; at a value that is lost it stays there.
struct State {
    path: String,
    demanded: usize,
    levels: usize,
}

type Members<'v> = BTreeMap<String, &'v RawValue>;
type Elements<'v> = Vec<&'v RawValue>;

impl Comparison<'_> {
    /// Whether all of a received value is in the corrected one, or has to be changed.
    fn keeps(&self, before: &RawValue, after: &RawValue, state: &mut State) -> bool {
        if self.unfinished == Some(state.path.as_str()) {
            return true;
        }
        if state.levels >= MOST_LEVELS {
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
            (Some(b'{' | b'['), _) if self.is_refused.is_none() => false,
            _ if self.is_refused.is_none() => {
                !matches!(after.get(), "null" | "\"\"") || after.get() == before.get()
            }
            _ => is_same_value(before.get(), after.get()) || self.is_demanded(before, state),
        };
        state.levels -= 1;
        kept
    }

    fn keeps_child(
        &self,
        step: &str,
        before: &RawValue,
        after: Option<&RawValue>,
        state: &mut State,
    ) -> bool {
        let length = state.path.len();
        state.path.push('/');
        state.path.push_str(step);
        let kept = match after {
            Some(after) => self.keeps(before, after, state),
            None => self.unfinished == Some(state.path.as_str()) || self.is_demanded(before, state),
        };
        if kept {
            state.path.truncate(length);
        }
        kept
    }

    /// Whether the schema refuses the corrected document with the received value in its place.
    fn is_demanded(&self, before: &RawValue, state: &mut State) -> bool {
        state.demanded += 1;
        let Some(is_refused) = self.is_refused else { return false };
        let (true, Ok(value)) = (state.demanded <= MOST_DEMANDED, serde_json::from_str(before.get())) else {
            return false;
        };
        let mut document = self.document.clone();
        put_back(&mut document, &state.path, value) && is_refused(&document.to_string())
    }
}

fn read<'v, T: serde::Deserialize<'v>>(value: &'v RawValue) -> Option<T> {
    serde_json::from_str(value.get()).ok()
}

/// Puts a value in its place, or behind the last element of its array; false where it has none.
fn put_back(document: &mut Value, path: &str, value: Value) -> bool {
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
    use super::first_lost;

    /// Nothing is refused.
    fn lost(received: &str, corrected: &str) -> Option<String> {
        first_lost(received, corrected, &|_| false)
    }

    #[test]
    fn what_stood_complete_is_there_with_the_same_value() {
        for (received, corrected) in [
            (r#"{"id": 7, "name": "Ada", "tags": ["x"#, r#"{"id": 7, "name": "Ada", "tags": ["xy"]}"#),
            (r#"{"id": 7, "size": 12"#, r#"{"size": 120, "id": 7}"#),
            (r#"{"a": "\u00e9", "n": 1.50"}"#, r#"{"a": "é", "n": 1.5}"#),
            (r#"{"a": [1, 2], "b": {"#, r#"{"b": {}, "a": [1, 2, 3]}"#),
            (r#"{"a": "one" "b": 2}"#, r#"{"a": "one", "b": 3}"#),
            ("", "{}"),
        ] {
            assert_eq!(lost(received, corrected), None, "{received} {corrected}");
        }
        for (received, corrected, path) in [
            (r#"{"id": 7, "name": "Ada", "tags": ["x"#, r#"{"id": 8, "name": "Ada", "tags": []}"#, "/id"),
            (r#"{"id": 7, "name": "Ada", "tags": ["x"#, r#"{"id": 7, "tags": ["x"]}"#, "/name"),
            (r#"{"a": [1, 2], "b": "#, r#"{"a": [1], "b": 1}"#, "/a/1"),
            (r#"{"a/b": {"~": [{}]}, "b": "#, r#"{"a/b": {"~": [[]]}, "b": 1}"#, "/a~1b/~0/0"),
            (r#"{"n": 12345678901234567890123, "#, r#"{"n": 12345678901234567890124}"#, "/n"),
            ("[1, 2", "{}", ""),
            (r#"{"a": "one" "b": 2}"#, r#"{"a": "two", "b": 2}"#, "/a"),
        ] {
            assert_eq!(lost(received, corrected).as_deref(), Some(path), "{received} {corrected}");
        }
    }

    #[test]
    fn what_the_schema_refuses_may_change() {
        let no_text = |document: &str| document.contains("\"age\":\"");
        let received = r#"{"age": "12", "name": "Ada"}"#;
        assert_eq!(first_lost(received, r#"{"age": 12, "name": "Ada"}"#, &no_text), None);
        let changed = r#"{"age": 12, "name": "Eva"}"#;
        assert_eq!(first_lost(received, changed, &no_text).as_deref(), Some("/name"));
        // A member that is not allowed is put back to see that, and so is what became another kind of value.
        let no_extra = |document: &str| document.contains("extra");
        assert_eq!(first_lost(r#"{"a": 1, "extra": 2}"#, r#"{"a": 1}"#, &no_extra), None);
        let no_list = |document: &str| document.starts_with('[');
        assert_eq!(first_lost("[1, 2]", r#"{"items": [1, 2]}"#, &no_list), None);
    }

    #[test]
    fn what_cannot_be_compared_is_not_taken_for_kept() {
        let deep = |depth: usize| ["[".repeat(depth), "]".repeat(depth)].concat();
        assert_eq!(lost(&deep(100), &deep(100)), None);
        assert!(lost(&deep(100_000), &deep(100_000)).is_some());
    }
}
