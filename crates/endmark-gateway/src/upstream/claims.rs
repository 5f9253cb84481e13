//! Removes `endmark` objects from the bodies of ordinary upstreams, which must not speak for this gateway.

use std::sync::LazyLock;

use endmark_wire::edit::Edits;
use endmark_wire::sse::Frame;
use memchr::memmem::Finder;

/// Where Endmark discloses recovery: next to the provider's own fields, and in Responses events inside the
/// response object.
const CLAIM_PATHS: [&str; 2] = ["endmark", "response.endmark"];

/// The texts of which each spelling of the name in JSON contains one: its letters may be escaped with the
/// codes 61 to 72. Every event is searched, and preparing a search would cost as much as the search, so it is
/// done once.
static TRACES: LazyLock<[Finder<'static>; 3]> =
    LazyLock::new(|| ["endmark", "\\u006", "\\u007"].map(Finder::new));

/// Returns the document without an `endmark` object, which a client would attribute to this gateway. Returns
/// `None` if there is nothing to remove, as in nearly all documents.
pub(crate) fn without_claims(json: &[u8]) -> Option<Vec<u8>> {
    if TRACES.iter().all(|trace| trace.find(json).is_none()) {
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

/// Like `without_claims`, for an event of a stream.
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
    fn only_the_named_member_is_removed() {
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
