use proptest::prelude::*;

use super::*;

fn set(syntax: Syntax, text: &str, path: &[&str], to: &str) -> Result<String, UneditableFile> {
    let mut document = ConfigDocument::parse(syntax, text)?;
    document.set(path, &NewValue::Text(to.to_owned()))?;
    assert_eq!(document.value(path).as_deref(), Some(to));
    Ok(document.text())
}

#[test]
fn json_edits_keep_comments_order_and_spelling() {
    let text = "{\n  // mine\n  \"zeta\": 1.50, /* odd */\n  \"env\": {\n    \"A\": \"b\",\n  },\n  \"alpha\": [1,2],\n}\n";
    let changed = set(Syntax::Jsonc, text, &["env", "URL"], "http://x").unwrap();
    assert_eq!(
        changed,
        "{\n  // mine\n  \"zeta\": 1.50, /* odd */\n  \"env\": {\n    \"A\": \"b\",\n    \"URL\": \"http://x\",\n  },\n  \"alpha\": [1,2],\n}\n"
    );
    assert_eq!(set(Syntax::Jsonc, &changed, &["env", "URL"], "y").unwrap(), changed.replace("http://x", "y"));
}

#[test]
fn toml_edits_keep_comments_order_and_spelling() {
    let text = "# head\nmodel   = 'x' # mine\nmodel_provider = \"azure\" # why\n\n[profiles.a]\nb=1\n";
    let changed = set(Syntax::Toml, text, &["model_provider"], "endmark").unwrap();
    assert_eq!(changed, text.replace("\"azure\"", "\"endmark\""));
    let changed = set(Syntax::Toml, text, &["model_providers", "endmark", "name"], "Endmark").unwrap();
    assert_eq!(changed, format!("{text}\n[model_providers.endmark]\nname = \"Endmark\"\n"));
}

#[test]
fn environment_file_edits_keep_other_lines() {
    let text = "# keys\nexport A=1\nURL='old' \nB=2";
    assert_eq!(set(Syntax::Dotenv, text, &["URL"], "new").unwrap(), "# keys\nexport A=1\nURL=new\nB=2");
    assert_eq!(set(Syntax::Dotenv, text, &["A"], "2").unwrap(), text.replace("A=1", "A=2"));
    assert_eq!(set(Syntax::Dotenv, text, &["C"], "3").unwrap(), format!("{text}\nC=3\n"));
    let document = ConfigDocument::parse(Syntax::Dotenv, text).unwrap();
    assert_eq!(document.value(&["URL"]).as_deref(), Some("old"));
}

#[test]
fn edits_keep_line_ends_and_the_byte_order_mark() {
    for (syntax, text) in [
        (Syntax::Jsonc, "\u{feff}{\r\n  \"a\": 1\r\n}\r\n"),
        (Syntax::Toml, "a = 1\r\n"),
        (Syntax::Dotenv, "A=1\r\n"),
    ] {
        let changed = set(syntax, text, &["b"], "x").unwrap();
        assert_eq!(changed.matches('\n').count(), changed.matches("\r\n").count(), "{changed:?}");
        assert_eq!(changed.starts_with('\u{feff}'), text.starts_with('\u{feff}'));
    }
}

#[test]
fn an_invalid_document_is_refused_with_the_position_of_the_error() {
    for (syntax, text, place) in [
        (Syntax::Jsonc, "{\n  \"a\": ]\n}", "line 2"),
        (Syntax::Jsonc, "{'a': 1}", "line 1"),
        (Syntax::Toml, "a = \n", "line 1"),
    ] {
        let Err(UneditableFile::Unreadable(reason)) = ConfigDocument::parse(syntax, text) else {
            panic!("{text}")
        };
        assert!(reason.contains(place), "{reason}");
    }
    // The nesting is limited, so a file cannot overflow the stack.
    for (syntax, text) in
        [(Syntax::Jsonc, "[".repeat(100_000)), (Syntax::Toml, format!("a = {}", "[".repeat(100_000)))]
    {
        assert!(matches!(ConfigDocument::parse(syntax, &text), Err(UneditableFile::Unreadable(_))));
    }
}

#[test]
fn the_last_of_several_tables_with_the_same_name_counts() {
    let text = "{\"env\":{\"A\":\"1\"},\"env\":{\"B\":\"2\"}}";
    let changed = set(Syntax::Jsonc, text, &["env", "URL"], "http://x").unwrap();
    let read: serde_json::Value = serde_json::from_str(&changed).unwrap();
    assert_eq!(read["env"], serde_json::json!({"B": "2", "URL": "http://x"}));
    assert!(changed.starts_with("{\"env\":{\"A\":\"1\"},"), "{changed}");
    let no_table = "{\"env\": {}, \"env\": 3}";
    assert_eq!(
        set(Syntax::Jsonc, no_table, &["env", "A"], "x"),
        Err(UneditableFile::NotATable("env".into()))
    );
}

