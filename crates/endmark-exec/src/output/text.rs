//! Output that is text: `data.text`. (EN-1, EN-2)

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use endmark_envelope::Size;
use serde_json::{Map, Value};

use super::{Cut, Data};
use endmark_process::Captured;

/// Up to how many bytes an output that is not UTF-8 is given as Base64, too, so that no byte of it is lost.
const MAX_BASE64_BYTES: usize = 64 << 10;
/// What an answer has besides its text, at most, in bytes: warnings, and an error with what stood on standard error.
const OTHER_BYTES: usize = 12 << 10;
/// How much of the end of a long output is shown beside its beginning, in bytes.
const MAX_TAIL_BYTES: usize = 16 << 10;
/// How much of the answer that is, as one part of so many.
const TAIL_SHARE: usize = 8;

/// The output as text, of which each sequence that is not UTF-8 is replaced. Of one that does not fit into an answer of
/// so many bytes the end is shown, too: errors stand at the end.
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
                insert_tail(&mut members, captured, last(&captured.head, max_tail));
            }
            if captured.invalid_sequences > 0 && captured.head.len() <= MAX_BASE64_BYTES {
                let base64 = STANDARD.encode(&captured.head);
                // Shortened, it would be none.
                if text_bytes + base64.len() + OTHER_BYTES <= max_response_bytes {
                    members.insert("base64".to_owned(), Value::from(base64));
                }
            }
        }
        Some(tail) => {
            members.insert("text".to_owned(), Value::from(beginning(&captured.head)));
            insert_tail(&mut members, captured, last(tail, max_tail));
            cuts.push(Cut {
                pointer: "/text".to_owned(),
                original: Some(Size { bytes: captured.bytes, chars: captured.characters }),
                message: "the output is larger than what is kept of it; its end is in `data.tail`".to_owned(),
            });
        }
    }
    Data { cuts, is_text: true, ..Data::whole(Value::Object(members)) }
}

/// A beginning, without the character that its end goes through.
pub(super) fn beginning(bytes: &[u8]) -> String {
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

/// The last bytes, without the character that their beginning goes through.
fn last(bytes: &[u8], at_most: usize) -> &[u8] {
    let bytes = &bytes[bytes.len().saturating_sub(at_most)..];
    let is_continuation = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
    let cut = bytes.iter().take(3).take_while(is_continuation).count();
    &bytes[cut..]
}
