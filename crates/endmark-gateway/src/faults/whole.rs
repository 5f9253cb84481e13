//! Injects a fault into a reply that is not a stream.

use bytes::Bytes;
use endmark_wire::format::WireFormat;

use super::limit_cut::cut_reply;
use crate::settings::{FaultKind, FaultPosition};

/// A body that is not a stream has no events. This many bytes count as one event, which is about a token.
pub(super) const BYTES_PER_EVENT: usize = 4;

/// Returns the position of a fault in bytes.
pub(super) fn byte_offset(place: FaultPosition) -> usize {
    match place {
        FaultPosition::Events(events) => events.saturating_mul(BYTES_PER_EVENT),
        FaultPosition::Bytes(bytes) => bytes,
        FaultPosition::Anywhere => 0,
    }
}

/// Returns the body with the fault, or unchanged if it ends before the fault.
pub(super) fn apply(kind: FaultKind, format: &'static dyn WireFormat, at: usize, body: &Bytes) -> Bytes {
    match kind {
        FaultKind::Cut => cut_reply(format, at, body).map_or_else(|| body.clone(), Bytes::from),
        FaultKind::Error => {
            Bytes::from(format.error_body(500, "endmark_rehearsed_fault", "a rehearsed fault (--fault)"))
        }
        FaultKind::Malformed => body.slice(..body.len() / 2),
        FaultKind::Drop
        | FaultKind::Reset
        | FaultKind::End
        | FaultKind::Stall
        | FaultKind::NoDone
        | FaultKind::Slow(_)
        | FaultKind::Status(..) => body.clone(),
    }
}

#[cfg(test)]
mod tests {
    use endmark_wire::openai_chat::Chat;

    use super::*;

    #[test]
    fn a_cut_reply_reports_length_and_a_shorter_one_is_unchanged() {
        let body = br#"{"choices":[{"message":{"content":"caf\u00e9 au lait"},"finish_reason":"stop"}]}"#;
        let body = Bytes::from_static(body);
        let cut = apply(FaultKind::Cut, &Chat, 4, &body);
        assert_eq!(&cut[..], br#"{"choices":[{"message":{"content":"caf"},"finish_reason":"length"}]}"#);
        assert_eq!(apply(FaultKind::Cut, &Chat, 400, &body), body);
    }
}
