//! Closing of cut JSON (PC-1). The input is a complete or a cut document.

use std::collections::BTreeSet;

use endmark_text::detect::detect;
use endmark_text::{CompleteError, CompletedText, Format, UnfinishedKind, Verdict, complete};
use endmark_wire::json::{Kind, Value};

use crate::input::Numbers;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Maximum length in bytes of a document that is cut at every byte. A longer document is cut at 12 positions.
const MAX_BYTES_CUT_AT_EVERY_BYTE: usize = 160;

/// Checks that a closed text is a prefix of the input followed by closing characters, is whole, and agrees
/// with the complete document.
pub fn check(bytes: &[u8]) {
    for format in [Format::Json, Format::Jsonl, Format::Auto] {
        check_closed_text(bytes, &format);
    }
    let Ok(document) = Value::parse(bytes) else { return };
    let mut numbers = Numbers::of(bytes);
    let some: Vec<usize> = (0..12).map(|_| numbers.below(bytes.len() + 1)).collect();
    let all: Vec<usize> = (0..=bytes.len()).collect();
    for cut in if bytes.len() <= MAX_BYTES_CUT_AT_EVERY_BYTE { all } else { some } {
        match complete(&bytes[..cut], &Format::Json) {
            Ok(completed) => check_against_document(&completed, &document, cut),
            Err(CompleteError::NoValue) => {
                let is_incomplete = matches!(document.kind(), Kind::Number | Kind::Bool | Kind::Null);
                assert!(
                    cut <= document.span().start || is_incomplete && cut < document.span().end,
                    "cut at {cut}"
                );
            }
            // An incomplete byte order mark counts as truncated, but a complete one without any text is
            // malformed.
            Err(error) => assert_eq!(&bytes[..cut], BYTE_ORDER_MARK, "cut at {cut}: {error}"),
        }
    }
}

/// Checks the properties that any closed text must have.
fn check_closed_text(bytes: &[u8], format: &Format) {
    let detected = detect(bytes, format);
    let completed = match complete(bytes, format) {
        Ok(completed) => completed,
        Err(CompleteError::Malformed { index, reason }) => {
            return assert_eq!(detected.verdict, Verdict::Malformed { index, reason }, "{format}");
        }
        Err(CompleteError::NoValue) => return assert!(!detected.verdict.is_whole(), "{format}"),
        Err(CompleteError::NotJson) => return assert_eq!(*format, Format::Auto),
        Err(error @ CompleteError::NoGrammar(_)) => panic!("{format}: {error}"),
    };
    let text = completed.text.as_bytes();
    if completed.escaped > 0 {
        assert!(detect(text, &Format::Jsonl).hint.is_none(), "{format}: {completed:?}");
        return;
    }
    let kept = text.iter().zip(bytes).take_while(|(one, other)| one == other).count();
    assert!(text[kept..].iter().all(|byte| b"\"]}".contains(byte)), "{format}: {completed:?}");
    assert!(completed.unfinished().is_sorted_by_key(|place| place.pointer.len()), "{format}: {completed:?}");
    if detected.verdict.is_whole() {
        let may_go_on = bytes.last().is_some_and(u8::is_ascii_digit);
        assert_eq!((text, completed.is_finished()), (bytes, !may_go_on), "{format}");
        return;
    }
    assert!(!completed.is_finished(), "{format}: {completed:?}");
    let format = if *format == Format::Auto { &Format::Jsonl } else { format };
    let again = complete(text, format).unwrap();
    assert!(
        detect(text, format).verdict.is_whole() && again.text == completed.text,
        "{format}: {completed:?}"
    );
    assert!(again.is_finished() || text.last().is_some_and(u8::is_ascii_digit), "{format}: {completed:?}");
}

/// Compares a closed text with the document that was cut.
fn check_against_document(completed: &CompletedText, document: &Value<'_>, cut: usize) {
    let unmarked = completed.text.trim_start_matches('\u{FEFF}');
    let closed = Value::parse(unmarked.as_bytes()).unwrap();
    let marked: BTreeSet<&str> = completed.unfinished().map(|place| place.pointer).collect();
    for place in completed.unfinished() {
        let is_kept =
            matches!(place.kind, UnfinishedKind::String | UnfinishedKind::Array | UnfinishedKind::Object)
                || place.kind == UnfinishedKind::Number && document.kind() == Kind::Number;
        assert_eq!(place.is_omitted, !is_kept, "cut at {cut}: {completed:?}");
    }
    let mut pairs = vec![(String::new(), closed, *document)];
    while let Some((pointer, said, meant)) = pairs.pop() {
        let is_open = meant.span().end > cut || meant.kind() == Kind::Number && meant.span().end == cut;
        let is_marked = marked.contains(pointer.as_str());
        assert!(is_marked || !is_open, "cut at {cut}: `{pointer}` is not marked: {completed:?}");
        if !is_open {
            // Members with the same name share one pointer, so a mark may belong to another member.
            assert_eq!(said.raw(), meant.raw(), "cut at {cut}: `{pointer}`");
            continue;
        }
        assert_eq!(said.kind(), meant.kind(), "cut at {cut}: `{pointer}`");
        match said.kind() {
            Kind::String => {
                let inside = &said.raw()[..said.raw().len() - 1];
                assert!(meant.raw().starts_with(inside), "cut at {cut}: `{pointer}`");
                let (said, meant) = (said.decode().unwrap(), meant.decode().unwrap());
                assert!(
                    !meant.exact || said.exact && meant.text.starts_with(&*said.text),
                    "cut at {cut}: `{pointer}`"
                );
            }
            Kind::Number => {
                assert!(pointer.is_empty() && meant.raw().starts_with(said.raw()), "cut at {cut}")
            }
            Kind::Bool | Kind::Null => panic!("cut at {cut}: half a literal at `{pointer}`"),
            Kind::Array => {
                let (items, all) = (said.items().collect::<Vec<_>>(), meant.items().collect::<Vec<_>>());
                let sayable = all.iter().filter(|item| must_be_written(**item, cut)).count();
                assert_eq!(items.len(), sayable, "cut at {cut}: `{pointer}`");
                pairs.extend(
                    items
                        .into_iter()
                        .zip(all)
                        .enumerate()
                        .map(|(index, (said, meant))| (format!("{pointer}/{index}"), said, meant)),
                );
            }
            Kind::Object => {
                let (fields, all) = (said.fields().collect::<Vec<_>>(), meant.fields().collect::<Vec<_>>());
                let sayable = all.iter().filter(|field| must_be_written(field.value, cut)).count();
                assert_eq!(fields.len(), sayable, "cut at {cut}: `{pointer}`");
                for (said, meant) in fields.into_iter().zip(all) {
                    assert_eq!(said.key.raw(), meant.key.raw(), "cut at {cut}: `{pointer}`");
                    let name = said.key.decode().unwrap().text;
                    let step = name.replace('~', "~0").replace('/', "~1");
                    pairs.push((format!("{pointer}/{step}"), said.value, meant.value));
                }
            }
        }
    }
}

/// Whether the closed text must contain this value if the document is cut at `cut`.
fn must_be_written(value: Value<'_>, cut: usize) -> bool {
    match value.kind() {
        Kind::String | Kind::Array | Kind::Object => value.span().start < cut,
        Kind::Number => value.span().end < cut,
        Kind::Bool | Kind::Null => value.span().end <= cut,
    }
}
