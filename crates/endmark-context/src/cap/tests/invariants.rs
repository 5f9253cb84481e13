//! The invariants of capped values.

use std::collections::HashSet;

use endmark_envelope::WarningKind;
use serde_json::Value;

use crate::cap::table::csv;
use crate::cap::{CappedValue, Capper, Format, Limits, RequestedFormat, Unit, cap, marker};

/// A simple tokenizer for tests. Each word is split into tokens of three characters.
pub(super) fn count_test_tokens(text: &str) -> usize {
    text.split(' ').map(|word| 1 + word.chars().count() / 3).sum()
}

fn size(text: &str, limits: &Limits) -> usize {
    match limits.unit {
        Unit::Chars => text.chars().count(),
        Unit::Bytes => text.len(),
        Unit::Tokens(count) => count(text),
    }
}

/// Caps a value at once and in chunks, and checks both results.
pub(super) fn assert_invariants(
    bytes: &[u8],
    requested_format: RequestedFormat,
    limits: &Limits,
    chunk: usize,
) {
    let capped = cap(bytes, requested_format, limits);
    let mut in_chunks = Capper::new(requested_format, limits.clone()).unwrap();
    let pushed: Result<(), _> = bytes.chunks(chunk).try_for_each(|chunk| in_chunks.push(chunk));
    assert_eq!(pushed.and_then(|()| in_chunks.finish()), capped, "chunks of {chunk}");
    let Ok(capped) = capped else {
        assert!(requested_format != RequestedFormat::Auto && str::from_utf8(bytes).is_err());
        return;
    };
    let Ok(original) = str::from_utf8(bytes) else { return };
    if matches!(capped.format, Format::Binary(_)) {
        return;
    }
    assert!(
        size(&capped.text, limits) <= limits.most,
        "{} > {}: {}",
        size(&capped.text, limits),
        limits.most,
        capped.text
    );
    assert!(capped.text.len() <= original.len(), "longer than it was: {}", capped.text);
    assert_eq!(capped.is_cut, capped.text != original, "{:?}", capped.text);
    let truncations =
        capped.warnings.iter().filter(|warning| warning.kind == WarningKind::Truncation).count();
    assert_eq!(capped.is_cut, truncations > 0);
    let again = cap(capped.text.as_bytes(), requested_format, limits).unwrap();
    assert_eq!(again.text, capped.text, "capped again");
    assert!(!again.is_cut);
    assert_rows_from_input(&capped, original);
}

fn assert_rows_from_input(capped: &CappedValue, original: &str) {
    match capped.format {
        Format::Text | Format::Diff => {
            for line in capped.text.lines().filter(|line| marker::parse_line(line).is_none()) {
                assert!(original.contains(line), "{line:?} is not of the input");
            }
        }
        Format::Json => {
            let (Ok(whole), Ok(shown)) = (serde_json::from_str(original), serde_json::from_str(&capped.text))
            else {
                panic!("no JSON: {}", capped.text);
            };
            assert_is_part(&shown, &whole);
        }
        Format::JsonLines => {
            let rows: HashSet<&str> = original.lines().collect();
            for row in capped.text.lines().filter(|row| marker::OmissionValue::read(row).is_none()) {
                let is_json = serde_json::from_str::<Value>(row).is_ok();
                assert!(rows.contains(row) || row.contains("left out …]") && is_json, "{row}");
            }
        }
        Format::Csv(delimiter) => {
            let columns = |text: &str| csv::fields(text, delimiter).count();
            if records(original).iter().all(|record| columns(record) == columns(&records(original)[0])) {
                let originals: HashSet<String> = records(original).into_iter().collect();
                // If the delimiters alone exceed the limit, the result is a table with one column that
                // contains only the marker.
                let shown = records(&capped.text);
                let is_bare = shown.len() == 1 && shown[0].contains("left out …]") && columns(&shown[0]) == 1;
                for record in shown.into_iter().filter(|_| !is_bare) {
                    assert_eq!(columns(&record), columns(&records(original)[0]), "{record}");
                    assert!(originals.contains(&record) || record.contains("left out …]"), "{record}");
                }
            }
        }
        Format::Binary(_) => {}
    }
}

fn records(text: &str) -> Vec<String> {
    let mut records: Vec<String> = Vec::new();
    for line in text.lines() {
        match records.last_mut().filter(|record| csv::is_open(record)) {
            Some(record) => {
                record.push('\n');
                record.push_str(line);
            }
            None => records.push(line.to_owned()),
        }
    }
    records
}

/// Asserts that `whole` contains `shown`: each value at its path, and list items in the same order.
fn assert_is_part(shown: &Value, whole: &Value) {
    match (shown, whole) {
        (Value::Array(shown), Value::Array(whole)) => {
            let shown: Vec<&Value> =
                shown.iter().filter(|item| item.get("endmark_omitted").is_none()).collect();
            assert!(shown.len() <= whole.len());
        }
        (Value::Object(shown), Value::Object(whole)) if whole.get("original_chars").is_none() => {
            for (key, value) in shown.iter().filter(|(key, _)| *key != "endmark_omitted") {
                match whole.get(key) {
                    Some(whole) => assert_is_part(value, whole),
                    None => assert!(shown.contains_key("original_chars"), "{key} is not of the input"),
                }
            }
        }
        (Value::String(shown), Value::String(whole)) => {
            assert!(shown == whole || shown.contains("left out …]"));
        }
        (shown, whole) => assert!(
            shown == whole
                || shown.get("original_chars").is_some()
                || shown.get("endmark_omitted").is_some()
                || shown.pointer("/0/endmark_omitted").is_some(),
            "{shown} is not {whole}"
        ),
    }
}
