//! What becomes of a reply that is no stream.

use bytes::Bytes;
use endmark_wire::format::WireFormat;
use serde_json::Value;

use super::fault::{Kind, Place};

/// A body that is no stream has no events: this many of its bytes count as one, about a token.
pub(super) const BYTES_OF_AN_EVENT: usize = 4;

/// Where a fault strikes, in bytes.
pub(super) fn place(place: Place) -> usize {
    match place {
        Place::Events(events) => events.saturating_mul(BYTES_OF_AN_EVENT),
        Place::Bytes(bytes) => bytes,
        Place::Anywhere => 0,
    }
}

/// The body with its fault; as it is where the fault does not reach it.
pub(super) fn changed(kind: Kind, format: &dyn WireFormat, at: usize, body: &Bytes) -> Bytes {
    match kind {
        Kind::Cut => cut(at, body).map_or_else(|| body.clone(), Bytes::from),
        Kind::Error => {
            Bytes::from(format.error_body(500, "endmark_rehearsed_fault", "a rehearsed fault (--fault)"))
        }
        Kind::Malformed => body.slice(..body.len() / 2),
        Kind::Drop
        | Kind::Reset
        | Kind::End
        | Kind::Stall
        | Kind::NoDone
        | Kind::Slow(_)
        | Kind::Status(..) => body.clone(),
    }
}

/// A reply that reached its limit after so many bytes of each text and each call's arguments.
fn cut(at: usize, body: &[u8]) -> Option<Vec<u8>> {
    let mut reply: Value = serde_json::from_slice(body).ok()?;
    let mut reached = false;
    for choice in reply.get_mut("choices")?.as_array_mut()? {
        let message = choice.get_mut("message")?;
        let mut was_cut = message.get_mut("content").is_some_and(|content| shortened(content, at));
        if let Some(calls) = message.get_mut("tool_calls").and_then(Value::as_array_mut) {
            for call in calls {
                was_cut |= call.pointer_mut("/function/arguments").is_some_and(|text| shortened(text, at));
            }
        }
        if was_cut {
            *choice.get_mut("finish_reason")? = "length".into();
            reached = true;
        }
    }
    reached.then(|| reply.to_string().into_bytes())
}

/// Cuts a text; false where it ends before.
fn shortened(text: &mut Value, at: usize) -> bool {
    let Value::String(text) = text else { return false };
    let end = (0..=at.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let is_longer = end < text.len();
    text.truncate(end);
    is_longer
}

#[cfg(test)]
mod tests {
    use endmark_wire::openai_chat::Chat;

    use super::*;

    #[test]
    fn a_cut_reply_says_length_and_a_shorter_one_is_as_it_was() {
        let body = br#"{"choices":[{"message":{"content":"caf\u00e9 au lait"},"finish_reason":"stop"}]}"#;
        let body = Bytes::from_static(body);
        let cut = changed(Kind::Cut, &Chat, 4, &body);
        assert_eq!(&cut[..], br#"{"choices":[{"message":{"content":"caf"},"finish_reason":"length"}]}"#);
        assert_eq!(changed(Kind::Cut, &Chat, 400, &body), body);
    }
}
