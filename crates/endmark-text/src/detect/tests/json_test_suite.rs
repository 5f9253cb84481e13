//! Runs the files of `JSONTestSuite` (see `tests/jsontestsuite/README.md`), whole and cut at every
//! position.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::de::IgnoredAny;

use crate::detect::{Detector, detect, detect_strict};
use crate::{Format, Truncation, Verdict};

/// Returns all labelled files: name, label and bytes.
fn files() -> Vec<(String, String, Vec<u8>)> {
    let suite = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/jsontestsuite");
    let labels: BTreeMap<String, String> =
        serde_json::from_slice(&std::fs::read(suite.join("labels.json")).unwrap()).unwrap();
    let bytes = |name: &str| match name {
        "n_structure_100000_opening_arrays.json" => b"[".repeat(100_000),
        "n_structure_open_array_object.json" => [b"[{\"\":".repeat(50_000), b"\n".to_vec()].concat(),
        _ => std::fs::read(suite.join("test_parsing").join(name)).unwrap(),
    };
    labels.into_iter().map(|(name, label)| (name.clone(), label, bytes(&name))).collect()
}

#[test]
fn every_label_of_the_suite_is_matched() {
    let mut labelled = 0;
    for (name, label, bytes) in files() {
        let verdict = detect_strict(&bytes, &Format::Json).verdict;
        let expected = match label.as_str() {
            "complete" => "whole",
            "truncated" | "empty" => "truncated",
            "malformed" => "malformed",
            "implementation-defined" => continue,
            other => panic!("{name} has the label {other}"),
        };
        assert_eq!(verdict.name(), expected, "{name}: {verdict:?}");
        if label == "empty" {
            let truncation = verdict.truncation().unwrap();
            assert_eq!((truncation.truncation_index, truncation.balanced_index), (0, 0), "{name}");
        }
        labelled += 1;
    }
    assert_eq!(labelled, 283);
}

#[test]
fn implementation_defined_files_are_decided_by_the_grammar() {
    let malformed = [
        "i_string_UTF-16LE_with_BOM.json",
        "i_string_UTF-8_invalid_sequence.json",
        "i_string_UTF8_surrogate_U+D800.json",
        "i_string_invalid_utf-8.json",
        "i_string_iso_latin_1.json",
        "i_string_lone_utf8_continuation_byte.json",
        "i_string_not_in_unicode_range.json",
        "i_string_overlong_sequence_2_bytes.json",
        "i_string_overlong_sequence_6_bytes.json",
        "i_string_overlong_sequence_6_bytes_null.json",
        "i_string_truncated-utf-8.json",
        "i_string_utf16BE_no_BOM.json",
        "i_string_utf16LE_no_BOM.json",
    ];
    let mut seen = 0;
    for (name, label, bytes) in files() {
        if label == "implementation-defined" {
            let expected = if malformed.contains(&name.as_str()) { "malformed" } else { "whole" };
            assert_eq!(detect(&bytes, &Format::Json).verdict.name(), expected, "{name}");
            seen += 1;
        }
    }
    assert_eq!(seen, 35);
}

#[test]
fn every_prefix_of_a_valid_file_is_truncated_or_a_value() {
    let mut prefixes = 0;
    for (name, label, bytes) in files() {
        if label != "complete" {
            continue;
        }
        for cut in 0..bytes.len() {
            let prefix = &bytes[..cut];
            let is_value = std::str::from_utf8(prefix)
                .is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok());
            let expected = if is_value { "whole" } else { "truncated" };
            assert_eq!(detect(prefix, &Format::Json).verdict.name(), expected, "{name} cut at {cut}");
            prefixes += 1;
        }
    }
    assert_eq!(prefixes, 1_190);
}

#[test]
fn a_malformed_file_reports_its_first_unrepairable_byte() {
    for (name, _, bytes) in files() {
        if bytes == "\u{FEFF}".as_bytes() {
            continue;
        }
        if let Verdict::Malformed { index, .. } = detect(&bytes, &Format::Json).verdict {
            let mut detector = Detector::new(&Format::Json);
            detector.push(&bytes[..index]);
            assert!(!detector.is_malformed(), "{name}");
            detector.push(&bytes[index..=index]);
            assert!(detector.is_malformed(), "{name}");
        }
    }
}

#[test]
fn byte_by_byte_input_gives_the_same_verdict() {
    for format in [Format::Json, Format::Jsonl, Format::Text, Format::Auto, Format::Marker("]".to_owned())] {
        for (name, _, bytes) in files() {
            let mut detector = Detector::new(&format);
            for byte in &bytes {
                detector.push(&[*byte]);
            }
            assert_eq!(detector.detection(), detect(&bytes, &format), "{name} as {format}");
        }
    }
}

#[test]
fn a_million_levels_need_no_call_stack() {
    let deep = [b"[{\"a\":".repeat(500_000), b"\"end".to_vec()].concat();
    let mut detector = Detector::new(&Format::Json);
    detector.push(&deep);
    let Verdict::Truncated(Truncation { truncation_index, open, last_valid_token, .. }) = detector.verdict()
    else {
        panic!("{:?}", detector.verdict().name());
    };
    assert_eq!((truncation_index, open.len(), last_valid_token.as_str()), (deep.len(), 1_000_001, "\"end"));
    detector.push(b"\"");
    for _ in 0..500_000 {
        detector.push(b"}]");
    }
    assert!(detector.is_whole());
}