#[test]
fn a_new_table_never_replaces_another_value() {
    assert_eq!(
        set(Syntax::Jsonc, "[1]", &["env", "A"], "x"),
        Err(UneditableFile::NotATable("the whole file".into()))
    );
    assert_eq!(
        set(Syntax::Jsonc, "{\"env\": 3}", &["env", "A"], "x"),
        Err(UneditableFile::NotATable("env".into()))
    );
    assert_eq!(set(Syntax::Toml, "a = 3", &["a", "b", "c"], "x"), Err(UneditableFile::NotATable("a".into())));
    assert_eq!(set(Syntax::Jsonc, "{\"a\": {}}", &["a"], "x"), Err(UneditableFile::IsTable("a".into())));
    assert_eq!(set(Syntax::Toml, "[a]\nb = 1\n", &["a"], "x"), Err(UneditableFile::IsTable("a".into())));
}

#[test]
fn removing_a_key_also_removes_tables_that_were_created_for_it() {
    for (syntax, text) in [
        (Syntax::Jsonc, "{\n  \"a\": 1\n}\n"),
        (Syntax::Jsonc, "{\n  \"a\": 1,\n  \"x\": {}\n}\n"),
        (Syntax::Toml, "a = 1\n"),
        (Syntax::Toml, "[x]\n"),
        (Syntax::Toml, "x = {}\n"),
        (Syntax::Dotenv, "A=1\n"),
    ] {
        let before = ConfigDocument::parse(syntax, text).unwrap();
        let mut document =
            ConfigDocument::parse(syntax, &set(syntax, text, &["x", "y", "z"], "v").unwrap()).unwrap();
        document.copy_from(&before, &["x", "y", "z"]).unwrap();
        assert_eq!(document.text().replace("\n\n", "\n"), text, "{syntax:?}");
    }
}

/// Generates JSON as people write it, with comments and any layout.
fn jsonc() -> impl Strategy<Value = String> {
    let name = "[a-e]{1,3}";
    let leaf =
        prop_oneof!["[1-9][0-9]{0,3}", Just("true".to_owned()), "\"[a-z /:]{0,8}\"", Just("{ }".to_owned())];
    let value = leaf.prop_recursive(4, 24, 4, move |inner| {
        let gap = prop_oneof![
            Just(String::new()),
            Just(" ".to_owned()),
            Just("\n  ".to_owned()),
            Just(" // why\n".to_owned()),
            Just("/* x */".to_owned())
        ];
        prop::collection::vec((name, gap, inner), 0..4).prop_map(|properties| {
            let mut text = "{".to_owned();
            let mut seen: Vec<String> = Vec::new();
            for (name, gap, value) in properties {
                if seen.contains(&name) {
                    continue;
                }
                let comma = if seen.is_empty() { "" } else { "," };
                text.extend([comma, &gap, "\"", &name, "\":", &gap, &value, &gap]);
                seen.push(name);
            }
            text + "}"
        })
    });
    value.prop_filter("a table", |text| text.starts_with('{'))
}

fn values(text: &str) -> Option<serde_json::Value> {
    let options = jsonc_parser::ParseOptions::default();
    let root = jsonc_parser::cst::CstRootNode::parse(text, &options).ok()?;
    // After removing comments and trailing commas, the text is JSON.
    let mut kept = String::new();
    for token in PlainValue::strings_in(&root.value()?) {
        kept.push_str(&token);
    }
    serde_json::from_str(&kept).ok()
}

/// Rewrites a value without comments and white space.
struct PlainValue;

impl PlainValue {
    fn strings_in(node: &jsonc_parser::cst::CstNode) -> Vec<String> {
        if let Some(object) = node.as_object() {
            let properties = object.properties().into_iter().map(|property| {
                let value = property.value().unwrap();
                format!("{:?}:{}", property.decoded_name().unwrap(), Self::strings_in(&value).concat())
            });
            return vec![format!("{{{}}}", properties.collect::<Vec<_>>().join(","))];
        }
        vec![node.to_string()]
    }
}

proptest! {
    /// In any file, setting a key changes only that key. Undoing it restores the values and comments.
    #[test]
    fn setting_a_key_changes_nothing_else(text in jsonc(), path in prop::collection::vec("[a-e]{1,2}|endmark", 1..4)) {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let before = ConfigDocument::parse(Syntax::Jsonc, &text).unwrap();
        let mut document = ConfigDocument::parse(Syntax::Jsonc, &text).unwrap();
        if document.set(&path, &NewValue::Text("http://x/v1".into())).is_err() {
            return Ok(());
        }
        let changed = document.text();
        prop_assert_eq!(changed.matches("why").count(), text.matches("why").count());
        prop_assert_eq!(changed.matches("/* x */").count(), text.matches("/* x */").count());
        let mut expected = values(&text).unwrap();
        let mut place = &mut expected;
        for name in &path {
            place = &mut place[*name];
        }
        *place = "http://x/v1".into();
        prop_assert_eq!(values(&changed).unwrap(), expected, "{}", changed);
        let mut back = ConfigDocument::parse(Syntax::Jsonc, &changed).unwrap();
        back.copy_from(&before, &path).unwrap();
        prop_assert_eq!(values(&back.text()).unwrap(), values(&text).unwrap(), "{}", back.text());
    }
}
