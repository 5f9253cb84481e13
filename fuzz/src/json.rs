//! JSON views and edits in place (PC-9). The input is the document.

use endmark_text::Format;
use endmark_text::detect::Detector;
use endmark_wire::edit::Edits;
use endmark_wire::json::{Kind, Value};

use crate::input::{Numbers, is_value};

/// Maximum number of values that are checked in a document.
const MAX_VALUES: usize = 400;

/// Values that are written into documents. They contain no escape that has two spellings.
const NEW_VALUES: &[&str] = &["null", "-1.50e3", "\"new \\u0000 \\\"text\\\"\"", "[1, {\"a\":[]}]", "{}"];
const NEW_TEXTS: &[&str] = &["", "x", "\"\\\n\u{0}\u{1f600}é", "\u{2028}\u{7f}"];

/// Checks that views agree with `serde_json`, and that an edit changes only its target.
pub fn check(bytes: &[u8]) {
    let root = match Value::parse(bytes) {
        Ok(root) => root,
        Err(error) => {
            assert_ne!(is_value(bytes), Some(true), "{error}");
            return check_error_position(bytes, error.offset);
        }
    };
    assert_ne!(is_value(bytes), Some(false));
    let places = places(root);
    for place in &places {
        check_view(place.value);
    }
    let mut numbers = Numbers::of(bytes);
    for _ in 0..6 {
        let place = numbers.pick(&places);
        check_edit(bytes, place, &mut numbers);
    }
    check_several_edits(bytes, &places, &mut numbers);
}

/// Checks that a parse error names the first byte after which the text can no longer become valid.
fn check_error_position(bytes: &[u8], offset: usize) {
    assert!(offset <= bytes.len());
    // Detection accepts a byte order mark, so it rejects a text that starts with 0xEF one byte later.
    if std::str::from_utf8(bytes).is_err() || bytes.starts_with(b"\xEF") {
        return;
    }
    let mut detector = Detector::new(&Format::Json);
    detector.push(&bytes[..offset]);
    assert!(!detector.is_malformed(), "it is wrong before {offset}");
    if offset < bytes.len() {
        detector.push(&bytes[offset..=offset]);
        assert!(detector.is_malformed(), "it is not wrong at {offset}");
    }
}

/// A value and its path.
struct Place<'a> {
    path: String,
    value: Value<'a>,
    /// The enclosing value with its path.
    parent: Option<(String, Value<'a>)>,
}

/// Returns the values that a path can reach, outer ones first.
fn places(root: Value<'_>) -> Vec<Place<'_>> {
    let mut places = vec![Place { path: String::new(), value: root, parent: None }];
    let mut next = 0;
    while next < places.len() && places.len() < MAX_VALUES {
        let (path, value) = (places[next].path.clone(), places[next].value);
        next += 1;
        let mut inside: Vec<Place<'_>> = Vec::new();
        for field in value.fields() {
            assert!(is_within(field.key, value) && is_within(field.value, value));
            assert!(field.key.kind() == Kind::String && field.key.span().end < field.value.span().start);
            let name = field.key.text().unwrap();
            let reached = value.field(&name) == Some(field.value);
            if reached && !name.contains("\"]") {
                let parent = Some((path.clone(), value));
                inside.push(Place { path: format!("{path}[\"{name}\"]"), value: field.value, parent });
            }
        }
        for (position, item) in value.items().enumerate() {
            assert!(is_within(item, value));
            let parent = Some((path.clone(), value));
            inside.push(Place { path: format!("{path}[{position}]"), value: item, parent });
        }
        inside.truncate(MAX_VALUES);
        places.extend(inside);
    }
    for place in &places {
        assert_eq!(root.at(&place.path), Some(place.value), "{}", place.path);
    }
    places
}

fn is_within(inner: Value<'_>, outer: Value<'_>) -> bool {
    outer.span().start < inner.span().start && inner.span().end < outer.span().end
}

/// Compares the view of a value with `serde_json`.
fn check_view(value: Value<'_>) {
    let raw = value.raw();
    match value.kind() {
        Kind::String => {
            let decoded = value.decode().unwrap();
            match serde_json::from_str::<String>(raw) {
                Ok(text) => assert!(decoded.exact && decoded.text == text, "{raw}: {decoded:?}"),
                Err(_) => assert!(!decoded.exact && decoded.text.contains('\u{fffd}'), "{raw}: {decoded:?}"),
            }
        }
        Kind::Number => {
            if let Ok(number) = serde_json::from_str::<u64>(raw) {
                assert_eq!(value.as_u64(), Some(number), "{raw}");
            }
            assert!(value.decode().is_none() && value.as_bool().is_none());
        }
        Kind::Bool => assert_eq!(value.as_bool().map(|word| word.to_string()).as_deref(), Some(raw)),
        Kind::Null => assert!(raw == "null" && value.is_null()),
        Kind::Object => assert!(raw.starts_with('{') && raw.ends_with('}') && value.items().next().is_none()),
        Kind::Array => assert!(raw.starts_with('[') && raw.ends_with(']') && value.fields().next().is_none()),
    }
}

fn raws<'a>(values: impl Iterator<Item = Value<'a>>) -> Vec<String> {
    values.map(|value| value.raw().to_owned()).collect()
}

