//! A capped envelope is valid JSON of the same shape within its limit, and has a warning with the correct
//! counts for each cut. (EN-5)

use endmark_envelope::{
    Document, Envelope, ErrorBody, FieldRules, MIN_RESPONSE_LIMIT_BYTES, TRUNCATION_MARKER, Warning,
    WarningKind, cap,
};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Map, Value};
use unicode_segmentation::UnicodeSegmentation;

/// A limit in bytes that is large enough for seven shortened texts with any content.
const AMPLE_LIMIT_BYTES: usize = 4000;

/// Texts of all lengths with characters that are difficult to cut or to escape.
fn text() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        4 => "[a-z ]{1,40}",
        1 => "\\PC{1,12}",
        1 => Just("👩‍👩‍👧‍👦".to_owned()),
        1 => Just("e\u{301}\u{302}".to_owned()),
        1 => Just("🇩🇪🇫🇷".to_owned()),
        1 => Just("\r\n".to_owned()),
        1 => Just("\"\\\u{1}".to_owned()),
        1 => Just(TRUNCATION_MARKER.to_owned()),
    ];
    vec(pieces, 0..60).prop_map(|pieces| pieces.concat())
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[a-z]{1,8}", 1 => "\\PC{0,6}", 1 => Just("odd \"key\"].".to_owned())]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        6 => text().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            btree_map(key(), inner, 0..6).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn document() -> impl Strategy<Value = Document> {
    let error = (text(), proptest::option::of(text()))
        .prop_map(|(message, hint)| ErrorBody { hint, ..ErrorBody::new("odd", 3, message) });
    (value(), proptest::option::weighted(0.2, error), any::<bool>()).prop_map(|(data, error, has_notice)| {
        let envelope = match error {
            Some(error) => Envelope::refusal(data, error),
            None => Envelope::success(data),
        };
        let notice = has_notice.then(|| Warning::notice("ODD", "this is odd"));
        // Test only the cap, without cuts of a backend.
        let envelope = envelope.with_rules(FieldRules::exact()).with_warnings(notice);
        envelope.with_max_response_bytes(usize::MAX).document().unwrap()
    })
}

fn limit() -> impl Strategy<Value = usize> {
    prop_oneof![0..3000_usize, MIN_RESPONSE_LIMIT_BYTES..20_000]
}

/// Returns the two documents as JSON.
fn read(document: &Document) -> Value {
    serde_json::from_str(&document.to_json()).unwrap()
}

/// Adds the paths of all texts that differ to `found`. Returns false if the shapes differ.
fn collect_changes(before: &Value, after: &Value, path: &str, found: &mut Vec<String>) -> bool {
    match (before, after) {
        (Value::String(before), Value::String(after)) => {
            if before != after {
                found.push(path.to_owned());
            }
            true
        }
        (Value::Array(before), Value::Array(after)) => {
            before.len() == after.len()
                && before.iter().zip(after).enumerate().all(|(index, (before, after))| {
                    collect_changes(before, after, &format!("{path}[{index}]"), found)
                })
        }
        (Value::Object(before), Value::Object(after)) => {
            before.len() == after.len()
                && before.iter().zip(after).all(|((name, before), (same_name, after))| {
                    name == same_name && collect_changes(before, after, &join_path(path, name), found)
                })
        }
        _ => before == after,
    }
}

fn join_path(path: &str, name: &str) -> String {
    let is_plain = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|other| other.is_ascii_alphanumeric() || other == '_');
    if is_plain { format!("{path}.{name}") } else { format!("{path}[{}]", Value::from(name)) }
}

fn value_at<'a>(document: &'a Value, path: &str) -> &'a str {
    let path: endmark_envelope::FieldPath = path.parse().unwrap();
    path.find(document).unwrap().as_str().unwrap()
}

fn is_grapheme_boundary(text: &str, at: usize) -> bool {
    at == text.len() || text.grapheme_indices(true).any(|(begin, _)| begin == at)
}

