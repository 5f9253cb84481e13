//! Detection (PC-1, PC-2). The input is a text, which is checked in every format.

use endmark_text::detect::{Detector, detect, detect_strict};
use endmark_text::{Format, InToken, Truncation, Verdict};

use crate::input::{Numbers, is_value};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Maximum length in bytes of a text that is checked at each byte.
const MAX_BYTES_CHECKED_AT_EVERY_BYTE: usize = 192;

pub(crate) fn formats() -> [Format; 7] {
    let marker = Format::Marker("END]".to_owned());
    [Format::Json, Format::Jsonl, Format::Markdown, Format::Tags, Format::Text, Format::Auto, marker]
}

/// Checks that splits do not change the result, offsets are in order, `Whole` agrees with `serde_json`, and a
/// malformed text stays malformed.
pub fn check(bytes: &[u8]) {
    let mut numbers = Numbers::of(bytes);
    for format in formats() {
        let expected = detect(bytes, &format);
        let mut detector = Detector::new(&format);
        for piece in numbers.split_pieces(bytes) {
            detector.push(piece);
            detector = detector.clone();
        }
        assert_eq!(detector.detection(), expected, "{format} in pieces: {detector:?}");
        if bytes.len() <= MAX_BYTES_CHECKED_AT_EVERY_BYTE {
            check_byte_by_byte(bytes, &format);
        }
        let cut = numbers.below(bytes.len() + 1);
        for text in [bytes, &bytes[..cut]] {
            check_detection(text, &format);
        }
    }
    for text in [bytes, &bytes[..numbers.below(bytes.len() + 1)]] {
        check_json(text);
        check_jsonl(text);
    }
}

fn check_byte_by_byte(bytes: &[u8], format: &Format) {
    let mut detector = Detector::new(format);
    for (cut, byte) in bytes.iter().enumerate() {
        assert_eq!(detector.detection(), detect(&bytes[..cut], format), "{format} at {cut}");
        let was_malformed = detector.is_malformed();
        detector.push(&[*byte]);
        assert!(detector.is_malformed() || !was_malformed, "{format} recovers at {cut}");
    }
    assert_eq!(detector.detection(), detect(bytes, format), "{format} in single bytes");
}

/// Checks the properties that the result of any detection must have.
fn check_detection(text: &[u8], format: &Format) {
    let mut detector = Detector::new(format);
    detector.push(text);
    let found = detector.detection();
    assert_eq!(detector.position(), text.len(), "{format}");
    assert_eq!(detector.verdict(), found.verdict, "{format}");
    assert_eq!(detector.is_whole(), found.verdict.is_whole(), "{format}");
    assert_eq!(found.detected.is_some(), *format == Format::Auto, "{format}");
    match &found.verdict {
        Verdict::Whole => assert!(!detector.is_malformed(), "{format}"),
        Verdict::Truncated(truncation) => {
            assert!(!detector.is_malformed(), "{format}");
            check_truncated(text, format, truncation);
        }
        Verdict::Malformed { index, reason } => {
            assert!(*index < text.len() && !reason.is_empty(), "{format}: {found:?}");
            assert!(detector.is_malformed() || text == BYTE_ORDER_MARK, "{format}: {found:?}");
            if detector.is_malformed() {
                detector.push(b" \"]}1");
                assert_eq!(detector.verdict(), found.verdict, "{format} changes its mind");
                assert!(detector.is_malformed(), "{format} recovers: {found:?}");
            }
        }
    }
}

fn check_truncated(text: &[u8], format: &Format, found: &Truncation) {
    let settled = found.truncation_index;
    assert!(found.balanced_index <= settled && settled <= text.len(), "{format}: {found:?}");
    assert_eq!(found.last_valid_token.is_empty(), text.is_empty(), "{format}: {found:?}");
    if let Ok(text) = std::str::from_utf8(text) {
        assert!(text.is_char_boundary(settled), "{format}: {found:?}");
        assert!(text.is_char_boundary(found.balanced_index), "{format}: {found:?}");
        assert!(text.contains(&found.last_valid_token), "{format}: {found:?}");
    }
    let is_blank =
        text[..settled].strip_prefix(BYTE_ORDER_MARK).unwrap_or(&text[..settled]).trim_ascii().is_empty();
    if matches!(format, Format::Json | Format::Jsonl) && !is_blank {
        // The settled prefix must also be settled without the text after it.
        match detect(&text[..settled], format).verdict {
            Verdict::Truncated(again) => {
                // A high surrogate alone is not settled. It becomes settled when the text after it cannot be
                // its low surrogate.
                let surrogate = "\\uD800".len();
                let may_follow = matches!(found.in_token, Some(InToken::Escape | InToken::Utf8));
                let surrogate = if may_follow { surrogate } else { 0 };
                let again_settled =
                    [settled, settled.saturating_sub(surrogate)].contains(&again.truncation_index);
                assert!(again_settled, "{format}: {found:?} {again:?}");
                assert_eq!(again.balanced_index, found.balanced_index, "{format}: {found:?}");
                assert!(
                    found.open.iter().take(again.open.len()).eq(again.open.iter()),
                    "{format}: {found:?} {again:?}"
                );
            }
            Verdict::Whole => assert_eq!(*format, Format::Jsonl, "{found:?}"),
            malformed @ Verdict::Malformed { .. } => panic!("{format}: {found:?} {malformed:?}"),
        }
    }
}

/// Compares `Format::Json` with `serde_json`.
fn check_json(text: &[u8]) {
    let without_mark = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let verdict = detect(text, &Format::Json).verdict;
    if let Some(is_value) = is_value(without_mark) {
        // `serde_json` rejects unescaped control characters in strings.
        let strict = detect_strict(text, &Format::Json).verdict;
        assert_eq!(strict.is_whole(), is_value, "{strict:?}");
        assert!(verdict.is_whole() || !is_value, "{verdict:?}");
    }
    if let Verdict::Malformed { index, .. } = verdict
        && text != BYTE_ORDER_MARK
    {
        let is_beyond_repair = |text: &[u8]| {
            let mut detector = Detector::new(&Format::Json);
            detector.push(text);
            detector.is_malformed()
        };
        assert!(!is_beyond_repair(&text[..index]), "malformed before {index}");
        assert!(is_beyond_repair(&text[..=index]), "not malformed at {index}");
    }
}

/// Checks that lines which `serde_json` accepts one by one are whole together.
fn check_jsonl(text: &[u8]) {
    // A form feed is white space in Rust, but not in JSON.
    let is_blank = |line: &[u8]| line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'));
    let mut lines = text.split(|byte| *byte == b'\n').filter(|line| !is_blank(line)).peekable();
    if lines.peek().is_some() && lines.all(|line| is_value(line) == Some(true)) {
        assert_eq!(detect(text, &Format::Jsonl).verdict, Verdict::Whole);
    }
}
