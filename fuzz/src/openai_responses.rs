//! OpenAI Responses. The input is a request, a response or an event stream (PC-9).

/// Runs the checks of [`crate::formats`] for this format.
pub fn check(bytes: &[u8]) {
    crate::formats::check("openai_responses", bytes);
}
