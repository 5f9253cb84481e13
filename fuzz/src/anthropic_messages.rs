//! Anthropic Messages: the input is a request, a response or an event stream (PC-9).

/// See [`crate::formats`].
pub fn check(bytes: &[u8]) {
    crate::formats::check("anthropic_messages", bytes);
}
