use proptest::prelude::*;
use serde_json::{Value as Tree, json};

use super::*;

fn edit(document: &str, change: impl FnOnce(&mut Edits<'_>)) -> String {
    let mut edits = Edits::new(document.as_bytes()).unwrap();
    change(&mut edits);
    String::from_utf8(edits.finish()).unwrap()
}

#[test]
fn a_field_is_removed_with_one_comma() {
    let document = r#"{ "a": 1 , "b":2,  "c" : 3}"#;
    let without =
        |names: &[&str]| edit(document, |edits| names.iter().for_each(|name| edits.remove(name).unwrap()));
    assert_eq!(without(&["a"]), r#"{ "b":2,  "c" : 3}"#);
    assert_eq!(without(&["b"]), r#"{ "a": 1,  "c" : 3}"#);
    assert_eq!(without(&["c"]), r#"{ "a": 1 , "b":2}"#);
    assert_eq!(without(&["a", "b"]), r#"{ "c" : 3}"#);
    assert_eq!(without(&["c", "b"]), r#"{ "a": 1}"#);
    assert_eq!(without(&["a", "c"]), r#"{ "b":2}"#);
    assert_eq!(without(&["a", "b", "c"]), "{ }");
    assert_eq!(without(&["absent"]), document);
}

#[test]
fn an_added_field_follows_the_last_one() {
    assert_eq!(edit("{}", |edits| edits.set("a", "1").unwrap()), r#"{"a":1}"#);
    assert_eq!(edit("{ }", |edits| edits.set("a", "1").unwrap()), r#"{"a":1 }"#);
    assert_eq!(
        edit("{\n  \"b\": 2\n}\n", |edits| edits.set("a", "1").unwrap()),
        "{\n  \"b\": 2,\"a\":1\n}\n"
    );
    let replaced_all = edit(r#"{"a":1,"b":2}"#, |edits| {
        edits.remove("a").unwrap();
        edits.remove("b").unwrap();
        edits.set("c", "3").unwrap();
        edits.set("d", "4").unwrap();
    });
    assert_eq!(replaced_all, r#"{"c":3,"d":4}"#);
    let last_gone = edit(r#"{"a":1, "b":2}"#, |edits| {
        edits.remove("b").unwrap();
        edits.set("c", "3").unwrap();
    });
    assert_eq!(last_gone, r#"{"a":1,"c":3}"#);
}

#[test]
fn the_last_duplicate_is_edited_and_all_are_removed() {
    let document = r#"{"a":1,"x":0,"\u0061":2}"#;
    assert_eq!(edit(document, |edits| edits.set("a", "9").unwrap()), r#"{"a":1,"x":0,"\u0061":9}"#);
    assert_eq!(edit(document, |edits| edits.remove("a").unwrap()), r#"{"x":0}"#);
}

#[test]
fn the_last_edit_of_a_field_wins() {
    let document = r#"{"a":1}"#;
    let change = |steps: &[Option<&str>], name: &str| {
        edit(document, |edits| {
            for step in steps {
                match step {
                    Some(value) => edits.set(name, value).unwrap(),
                    None => edits.remove(name).unwrap(),
                }
            }
        })
    };
    assert_eq!(change(&[Some("2"), Some("3")], "a"), r#"{"a":3}"#);
    assert_eq!(change(&[Some("2"), None], "a"), "{}");
    assert_eq!(change(&[None, Some("2")], "a"), r#"{"a":2}"#);
    assert_eq!(change(&[Some("2"), Some("3")], "b"), r#"{"a":1,"b":3}"#);
    assert_eq!(change(&[Some("2"), None], "b"), document);
}

#[test]
fn an_edit_inside_a_replaced_value_is_dropped() {
    let changed = edit(r#"{"a":{"b":[1]},"c":2}"#, |edits| {
        edits.set("a.b[0]", "7").unwrap();
        edits.push("a.b", "8").unwrap();
        edits.set("a", "null").unwrap();
    });
    assert_eq!(changed, r#"{"a":null,"c":2}"#);
}

#[test]
fn an_extended_string_keeps_its_escapes() {
    let document = r#"{"content":"caf\u00e9 \/ "}"#;
    assert_eq!(
        edit(document, |edits| edits.extend_string("content", "\"ü\"\n").unwrap()),
        r#"{"content":"caf\u00e9 \/ \"ü\"\n"}"#
    );
    let set = |text: &str| {
        edit(document, |edits| {
            let content = edits.original().field("content").unwrap();
            edits.set_text(content, text);
        })
    };
    assert_eq!(set("café / "), document);
    assert_eq!(set("café / more"), r#"{"content":"caf\u00e9 \/ more"}"#);
    assert_eq!(set("coffee"), r#"{"content":"coffee"}"#);
}

#[test]
fn an_edit_without_a_target_changes_nothing() {
    let mut edits = Edits::new(br#"{"a":[1],"b":"x"}"#).unwrap();
    for path in ["", "a[1]", "a.b", "b.c", "missing.field", "a[", "b[0]"] {
        assert_eq!(edits.set(path, "1"), Err(EditError::InvalidPath(path.to_owned())), "{path}");
    }
    assert!(matches!(edits.set("c", "{"), Err(EditError::Value(_))));
    assert!(matches!(edits.push("b", "1"), Err(EditError::InvalidPath(_))));
    assert!(matches!(edits.remove("a[0]"), Err(EditError::InvalidPath(_))));
    assert!(matches!(edits.extend_string("a", "x"), Err(EditError::InvalidPath(_))));
    assert_eq!(edits.finish(), br#"{"a":[1],"b":"x"}"#);
    assert!(matches!(Edits::new(b"{\"a\":"), Err(EditError::Document(_))));
}

#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    let deep = format!("{{\"a\":{}{},\"n\":1}}", "[".repeat(100_000), "]".repeat(100_000));
    let edited = edit(&deep, |edits| edits.set("n", "2").unwrap());
    assert_eq!(edited, deep.replace("\"n\":1", "\"n\":2"));
}

/// The source of a JSON value with unusual spacing and escapes.
fn source() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "1",
        "1.0",
        "-0",
        "1e5",
        "null",
        "true",
        "\"\"",
        "\"\\u0061\"",
        "\"a\\\"b\"",
        "\"}\"",
        "\"é,\"",
        "{}",
        "[ ]",
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(4, 24, 4, |inner| {
        let space = prop::sample::select(vec!["", " ", "\n  ", "\t"]);
        let keys = prop::sample::select(vec!["a", "b", "c", "d", "e"]);
        prop_oneof![
            (prop::collection::vec(inner.clone(), 1..4), space.clone()).prop_map(|(items, space)| format!(
                "[{space}{}{space}]",
                items.join(&format!("{space},{space}"))
            )),
            (prop::collection::vec((keys, inner), 1..5), space).prop_map(|(fields, space)| {
                let fields: Vec<String> = fields
                    .iter()
                    .map(|(key, value)| format!("{space}\"{key}\"{space}:{space}{value}{space}"))
                    .collect();
                format!("{{{}}}", fields.join(","))
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Any combination of edits has the same result as on a parsed tree, and changes nothing else.
    #[test]
    fn edits_of_bytes_match_edits_of_a_tree(
        fields in prop::collection::vec(("[a-f]", source()), 0..6),
        space in prop::sample::select(vec!["", " ", "\n"]),
        changes in prop::collection::vec((0..4_u8, "[a-h]"), 0..8),
    ) {
        let inside: Vec<String> = fields.iter().map(|(name, value)| format!("{space}\"{name}\"{space}:{value}{space}")).collect();
        let document = format!("{{{}}}", inside.join(","));
        let mut tree: Tree = serde_json::from_str(&document).unwrap();
        let mut edits = Edits::new(document.as_bytes()).unwrap();
        let mut touched = Vec::new();
        for (kind, name) in &changes {
            // Edit each field only once: the tests above cover several edits of one field.
            if touched.contains(name) {
                continue;
            }
            touched.push(name.clone());
            let object = tree.as_object_mut().unwrap();
            match kind {
                0 => {
                    edits.set(name, "[7]").unwrap();
                    object.insert(name.clone(), json!([7]));
                }
                1 => {
                    edits.remove(name).unwrap();
                    object.remove(name);
                }
                2 => {
                    let array = object.get_mut(name).and_then(Tree::as_array_mut);
                    prop_assert_eq!(edits.push(name, "\"new\"").is_ok(), array.is_some());
                    if let Some(array) = array {
                        array.push(json!("new"));
                    }
                }
                _ => {
                    let path = format!("{name}.z");
                    let inner = object.get_mut(name).and_then(Tree::as_object_mut);
                    prop_assert_eq!(edits.set(&path, "0").is_ok(), inner.is_some());
                    if let Some(inner) = inner {
                        inner.insert("z".to_owned(), json!(0));
                    }
                }
            }
        }
        let edited = edits.finish();
        let result: Tree = serde_json::from_slice(&edited).unwrap();
        prop_assert_eq!(&result, &tree);
        // Fields that no edit names are unchanged.
        let text = String::from_utf8(edited).unwrap();
        for ((name, _), field) in fields.iter().zip(&inside) {
            if !touched.contains(name) {
                prop_assert!(text.contains(field.trim()), "{} lost {}", text, field);
            }
        }
        if touched.is_empty() {
            prop_assert_eq!(text, document);
        }
    }
}
