//! Finds the value at a JSON Pointer (RFC 6901), and returns it as it is written in the text.

use crate::cap::decoded_json_string;
use crate::cap::json_tape::{JsonTape, Kind};

/// Error of a pointer that does not lead to a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PointerError {
    /// The text is not a JSON Pointer.
    #[error("`{0}` is not a JSON Pointer: it begins with `/`, and `~` is written `~0`, `/` in a key `~1`")]
    Form(String),
    /// The output is not a JSON document.
    #[error("the output is not a JSON document, so a pointer cannot be resolved in it")]
    NotJson,
    /// There is no value at the pointer.
    #[error("there is nothing at `{pointer}`: `{at}` is {what}")]
    NotFound {
        /// The pointer.
        pointer: String,
        /// The longest beginning of the pointer that leads to a value.
        at: String,
        /// A description of that value.
        what: String,
    },
}

/// Returns the text of the value at a pointer.
///
/// ```
/// use endmark_context::read::resolve_pointer;
/// assert_eq!(resolve_pointer(r#"{"a": [1, 2.50]}"#, "/a/1"), Ok("2.50"));
/// assert!(resolve_pointer(r#"{"a": [1]}"#, "/a/7").unwrap_err().to_string().contains("a list of 1"));
/// ```
pub fn resolve_pointer<'a>(text: &'a str, pointer: &str) -> Result<&'a str, PointerError> {
    let form = || PointerError::Form(pointer.to_owned());
    let mut tape = JsonTape::default();
    tape.read(text, usize::MAX).ok_or(PointerError::NotJson)?;
    let nodes = tape.nodes();
    let mut node = 0;
    let mut at = String::new();
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return Err(form());
    }
    for step in pointer.split('/').skip(1) {
        let key = unescape_segment(step).ok_or_else(form)?;
        let own = &nodes[node];
        let mut child = node + 1;
        let mut found = None;
        let mut index = 0_u64;
        while child < own.next as usize && matches!(own.kind, Kind::Array | Kind::Object) {
            let is_list = own.kind == Kind::Array;
            let value = if is_list { child } else { child + 1 };
            let is_it = if is_list {
                key.parse() == Ok(index) && index.to_string() == key
            } else {
                let name = &text[nodes[child].begin as usize..nodes[child].end as usize];
                decoded_json_string(name).is_some_and(|name| name == key)
            };
            // If a key occurs twice, the last one counts, as in most JSON parsers.
            found = if is_it { Some(value) } else { found };
            (child, index) = (nodes[value].next as usize, index + 1);
        }
        node = found.ok_or_else(|| PointerError::NotFound {
            pointer: pointer.to_owned(),
            at: if at.is_empty() { "the document".to_owned() } else { at.clone() },
            what: match own.kind {
                Kind::Array => format!("a list of {}", own.count),
                Kind::Object => "an object without that key".to_owned(),
                Kind::Null | Kind::Bool | Kind::Number | Kind::String => {
                    "neither a list nor an object".to_owned()
                }
            },
        })?;
        at = format!("{at}/{step}");
    }
    Ok(&text[nodes[node].begin as usize..nodes[node].end as usize])
}

fn unescape_segment(step: &str) -> Option<String> {
    let mut parts = step.split('~');
    let mut key = parts.next()?.to_owned();
    for part in parts {
        let (sign, rest) = part
            .strip_prefix('0')
            .map(|rest| ('~', rest))
            .or_else(|| part.strip_prefix('1').map(|rest| ('/', rest)))?;
        key.push(sign);
        key.push_str(rest);
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_follow_the_rfc() {
        let text =
            r#"{"foo": ["bar", "baz"], "": 0, "a/b": 1, "m~n": 8, "x": {"y": [[], {"z": 1.0}]}, "é": 3}"#;
        for (pointer, value) in [
            ("", text),
            ("/foo", r#"["bar", "baz"]"#),
            ("/foo/0", r#""bar""#),
            ("/", "0"),
            ("/a~1b", "1"),
            ("/m~0n", "8"),
            ("/x/y/1/z", "1.0"),
            ("/é", "3"),
        ] {
            assert_eq!(resolve_pointer(text, pointer), Ok(value), "{pointer}");
        }
        for pointer in ["foo", "/foo/2", "/foo/00", "/foo/-", "/bar", "/foo/0/x", "/m~2n", "/m~n"] {
            assert!(resolve_pointer(text, pointer).is_err(), "{pointer}");
        }
        assert_eq!(resolve_pointer("[1", "/0"), Err(PointerError::NotJson));
    }
}
