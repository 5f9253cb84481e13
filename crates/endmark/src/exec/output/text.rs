//! Output that is text: `data.text`. (EN-1, EN-2)

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use endmark_envelope::Size;
use serde_json::{Map, Value};

use super::super::capture::Captured;
use super::{Cut, Data};

/// Up to how many bytes an output that is not UTF-8 is given as Base64, too, so that no byte of it is lost.
const MAX_BASE64_BYTES: usize = 64 << 10;
/// How much of the end of a long output is shown beside its beginning, in bytes.
const MAX_TAIL_BYTES: usize = 16 << 10;

/// The output as text, of which each sequence that is not UTF-8 is replaced.
pub(super) fn read(captured: &Captured) -> Data {
    let mut members = Map::new();
    let mut cuts = Vec::new();
    match &captured.tail {
        None => {
            members.insert("text".to_owned(), Value::from(String::from_utf8_lossy(&captured.head)));
            if captured.invalid_sequences > 0 && captured.head.len() <= MAX_BASE64_BYTES {
                members.insert("base64".to_owned(), Value::from(STANDARD.encode(&captured.head)));
            }
        }
        Some(tail) => {
            members.insert("text".to_owned(), Value::from(beginning(&captured.head)));
            let tail = end(&tail[tail.len().saturating_sub(MAX_TAIL_BYTES)..]);
            let from_byte = captured.bytes.saturating_sub(u64::try_from(tail.len()).unwrap_or(u64::MAX));
            members.insert("tail".to_owned(), Value::from(String::from_utf8_lossy(tail)));
            members.insert("tail_from_byte".to_owned(), Value::from(from_byte));
            cuts.push(Cut {
                pointer: "/text".to_owned(),
                original: Some(Size { bytes: captured.bytes, chars: captured.characters }),
                message: "the output is larger than what is kept of it; its end is in `data.tail`".to_owned(),
            });
        }
    }
    Data { cuts, ..Data::whole(Value::Object(members)) }
}

/// A beginning, without the character that its end goes through.
pub(super) fn beginning(bytes: &[u8]) -> String {
    let last = bytes.utf8_chunks().last().map(|chunk| chunk.invalid()).unwrap_or_default();
    let is_cut = str::from_utf8(last).is_err_and(|error| error.error_len().is_none());
    let cut = if is_cut { last.len() } else { 0 };
    String::from_utf8_lossy(&bytes[..bytes.len() - cut]).into_owned()
}

/// An end, without the character that its beginning goes through.
fn end(bytes: &[u8]) -> &[u8] {
    let is_continuation = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
    let cut = bytes.iter().take(3).take_while(is_continuation).count();
    &bytes[cut..]
}
