//! The envelope (EN-2, EN-3, EN-5). The input is a document, a path, a cursor, or the bytes of a value.

use endmark_envelope::{
    Envelope, FieldPattern, FieldRule, MIN_RESPONSE_LIMIT_BYTES, Pages, TRUNCATION_MARKER, WarningKind,
    detect_cut,
};
use serde_json::Value;

use crate::input::Numbers;

/// Checks that a document is within its limit and reports each text that was cut.
pub fn check(bytes: &[u8]) {
    let _ = detect_cut(bytes, &FieldRule::default());
    if let Ok(text) = str::from_utf8(bytes) {
        check_path(text);
        check_cursor(text);
    }
    if let Ok(data) = serde_json::from_slice::<Value>(bytes) {
        check_capped(data, MIN_RESPONSE_LIMIT_BYTES + Numbers::of(bytes).below(bytes.len() + 1));
    }
}

/// Checks that a path stays the same when it is written and parsed again.
fn check_path(text: &str) {
    if let Ok(pattern) = text.parse::<FieldPattern>() {
        assert_eq!(pattern.to_string().parse(), Ok(pattern), "{text}");
    }
}

/// Checks that a valid cursor contains the key for which it was issued.
fn check_cursor(text: &str) {
    let pages = Pages::of("fuzz").with_items(1);
    if let Ok(key) = pages.decode_cursor::<Value>(Some(text)) {
        let page = pages.page([&key, &key], |key| (*key).clone()).unwrap();
        assert_eq!(pages.decode_cursor(page.next_cursor.as_deref()), Ok(key));
    }
}

fn check_capped(data: Value, limit: usize) {
    let document = Envelope::success(data).with_max_response_bytes(limit).document().unwrap();
    let json = document.to_json();
    assert!(json.len() < limit, "{} of {limit}", json.len());
    let read: Value = serde_json::from_str(&json).unwrap();
    let mut has_truncation = false;
    for warning in document.warnings.iter().filter(|warning| warning.kind == WarningKind::Truncation) {
        has_truncation = true;
        let Some(Value::String(text)) = warning.field.as_ref().unwrap().find(&read) else { continue };
        let own = text.strip_suffix(TRUNCATION_MARKER).unwrap_or(text);
        assert_eq!(warning.returned_bytes, Some(own.len() as u64), "{text}");
        assert_eq!(warning.truncated_length, Some(own.chars().count() as u64), "{text}");
    }
    assert_eq!(read["meta"]["truncated"], has_truncation);
}
