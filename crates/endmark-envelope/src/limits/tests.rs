use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::json;

use super::*;
use crate::{Envelope, Limits};

#[derive(Limits, Serialize)]
#[serde(rename_all = "camelCase")]
struct Issue<'a> {
    #[limits(max_bytes = 10)]
    short_title: Title,
    #[limits(max_chars = 3)]
    body: Option<&'a str>,
    #[limits(max_bytes = 4, max_items = 2)]
    labels: Vec<String>,
    #[serde(rename = "by")]
    author: Option<Person>,
    watchers: Vec<Person>,
    #[limits(max_bytes = 5)]
    fields: BTreeMap<String, String>,
    number: u64,
    #[limits(skip)]
    opened: std::time::Duration,
    state: State,
}

type Title = String;

#[derive(Limits, Serialize, Clone)]
struct Person {
    name: Name,
}

#[derive(Limits, Serialize, Clone)]
struct Name(#[limits(max_bytes = 3)] String);

#[derive(Limits, Serialize)]
enum State {
    Open,
}

#[derive(Limits, Serialize)]
struct Tree<T> {
    #[limits(max_bytes = 2)]
    label: String,
    children: Vec<Tree<T>>,
    value: T,
}

fn person(name: &str) -> Person {
    Person { name: Name(name.to_owned()) }
}

fn issue() -> Issue<'static> {
    Issue {
        short_title: "t".repeat(10),
        body: Some("éüñ"),
        labels: vec!["bugs".to_owned(); 2],
        author: Some(person("Ada")),
        watchers: vec![person("Eve")],
        fields: BTreeMap::from([("odd key".to_owned(), "12345".to_owned())]),
        number: 7,
        opened: std::time::Duration::ZERO,
        state: State::Open,
    }
}

fn exceeded_limits(value: &impl Limits) -> Vec<(String, u64, u64, &'static str)> {
    let fields = value.check_limits().err().map(|error| error.fields().to_vec()).unwrap_or_default();
    fields.into_iter().map(|field| (field.field.to_string(), field.limit, field.actual, field.unit)).collect()
}

#[test]
fn a_value_exactly_at_the_limit_passes() {
    assert_eq!(exceeded_limits(&issue()), []);
    assert_eq!(Checked::new(issue()).unwrap().number, 7);
}

#[test]
fn every_exceeded_limit_is_reported_with_its_json_path() {
    let over = Issue {
        short_title: "ü".repeat(6),
        body: Some("éüñx"),
        labels: vec!["bugs!".to_owned(), String::new(), String::new()],
        author: Some(person("Adam")),
        watchers: vec![person("Eve"), person("Evan")],
        fields: BTreeMap::from([("odd key".to_owned(), "123456".to_owned())]),
        ..issue()
    };
    let expected = [
        ("shortTitle", 10, 12, "bytes"),
        ("body", 3, 4, "characters"),
        ("labels", 2, 3, "items"),
        ("labels[0]", 4, 5, "bytes"),
        ("by.name", 3, 4, "bytes"),
        ("watchers[1].name", 3, 4, "bytes"),
        (r#"fields["odd key"]"#, 5, 6, "bytes"),
    ];
    assert_eq!(
        exceeded_limits(&over),
        expected.map(|(field, limit, actual, unit)| (field.to_owned(), limit, actual, unit))
    );
    let error = ErrorBody::from(over.check_limits().unwrap_err());
    assert_eq!(
        serde_json::to_value(&error).unwrap(),
        json!({
            "code": "FIELD_TOO_LARGE", "exit_code": 2, "phase": "validation",
            "message": "`shortTitle` has 12 bytes, at most 10", "field": "shortTitle", "limit": 10, "actual": 12,
            "hint": "Shorten it; `body` has 4 characters, at most 3; `labels` has 3 items, at most 2; \
                     `labels[0]` has 5 bytes, at most 4, and 3 more, too.",
        })
    );
}

#[test]
fn a_backend_value_at_its_limit_is_reported_as_cut() {
    let document = Envelope::from_backend(issue()).document().unwrap();
    let fields: Vec<String> =
        document.warnings.iter().map(|warning| warning.field.as_ref().unwrap().to_string()).collect();
    let expected = [
        "data.shortTitle",
        "data.body",
        "data.labels",
        "data.labels[0]",
        "data.labels[1]",
        "data.by.name",
        "data.watchers[0].name",
        r#"data.fields["odd key"]"#,
    ];
    assert_eq!(fields, expected);
    assert_eq!(document.warnings[1].returned_bytes, Some(6));
    assert_eq!(document.warnings[1].truncated_length, Some(3));
}

#[test]
fn a_recursive_type_can_have_limits() {
    let leaf = || Tree { label: "ab".to_owned(), children: Vec::new(), value: 1 };
    let tree = Tree { label: "abc".to_owned(), children: vec![leaf(), leaf()], value: 2 };
    assert_eq!(exceeded_limits(&tree), [("label".to_owned(), 2, 3, "bytes")]);
    assert_eq!(Envelope::from_backend(tree).document().unwrap().warnings.len(), 3);
}

#[test]
fn map_limits_apply_to_values_and_their_count() {
    let fields = BTreeMap::from([("a key of any length".to_owned(), "12345".to_owned())]);
    assert_eq!(exceeded_limits(&Issue { fields, ..issue() }), []);
}

#[derive(Limits, Serialize)]
struct Account {
    #[serde(skip_serializing)]
    #[limits(max_bytes = 8)]
    password: String,
    #[serde(skip)]
    owner: Option<Person>,
    #[serde(skip)]
    #[limits(skip)]
    opened: std::time::Duration,
}

#[test]
fn skipped_fields_are_checked_too() {
    let account = |password: &str, owner: &str| Account {
        password: password.to_owned(),
        owner: Some(person(owner)),
        opened: std::time::Duration::ZERO,
    };
    assert_eq!(exceeded_limits(&account("12345678", "Ada")), []);
    let expected = [("password", 8, 9, "bytes"), ("owner.name", 3, 4, "bytes")];
    assert_eq!(
        exceeded_limits(&account("123456789", "Adam")),
        expected.map(|(field, limit, actual, unit)| (field.to_owned(), limit, actual, unit))
    );
    assert!(account("12345678", "Ada").opened.is_zero());
}

#[derive(Limits, Serialize)]
#[serde(transparent)]
struct Heading {
    #[limits(max_bytes = 3)]
    text: String,
}

#[derive(Limits, Serialize)]
struct Chapter {
    heading: Heading,
}

#[test]
fn a_transparent_struct_has_the_path_of_its_content() {
    let chapter = |text: &str| Chapter { heading: Heading { text: text.to_owned() } };
    assert_eq!(exceeded_limits(&chapter("long")), [("heading".to_owned(), 3, 4, "bytes")]);
    let document = Envelope::from_backend(chapter("cut")).document().unwrap();
    assert_eq!(document.data["heading"], "cut…[truncated]");
    assert_eq!(document.warnings[0].field.as_ref().unwrap().to_string(), "data.heading");
}
