use serde_json::json;

use super::*;
use crate::{Envelope, MORE_TRUNCATED};

fn document(data: Value) -> Document {
    Document { data, error: None, warnings: Vec::new(), duration_ms: 5 }
}

#[test]
fn data_within_the_limit_is_unchanged() {
    let whole = document(json!({"text": "x".repeat(2000)}));
    let size = whole.bytes();
    assert_eq!(size, whole.to_json().len() + 1);
    assert_eq!(cap(whole.clone(), size), whole);
    assert_ne!(cap(whole.clone(), size - 1), whole);
}

#[test]
fn the_longest_texts_are_shortened_to_equal_length() {
    let capped =
        cap(document(json!({"a": "a".repeat(900), "b": "b".repeat(5000), "c": "c".repeat(4000)})), 3000);
    assert!(capped.bytes() <= 3000);
    assert_eq!(capped.data["a"], "a".repeat(900));
    let length = |name: &str| capped.data[name].as_str().unwrap().len();
    assert_eq!(length("b"), length("c"));
    assert!(length("b") > 700, "{}", length("b"));
    let fields: Vec<String> =
        capped.warnings.iter().map(|warning| warning.field.as_ref().unwrap().to_string()).collect();
    assert_eq!(fields, ["data.b", "data.c"]);
}

#[test]
fn a_text_that_is_cut_twice_has_one_warning() {
    let envelope = Envelope::success(json!({"body": format!("{} [...]", "x".repeat(3000))}));
    let document = envelope.with_max_response_bytes(2000).document().unwrap();
    let [warning] = document.warnings.as_slice() else { panic!("{:?}", document.warnings) };
    assert_eq!((warning.original_bytes, warning.original_length), (None, None));
    let text = document.data["body"].as_str().unwrap();
    assert_eq!(text.len() as u64, warning.returned_bytes.unwrap() + TRUNCATION_MARKER.len() as u64);
    assert!(warning.message.ends_with("; shortened to fit the limit of the answer"));
}

#[test]
fn a_long_message_is_shortened_too() {
    let error = ErrorBody::new("odd", 3, "m".repeat(5000)).with_hint("h".repeat(5000));
    let failed = Document { error: Some(error), ..document(Value::Null) };
    let capped = cap(failed, MIN_RESPONSE_LIMIT_BYTES);
    let error = capped.error.as_ref().unwrap();
    assert!(error.message.ends_with(TRUNCATION_MARKER) && error.message.starts_with('m'));
    assert!(error.hint.as_ref().unwrap().ends_with(TRUNCATION_MARKER));
    assert_eq!((error.exit_code, capped.warnings.len()), (3, 2));
    assert!(capped.bytes() <= MIN_RESPONSE_LIMIT_BYTES);
}

#[test]
fn lists_are_never_shortened() {
    let capped = cap(document(json!({"items": vec![1; 5000]})), 2000);
    let error = capped.error.as_ref().unwrap();
    assert_eq!((error.code.as_str(), error.exit_code), (RESPONSE_TOO_LARGE, 1));
    assert_eq!((error.limit, error.phase), (Some(2000), Phase::Output));
    assert!(capped.data.is_null() && capped.bytes() <= MIN_RESPONSE_LIMIT_BYTES);
}

#[test]
fn an_error_is_kept_when_its_data_is_dropped() {
    let refusal = Envelope::refusal(vec![1; 5000], ErrorBody::new("not_whole", 3, "it is not whole"))
        .with_warnings([Warning::notice("ODD", "odd")]);
    let document = refusal.with_max_response_bytes(2000).document().unwrap();
    assert_eq!(document.error.as_ref().unwrap().code, "not_whole");
    assert_eq!(document.exit_code(), 3);
    assert_eq!(document.warnings.len(), 2);
    assert_eq!(document.warnings[1].original_bytes, Some(10_001));
    assert!(document.meta().truncated && document.bytes() <= 2000);
}

