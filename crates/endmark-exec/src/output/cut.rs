//! Values in the data that are known to be incomplete. (EN-2)

use endmark_envelope::{FieldPath, Size, TRUNCATION_MARKER, Warning};
use serde_json::Value;

/// A value in the data that is incomplete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IncompleteValue {
    /// The JSON Pointer of the value within the data.
    pub(crate) pointer: String,
    pub(crate) original: Option<Size>,
    /// The reason in one sentence.
    pub(crate) message: String,
}

impl IncompleteValue {
    /// Returns the path of the value from the root of the document.
    pub(super) fn path(&self, data: &Value) -> FieldPath {
        pointer_to_path(data, &self.pointer)
    }

    /// Adds the truncation marker to a text, and returns the warning about it. `found` is an earlier warning
    /// about the same text. If there is one, its size does not include the marker, and it may contain the
    /// original size.
    pub(super) fn mark(&self, data: &mut Value, path: FieldPath, found: Option<Warning>) -> Warning {
        let size = match data.pointer_mut(&self.pointer) {
            Some(Value::String(text)) => {
                let size = Size::of(text);
                if found.is_none() || !text.ends_with(TRUNCATION_MARKER) {
                    text.push_str(TRUNCATION_MARKER);
                }
                size
            }
            Some(value) => Size::of(&value.to_string()),
            None => Size::default(),
        };
        let warning = match found {
            Some(found) => Warning { message: self.message.clone(), ..found },
            None => Warning::field_truncated(path, size, self.message.as_str()),
        };
        match self.original {
            Some(original) => warning.with_original(original),
            None => warning,
        }
    }
}

/// Converts a JSON Pointer within the data to a path. The value does not have to exist.
fn pointer_to_path(data: &Value, pointer: &str) -> FieldPath {
    let mut path = FieldPath::data();
    let mut value = Some(data);
    for token in pointer.split('/').skip(1) {
        let name = token.replace("~1", "/").replace("~0", "~");
        let index = match value {
            Some(Value::Array(_)) => name.parse::<usize>().ok(),
            _ => None,
        };
        (path, value) = if let Some(index) = index {
            (path.index(index), value.and_then(|list| list.get(index)))
        } else {
            let inner = value.and_then(|object| object.get(&name));
            (path.key(name), inner)
        };
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pointer_becomes_a_path_even_without_a_target() {
        let data = json!({"a/b": [{"0": "x"}], "0": 1});
        for (pointer, expected) in [
            ("", "data"),
            ("/a~1b/0/0", r#"data["a/b"][0]["0"]"#),
            ("/a~1b/7", r#"data["a/b"][7]"#),
            ("/0", r#"data["0"]"#),
            ("/none/of", "data.none.of"),
        ] {
            assert_eq!(pointer_to_path(&data, pointer).to_string(), expected);
        }
    }
}
