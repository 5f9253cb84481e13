//! Output that is text: `data.text`. (EN-1, EN-2)

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use endmark_envelope::Size;
use serde_json::{Map, Value};

use super::{Data, IncompleteValue};
use endmark_process::Captured;

/// Maximum size of an output with invalid UTF-8 that is also returned as Base64, so that no byte is lost.
const MAX_BASE64_BYTES: usize = 64 << 10;
/// Bytes reserved in a response for everything but its text: warnings, and an error with the end of standard error.
const OTHER_BYTES: usize = 12 << 10;
/// Maximum bytes of the end of a long output that are shown after its beginning.
const MAX_TAIL_BYTES: usize = 16 << 10;
/// The end of the output gets at most 1/8 of the response.
const TAIL_SHARE: usize = 8;

/// Returns the output as text, with invalid UTF-8 replaced. If the text does not fit into a response of
/// `max_response_bytes`, its end is also shown, because that is where tools print errors.
pub(super) fn read(captured: &Captured, max_response_bytes: usize) -> Data {
    let max_tail = MAX_TAIL_BYTES.min(max_response_bytes / TAIL_SHARE);
    let mut members = Map::new();
    let mut cuts = Vec::new();
    match &captured.tail {
        None => {
            let text = Value::from(String::from_utf8_lossy(&captured.head));
            let text_bytes = text.to_string().len();
            let is_fitting = text_bytes <= max_response_bytes;
            members.insert("text".to_owned(), text);
            if !is_fitting {
                insert_tail(&mut members, captured, last_bytes(&captured.head, max_tail));
            }
            if captured.invalid_sequences > 0 && captured.head.len() <= MAX_BASE64_BYTES {
                let base64 = STANDARD.encode(&captured.head);
                // A truncated Base64 text would be useless.
                if text_bytes + base64.len() + OTHER_BYTES <= max_response_bytes {
                    members.insert("base64".to_owned(), Value::from(base64));
                }
            }
        }
        Some(tail) => {
            members.insert("text".to_owned(), Value::from(valid_beginning(&captured.head)));
            insert_tail(&mut members, captured, last_bytes(tail, max_tail));
            cuts.push(IncompleteValue {
                pointer: "/text".to_owned(),
                original: Some(Size { bytes: captured.bytes, chars: captured.characters }),
                message: "the output is larger than what is kept of it; its end is in `data.tail`".to_owned(),
            });
        }
    }
    Data { cuts, is_text: true, ..Data::new(Value::Object(members)) }
}

/// Returns the text without a character that is incomplete at its end.
pub(super) fn valid_beginning(bytes: &[u8]) -> String {
    let last = bytes.utf8_chunks().last().map(|chunk| chunk.invalid()).unwrap_or_default();
    let is_cut = str::from_utf8(last).is_err_and(|error| error.error_len().is_none());
    let cut = if is_cut { last.len() } else { 0 };
    String::from_utf8_lossy(&bytes[..bytes.len() - cut]).into_owned()
}

fn insert_tail(members: &mut Map<String, Value>, captured: &Captured, tail: &[u8]) {
    let from_byte = captured.bytes.saturating_sub(u64::try_from(tail.len()).unwrap_or(u64::MAX));
    members.insert("tail".to_owned(), Value::from(String::from_utf8_lossy(tail)));
    members.insert("tail_from_byte".to_owned(), Value::from(from_byte));
}

/// Returns the last bytes, without a character that is incomplete at their beginning.
fn last_bytes(bytes: &[u8], at_most: usize) -> &[u8] {
    let bytes = &bytes[bytes.len().saturating_sub(at_most)..];
    let is_continuation = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
    let cut = bytes.iter().take(3).take_while(is_continuation).count();
    &bytes[cut..]
}