proptest! {

    #[test]
    fn a_capped_envelope_is_always_within_its_limit(document in document(), limit in limit()) {
        let capped = cap(document.clone(), limit);
        prop_assert!(capped.to_json().len() < limit.max(MIN_RESPONSE_LIMIT_BYTES));
        let names: Vec<String> = read(&capped).as_object().unwrap().keys().cloned().collect();
        prop_assert_eq!(names, ["ok", "data", "error", "warnings", "meta"]);
        // A document with an error keeps an error.
        prop_assert_eq!(capped.error.is_some() || document.error.is_none(), true);
        if let Some(error) = &document.error {
            prop_assert_eq!(capped.exit_code(), error.exit_code);
        }
        prop_assert_eq!(cap(capped.clone(), limit), capped);
    }

    #[test]
    fn capping_keeps_the_shape_and_reports_correct_counts(
        document in document(),
        limit in limit(),
    ) {
        let capped = cap(document.clone(), limit);
        let (before, after) = (read(&document), read(&capped));
        if capped.error.as_ref().map(|error| &error.code) != document.error.as_ref().map(|error| &error.code)
            || (after["data"].is_null() && !before["data"].is_null())
        {
            // Shortening texts was not enough.
            return Ok(());
        }
        let mut cut = Vec::new();
        for member in ["data", "error"] {
            prop_assert!(collect_changes(&before[member], &after[member], member, &mut cut), "another shape");
        }
        let warned: Vec<&Warning> =
            capped.warnings.iter().filter(|warning| warning.kind == WarningKind::Truncation).collect();
        let mut fields: Vec<String> =
            warned.iter().map(|warning| warning.field.as_ref().unwrap().to_string()).collect();
        fields.sort();
        cut.sort();
        prop_assert_eq!(&fields, &cut);
        for warning in warned {
            let field = warning.field.as_ref().unwrap().to_string();
            let (original, shortened) = (value_at(&before, &field), value_at(&after, &field));
            let kept = shortened.strip_suffix(TRUNCATION_MARKER);
            prop_assert!(kept.is_some(), "no marker: {}", shortened);
            let kept = kept.unwrap();
            prop_assert!(original.starts_with(kept));
            prop_assert!(is_grapheme_boundary(original, kept.len()), "{:?} of {:?}", kept, original);
            prop_assert_eq!(warning.returned_bytes, Some(kept.len() as u64));
            prop_assert_eq!(warning.truncated_length, Some(kept.chars().count() as u64));
            prop_assert_eq!(warning.original_bytes, Some(original.len() as u64));
            prop_assert_eq!(warning.original_length, Some(original.chars().count() as u64));
        }
        prop_assert_eq!(&after["meta"]["truncated"], &Value::from(!cut.is_empty()));
    }

    #[test]
    fn the_longest_texts_are_shortened_first(texts in vec(text(), 1..8), limit in MIN_RESPONSE_LIMIT_BYTES..8000_usize) {
        let texts: Vec<String> = texts.iter().map(|text| text.repeat(4)).collect();
        let data: Map<String, Value> =
            texts.iter().enumerate().map(|(index, text)| (format!("f{index}"), Value::from(text.as_str()))).collect();
        let envelope = Envelope::success(Value::Object(data)).with_rules(FieldRules::exact());
        let capped = envelope.with_max_response_bytes(limit).document().unwrap();
        let width = |text: &str| serde_json::to_string(text).unwrap().len();
        let is_cut = |index: usize| capped.data[format!("f{index}")] != texts[index].as_str();
        let widths = |cut: bool| {
            texts.iter().enumerate().filter(move |(index, _)| is_cut(*index) == cut).map(|(_, text)| width(text))
        };
        // Seven warnings always fit into this limit, so texts alone never cause an error.
        prop_assert!(limit < AMPLE_LIMIT_BYTES || capped.error.is_none());
        if capped.error.is_none() {
            let longest_kept = widths(false).max().unwrap_or(0);
            prop_assert!(widths(true).all(|width| width >= longest_kept));
        }
    }
}