#[test]
fn a_limit_below_the_minimum_becomes_the_minimum() {
    let capped = cap(document(json!("x".repeat(5000))), 0);
    assert!(capped.bytes() <= MIN_RESPONSE_LIMIT_BYTES && capped.error.is_none());
}

/// Returns an answer that a backend cut. It has `short` short texts, each with its own ellipsis, and these
/// others.
fn cut_by_a_backend(short: usize, others: &[String]) -> Envelope<Vec<String>> {
    let short = (0..short).map(|number| format!("note {number} […]"));
    Envelope::success(short.chain(others.iter().cloned()).collect())
}

/// Returns the number of values that the last warning summarises.
fn folded_count(document: &Document) -> usize {
    let last = document.warnings.last().unwrap();
    assert_eq!((last.code.as_str(), last.kind), (MORE_TRUNCATED, WarningKind::Truncation));
    assert_eq!(last.field, Some(FieldPath::data()));
    last.message.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn excess_warnings_are_folded_and_the_data_stays() {
    let envelope = cut_by_a_backend(7000, &[]);
    let capped = envelope.document().unwrap();
    assert_eq!(capped.error, None);
    assert_eq!(capped.data[6999], "note 6999 […]");
    assert!(capped.meta().truncated);
    let limit = crate::DEFAULT_MAX_RESPONSE_BYTES;
    assert!((limit - 500..=limit).contains(&capped.bytes()), "{} bytes", capped.bytes());
    let kept = capped.warnings.len() - 1;
    assert!(kept > 5000);
    assert_eq!(kept + folded_count(&capped), 7000);
    let place = |index| Some(FieldPath::data().index(index));
    assert_eq!((&capped.warnings[0].field, &capped.warnings[kept - 1].field), (&place(0), &place(kept - 1)));
    // With a smaller limit, warnings that were already folded are not folded again.
    let smaller = cap(capped, limit / 2);
    assert_eq!(smaller.error, None);
    assert!(smaller.bytes() <= limit / 2 && smaller.meta().truncated);
}

#[test]
fn a_shortened_text_keeps_its_own_warning_when_others_are_folded() {
    let story = "The harbour was quiet. ".repeat(10_000);
    let capped = cut_by_a_backend(3000, std::slice::from_ref(&story))
        .with_max_response_bytes(100_000)
        .document()
        .unwrap();
    assert_eq!(capped.error, None);
    assert!(capped.bytes() <= 100_000);
    let place = FieldPath::data().index(3000);
    let warning = capped.warnings.iter().find(|warning| warning.field.as_ref() == Some(&place)).unwrap();
    assert_eq!(warning.original_bytes, Some(story.len() as u64));
    assert!(warning.returned_bytes > Some(40_000), "{warning:?}");
    assert_eq!(capped.warnings.len() - 2 + folded_count(&capped), 3000);
}

#[test]
fn the_error_states_that_warnings_exceed_the_limit() {
    let notices = (0..50).map(|number| Warning::notice("ODD", format!("odd {number} {}", "x".repeat(100))));
    let envelope = Envelope::success(1).with_warnings(notices).with_max_response_bytes(2000);
    let error = envelope.document().unwrap().error.unwrap();
    assert_eq!(error.code, RESPONSE_TOO_LARGE);
    assert!(error.message.ends_with("bytes are its warnings"), "{}", error.message);
}

#[test]
fn warnings_for_many_texts_remove_no_text() {
    let count = 20_000;
    let text = "a text that is long enough to be shortened";
    let data = Value::from(vec![text; count]);
    let warnings = (0..count).map(|index| {
        Warning::field_truncated(FieldPath::data().index(index), Size::of(text), "the backend cut it")
    });
    let capped = cap(Document { warnings: warnings.collect(), ..document(data) }, 1_400_000);
    assert_eq!((capped.error, capped.data[0].as_str()), (None, Some(text)));
    assert!(capped.warnings.len() > 1_000);
}
