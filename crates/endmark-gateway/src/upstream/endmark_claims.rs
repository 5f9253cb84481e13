//! Removes `endmark` objects from the replies of ordinary upstreams, so that they cannot imitate this gateway.

use std::sync::LazyLock;

use endmark_wire::edit::Edits;
use endmark_wire::sse::Frame;
use memchr::memmem::Finder;

/// The paths at which Endmark discloses a recovery: next to the provider's fields, and inside the response object of
/// Responses events.
const CLAIM_PATHS: [&str; 2] = ["endmark", "response.endmark"];

/// Search patterns. Each JSON spelling of the name contains at least one, even if letters are escaped with the codes
/// 61 to 72. They are prepared once: preparation costs as much as one search, and every event is searched.
static SEARCH_PATTERNS: LazyLock<[Finder<'static>; 3]> =
    LazyLock::new(|| ["endmark", "\\u006", "\\u007"].map(Finder::new));

/// Returns the document without an `endmark` object, which a client would attribute to this gateway. Returns `None`
/// if there is nothing to remove, which is the usual case.
pub(crate) fn without_claims(json: &[u8]) -> Option<Vec<u8>> {
    if SEARCH_PATTERNS.iter().all(|trace| trace.find(json).is_none()) {
        return None;
    }
    let mut edits = Edits::new(json).ok()?;
    let places: Vec<_> =
        CLAIM_PATHS.into_iter().filter(|place| edits.original().at(place).is_some()).collect();
    for place in &places {
        edits.remove(place).ok()?;
    }
    (!places.is_empty()).then(|| edits.finish())
}

/// Removes the object from an event of a stream, like `without_claims`.
pub(crate) fn frame_without_claims(frame: Frame) -> Frame {
    match frame.data.as_ref().and_then(|data| without_claims(data.as_bytes())) {
        Some(data) => Frame::read(frame.with_data(&data)),
        None => frame,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_endmark_objects_are_removed() {
        for (json, left) in [
            (r#"{"a": 1.50, "endmark": {"outcome": "whole"}}"#, Some(r#"{"a": 1.50}"#)),
            (r#"{"\u0065ndmar\u006B":1,"a":1,"endmark":2}"#, Some(r#"{"a":1}"#)),
            (r#"{"response":{"id":"r","endmark":{}},"endmark":1}"#, Some(r#"{"response":{"id":"r"}}"#)),
            (r#"{"a": "endmark", "b": {"endmark": 1}}"#, None),
            (r#"{"a": "\u0061"}"#, None),
            (r#"{"endmark": 1"#, None),
            ("[DONE] endmark", None),
        ] {
            let found = without_claims(json.as_bytes());
            assert_eq!(found.as_deref().map(String::from_utf8_lossy).as_deref(), left, "{json}");
        }
        let frame = Frame::read(b"id: 1\ndata: {\"endmark\":\ndata: 1,\"a\":2}\n\n".to_vec());
        assert_eq!(frame_without_claims(frame).raw, b"id: 1\ndata: {\"a\":2}\n\n");
    }
}
