//! Functions that read a document, whole or in chunks, with the compared libraries.
#![expect(
    clippy::missing_panics_doc,
    reason = "one that does not read the document to its end measures nothing"
)]

use actson::feeder::PushJsonFeeder;
use actson::{JsonEvent, JsonParser};
use endmark_text::Format;
use endmark_text::detect::Detector;

/// Runs Endmark's detector. It checks the grammar, escapes and UTF-8, and finds the position at which a cut
/// text continues.
pub fn endmark(document: &[u8]) {
    let mut detector = Detector::new(&Format::Json);
    detector.push(document);
    assert!(detector.verdict().is_whole());
}

/// Runs Endmark's detector chunk by chunk, and only checks whether the text is whole.
pub fn endmark_in_chunks(document: &[u8], size: usize) {
    let mut detector = Detector::new(&Format::Json);
    for chunk in document.chunks(size) {
        detector.push(chunk);
    }
    assert!(detector.is_whole());
}

/// Runs `serde_json` without building the value. It does not check the UTF-8 of strings.
pub fn serde_json_ignored(document: &[u8]) {
    assert!(serde_json::from_slice::<serde::de::IgnoredAny>(document).is_ok());
}

/// Runs `jiter` in its mode for cut texts, which builds the value.
pub fn jiter_partial(document: &[u8]) {
    let value = jiter::JsonValue::parse_with_config(document, false, jiter::PartialMode::TrailingStrings);
    assert!(value.is_ok());
}

/// Runs `actson` chunk by chunk.
pub fn actson_in_chunks(document: &[u8], size: usize) {
    let mut parser = JsonParser::new(PushJsonFeeder::new());
    let mut chunks = document.chunks(size);
    let mut rest: &[u8] = &[];
    loop {
        match parser.next_event() {
            Ok(Some(JsonEvent::NeedMoreInput)) => {
                if rest.is_empty() {
                    rest = chunks.next().unwrap_or_default();
                }
                if rest.is_empty() {
                    parser.feeder.done();
                } else {
                    rest = &rest[parser.feeder.push_bytes(rest)..];
                }
            }
            Ok(Some(_)) => {}
            Ok(None) => return,
            Err(error) => panic!("{error:?}"),
        }
    }
}
