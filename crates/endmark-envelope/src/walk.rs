//! Visits every value of a document with its path, without recursion.

use std::{iter, slice};

use serde_json::{Map, Value, map};

use crate::path::{FieldPath, Segment};

/// The members of the object that contains a value.
pub(crate) type Members = Map<String, Value>;

enum OpenContainer<'a> {
    List(iter::Enumerate<slice::Iter<'a, Value>>),
    Object(&'a Members, map::Iter<'a>),
}

impl<'a> OpenContainer<'a> {
    fn new(value: &'a Value) -> Option<Self> {
        match value {
            Value::Array(items) => Some(Self::List(items.iter().enumerate())),
            Value::Object(members) => Some(Self::Object(members, members.iter())),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        }
    }

    /// Returns the next value, its step, and the object that contains it.
    fn next(&mut self) -> Option<(Segment, &'a Value, Option<&'a Members>)> {
        match self {
            Self::List(items) => items.next().map(|(index, item)| (Segment::Index(index), item, None)),
            Self::Object(members, iterator) => {
                iterator.next().map(|(name, member)| (Segment::Key(name.clone()), member, Some(*members)))
            }
        }
    }
}

/// Visits a value and everything in it. For each value, passes its path and the object that contains it.
pub(crate) fn walk<'a>(
    root: &'a Value,
    at: FieldPath,
    mut visit: impl FnMut(&FieldPath, &'a Value, Option<&'a Members>),
) {
    let mut path = at;
    visit(&path, root, None);
    let mut open: Vec<OpenContainer<'a>> = OpenContainer::new(root).into_iter().collect();
    while let Some(frame) = open.last_mut() {
        let Some((segment, value, members)) = frame.next() else {
            open.pop();
            path.pop();
            continue;
        };
        path.push(segment);
        visit(&path, value, members);
        match OpenContainer::new(value) {
            Some(inner) => open.push(inner),
            None => path.pop(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_visited_once_in_order() {
        let document = serde_json::json!({"a": [1, {"b": []}], "c d": {}});
        let mut seen = Vec::new();
        walk(&document, FieldPath::data(), |path, value, members| {
            assert_eq!(path.without_first().find(&document), Some(value));
            seen.push((path.to_string(), members.is_some()));
        });
        let expected = [
            ("data", false),
            ("data.a", true),
            ("data.a[0]", false),
            ("data.a[1]", false),
            ("data.a[1].b", true),
            (r#"data["c d"]"#, true),
        ];
        assert_eq!(seen, expected.map(|(path, is_member)| (path.to_owned(), is_member)));
    }
}