fn fields(object: Value<'_>) -> Vec<(String, String)> {
    object.fields().map(|field| (field.key.raw().to_owned(), field.value.raw().to_owned())).collect()
}

/// Makes one edit, and checks its exact result.
fn check_edit(bytes: &[u8], place: &Place<'_>, numbers: &mut Numbers) {
    let (path, value) = (place.path.as_str(), place.value);
    let (json, text) = (*numbers.pick(NEW_VALUES), *numbers.pick(NEW_TEXTS));
    let mut edits = Edits::new(bytes).unwrap();
    match value.kind() {
        Kind::Array if numbers.flip() => {
            edits.push(path, json).unwrap();
            let after = checked_edit(edits, bytes, value);
            let mut items = raws(value.items());
            items.push(json.to_owned());
            assert_eq!(raws(value_at(&after, path).items()), items, "push to {path}");
        }
        Kind::Object if numbers.flip() => {
            let name = if path.is_empty() { "added".to_owned() } else { format!("{path}.added") };
            edits.set(&name, json).unwrap();
            let after = checked_edit(edits, bytes, value);
            let mut expected = fields(value);
            match value.fields().enumerate().filter(|(_, field)| field.has_name("added")).last() {
                Some((position, _)) => json.clone_into(&mut expected[position].1),
                None => expected.push(("\"added\"".to_owned(), json.to_owned())),
            }
            assert_eq!(fields(value_at(&after, path)), expected, "insert into {path}");
        }
        Kind::String if numbers.flip() => {
            edits.extend_string(path, text).unwrap();
            let after = checked_edit(edits, bytes, value);
            let (before, after) = (value, value_at(&after, path));
            assert!(after.raw().starts_with(&before.raw()[..before.raw().len() - 1]));
            let expected = format!("{}{text}", before.text().unwrap());
            assert_eq!(after.text().as_deref(), Some(expected.as_str()), "extend {path}");
        }
        _ => replace_or_remove(edits, bytes, place, json, numbers.flip()),
    }
}

fn replace_or_remove(mut edits: Edits<'_>, bytes: &[u8], place: &Place<'_>, json: &str, replace: bool) {
    let (path, value) = (place.path.as_str(), place.value);
    let Some((parent_path, parent)) = &place.parent else {
        assert!(edits.set(path, json).is_err() && edits.remove(path).is_err());
        assert_eq!(edits.finish(), bytes, "nothing is changed where an edit fails");
        return;
    };
    if replace || parent.kind() == Kind::Array {
        edits.set(path, json).unwrap();
        let expected = [&bytes[..value.span().start], json.as_bytes(), &bytes[value.span().end..]].concat();
        assert_eq!(edits.finish(), expected, "set {path}");
        return;
    }
    edits.remove(path).unwrap();
    let after = checked_edit(edits, bytes, *parent);
    let same_name =
        |key: Value<'_>| parent.fields().any(|field| field.value == value && is_same(field.key, key));
    let kept = parent.fields().filter(|field| !same_name(field.key));
    let kept: Vec<_> = kept.map(|field| (field.key.raw().to_owned(), field.value.raw().to_owned())).collect();
    assert_eq!(fields(value_at(&after, parent_path)), kept, "remove {path}");
}

fn is_same(one: Value<'_>, other: Value<'_>) -> bool {
    one.text() == other.text()
}

/// Returns the edited document. Checks that it can be parsed and that all bytes outside `changed` are
/// unchanged.
fn checked_edit(edits: Edits<'_>, bytes: &[u8], changed: Value<'_>) -> Vec<u8> {
    let after = edits.finish();
    let span = changed.span();
    assert!(after.starts_with(&bytes[..span.start]) && after.ends_with(&bytes[span.end..]));
    assert!(after.len() >= bytes.len() - span.len());
    Value::parse(&after).unwrap();
    after
}

fn value_at<'a>(bytes: &'a [u8], path: &str) -> Value<'a> {
    Value::parse(bytes).unwrap().at(path).unwrap()
}

/// Makes several edits at once, some of them nested, and checks that the result can be parsed.
fn check_several_edits(bytes: &[u8], places: &[Place<'_>], numbers: &mut Numbers) {
    let mut edits = Edits::new(bytes).unwrap();
    for _ in 0..8 {
        let path = numbers.pick(places).path.as_str();
        let (json, text) = (*numbers.pick(NEW_VALUES), *numbers.pick(NEW_TEXTS));
        // The edit may fail here. The checks of single edits determine which edits must succeed.
        let _ = match numbers.below(5) {
            0 => edits.set(path, json),
            1 => edits.remove(path),
            2 => edits.push(path, json),
            3 => edits.extend_string(path, text),
            _ => edits.set(&format!("{path}[\"added\"]"), json),
        };
    }
    let after = edits.finish();
    assert!(Value::parse(&after).is_ok(), "{}", String::from_utf8_lossy(&after));
}
