use serde_json::json;

use super::*;
use crate::Envelope;

fn document(data: Value) -> Document {
    Document { data, error: None, warnings: Vec::new(), duration_ms: 5 }
}

#[test]
fn what_fits_is_left_alone_to_the_byte() {
    let whole = document(json!({"text": "x".repeat(2000)}));
    let size = whole.bytes();
    assert_eq!(size, whole.to_json().len() + 1);
    assert_eq!(cap(whole.clone(), size), whole);
    assert_ne!(cap(whole.clone(), size - 1), whole);
}

#[test]
fn the_longest_are_shortened_first_and_to_one_length() {
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
fn a_text_that_a_backend_cut_and_is_shortened_again_has_one_warning_that_claims_no_more_than_is_known() {
    let envelope = Envelope::success(json!({"body": format!("{}...", "x".repeat(3000))}));
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
    let capped = cap(failed, MIN_RESPONSE_BYTES);
    let error = capped.error.as_ref().unwrap();
    assert!(error.message.ends_with(TRUNCATION_MARKER) && error.message.starts_with('m'));
    assert!(error.hint.as_ref().unwrap().ends_with(TRUNCATION_MARKER));
    assert_eq!((error.exit_code, capped.warnings.len()), (3, 2));
    assert!(capped.bytes() <= MIN_RESPONSE_BYTES);
}

#[test]
fn lists_are_never_shortened() {
    let capped = cap(document(json!({"items": vec![1; 5000]})), 2000);
    let error = capped.error.as_ref().unwrap();
    assert_eq!((error.code.as_str(), error.exit_code), (RESPONSE_TOO_LARGE, 1));
    assert_eq!((error.limit, error.phase), (Some(2000), Phase::Output));
    assert!(capped.data.is_null() && capped.bytes() <= MIN_RESPONSE_BYTES);
}

#[test]
fn an_error_is_kept_when_its_data_has_to_go() {
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
fn a_limit_that_nothing_fits_is_taken_for_the_lowest() {
    let capped = cap(document(json!("x".repeat(5000))), 0);
    assert!(capped.bytes() <= MIN_RESPONSE_BYTES && capped.error.is_none());
}
