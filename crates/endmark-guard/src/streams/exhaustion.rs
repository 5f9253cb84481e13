//! Recognises error messages that report a full context, for errors without a code.

/// Parts of error messages in lower case, from the APIs of Anthropic, OpenAI and Google, from vLLM and
/// llama.cpp, and from the agents.
const EXHAUSTION_PHRASES: [&str; 14] = [
    "context window",
    "context length",
    "context_length_exceeded",
    "maximum context",
    "exceeds the context",
    "exceed context limit",
    "context size",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "input token count",
    "too many input tokens",
    "request too large",
    "request entity too large",
];

/// Returns whether an error message states that the context is full.
pub(super) fn states_exhaustion(message: &str) -> bool {
    let message = message.to_lowercase();
    EXHAUSTION_PHRASES.iter().any(|words| message.contains(words))
}
