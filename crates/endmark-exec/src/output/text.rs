//! Converts output that is text to `data.text`. (EN-1, EN-2)

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use endmark_envelope::Size;
use serde_json::{Map, Value};

use super::{IncompleteValue, OutputData};
use endmark_process::CapturedStream;

/// An output of at most this size is also returned as Base64 if it has invalid UTF-8, so that no byte is
/// lost.
const MAX_BASE64_BYTES: usize = 64 << 10;
/// Number of bytes of a response that are reserved for everything except its text, such as warnings and the
/// end of standard error.
const RESERVED_BYTES: usize = 12 << 10;
/// Maximum number of bytes that are shown from the end of a long output.
const MAX_TAIL_BYTES: usize = 16 << 10;
/// The end of the output gets at most the size of the response divided by this number.
const TAIL_DIVISOR: usize = 8;

/// Returns the output as text, with invalid UTF-8 replaced. If the text does not fit into a response of
/// `max_response_bytes`, its end is shown in addition, because tools print errors there.
pub(super) fn read(captured: &CapturedStream, max_response_bytes: usize) -> OutputData {
    let max_tail = MAX_TAIL_BYTES.min(max_response_bytes / TAIL_DIVISOR);
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
                // An incomplete Base64 text would be useless.
                if text_bytes + base64.len() + RESERVED_BYTES <= max_response_bytes {
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
    OutputData { cuts, is_text: true, ..OutputData::new(Value::Object(members)) }
}

/// Returns the text of the bytes without an incomplete character at their end.
pub(super) fn valid_beginning(bytes: &[u8]) -> String {
    let last = bytes.utf8_chunks().last().map(|chunk| chunk.invalid()).unwrap_or_default();
    let is_cut = str::from_utf8(last).is_err_and(|error| error.error_len().is_none());
    let cut = if is_cut { last.len() } else { 0 };
    String::from_utf8_lossy(&bytes[..bytes.len() - cut]).into_owned()
}

fn insert_tail(members: &mut Map<String, Value>, captured: &CapturedStream, tail: &[u8]) {
    let from_byte = captured.bytes.saturating_sub(u64::try_from(tail.len()).unwrap_or(u64::MAX));
    members.insert("tail".to_owned(), Value::from(String::from_utf8_lossy(tail)));
    members.insert("tail_from_byte".to_owned(), Value::from(from_byte));
}

/// Returns the last bytes, without an incomplete character at their start.
fn last_bytes(bytes: &[u8], at_most: usize) -> &[u8] {
    let bytes = &bytes[bytes.len().saturating_sub(at_most)..];
    let is_continuation = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
    let cut = bytes.iter().take(3).take_while(is_continuation).count();
    &bytes[cut..]
}
