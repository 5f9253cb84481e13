//! Chains of edits in place, each of which edits the result of the previous one (PC-9). The input is the
//! document.

use endmark_wire::edit::Edits;
use serde_json::Value;

use crate::input::Numbers;

/// Number of edits in a chain.
const CHAIN_EDITS: usize = 16;
/// Maximum number of values from which an edit chooses.
const MAX_PLACES: usize = 400;

const NEW_VALUES: &[&str] =
    &["null", "17", "\"new \\u0000 \\\"text\\\"\"", "[1, {\"a\":[]}]", "{ \"b\" : {} }", "\"\""];
const NEW_TEXTS: &[&str] = &["", "x", "\"\\\n\u{0}\u{1f600}é", "\u{2028}\u{7f}"];

/// Checks that each edit has the same effect as the same edit of a `serde_json` tree. Edits of independent
/// values must give the same bytes together as one after another.
pub fn check(bytes: &[u8]) {
    // The target `json` covers texts that `serde_json` cannot represent: numbers out of range, lone
    // surrogates, and deep nesting.
    let Ok(mut tree) = serde_json::from_slice::<Value>(bytes) else { return };
    let mut numbers = Numbers::of(bytes);
    let mut document = bytes.to_vec();
    for _ in 0..CHAIN_EDITS {
        let places = places(&tree);
        let place = numbers.pick(&places).clone();
        document = edit_both(&document, &mut tree, &place, &mut numbers);
        let read: Value = serde_json::from_slice(&document).unwrap();
        assert_eq!(read, tree, "after an edit at {}", path_text(&place));
        assert_eq!(Edits::new(&document).unwrap().finish(), document, "no edit changes nothing");
    }
    check_independent_edits(&document, &tree, &mut numbers);
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    Item(usize),
}

type Place = Vec<Step>;

/// Returns the positions that a path can address, outer ones first. Both libraries treat members with the
/// same name as one member.
fn places(tree: &Value) -> Vec<Place> {
    let mut places: Vec<(Place, &Value)> = vec![(Vec::new(), tree)];
    let mut next = 0;
    while next < places.len() && places.len() < MAX_PLACES {
        let (place, value) = places[next].clone();
        next += 1;
        let inside = |step: Step| [place.as_slice(), &[step]].concat();
        match value {
            Value::Object(fields) => {
                let named = fields.iter().filter(|(name, _)| !name.contains("\"]"));
                places.extend(named.map(|(name, value)| (inside(Step::Field(name.clone())), value)));
            }
            Value::Array(items) => {
                let numbered = items.iter().enumerate();
                places.extend(numbered.map(|(number, value)| (inside(Step::Item(number)), value)));
            }
            _ => {}
        }
    }
    places.into_iter().map(|(place, _)| place).collect()
}

fn path_text(place: &[Step]) -> String {
    let step = |step: &Step| match step {
        Step::Field(name) => format!("[\"{name}\"]"),
        Step::Item(number) => format!("[{number}]"),
    };
    place.iter().map(step).collect()
}

fn value_at<'a>(tree: &'a mut Value, place: &[Step]) -> &'a mut Value {
    place.iter().fold(tree, |value, step| match step {
        Step::Field(name) => &mut value[name.as_str()],
        Step::Item(number) => &mut value[*number],
    })
}

/// Makes an edit of the document and the same edit of the tree.
fn edit_both(document: &[u8], tree: &mut Value, place: &[Step], numbers: &mut Numbers) -> Vec<u8> {
    let path = path_text(place);
    let (json, text) = (*numbers.pick(NEW_VALUES), *numbers.pick(NEW_TEXTS));
    let new: Value = serde_json::from_str(json).unwrap();
    let mut edits = Edits::new(document).unwrap();
    let kind = numbers.below(3);
    match value_at(tree, place) {
        Value::Array(items) if kind == 0 => {
            edits.push(&path, json).unwrap();
            items.push(new);
        }
        Value::Object(fields) if kind == 0 => {
            edits.set(&format!("{path}[\"added\"]"), json).unwrap();
            fields.insert("added".to_owned(), new);
        }
        Value::String(held) if kind == 0 => {
            edits.extend_string(&path, text).unwrap();
            held.push_str(text);
        }
        _ => match place.split_last() {
            None => assert!(edits.set(&path, json).is_err(), "the document itself is no place"),
            Some((Step::Field(name), outer)) if kind == 1 => {
                edits.remove(&path).unwrap();
                value_at(tree, outer).as_object_mut().unwrap().remove(name);
            }
            Some(_) => {
                edits.set(&path, json).unwrap();
                *value_at(tree, place) = new;
            }
        },
    }
    edits.finish()
}

/// Edits values without parts, once together and once one after another, and compares the results.
fn check_independent_edits(document: &[u8], tree: &Value, numbers: &mut Numbers) {
    let all = places(tree);
    let mut chosen: Vec<(String, bool, &str, &str)> = Vec::new();
    for _ in 0..6 {
        let place = numbers.pick(&all);
        let (json, text) = (*numbers.pick(NEW_VALUES), *numbers.pick(NEW_TEXTS));
        let value = value_at(&mut tree.clone(), place).clone();
        let path = path_text(place);
        let is_alone =
            !(value.is_object() || value.is_array()) && chosen.iter().all(|(other, ..)| *other != path);
        if is_alone && !place.is_empty() {
            chosen.push((path, value.is_string() && numbers.flip(), json, text));
        }
    }
    let edit = |edits: &mut Edits<'_>, (path, extends, json, text): &(String, bool, &str, &str)| {
        if *extends { edits.extend_string(path, text) } else { edits.set(path, json) }.unwrap();
    };
    let mut at_once = Edits::new(document).unwrap();
    let mut in_turn = document.to_vec();
    for one in &chosen {
        edit(&mut at_once, one);
        let mut edits = Edits::new(&in_turn).unwrap();
        edit(&mut edits, one);
        in_turn = edits.finish();
    }
    assert_eq!(at_once.finish(), in_turn, "{chosen:?}");
}
