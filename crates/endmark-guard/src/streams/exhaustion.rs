//! Recognises the phrases with which agents and providers report a full context, if no error code does.

/// In lower case. From the errors of the Anthropic, OpenAI and Google APIs, of vLLM and llama.cpp, and of the agents.
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

/// Whether an error states that the context is full.
pub(super) fn states_exhaustion(message: &str) -> bool {
    let message = message.to_lowercase();
    EXHAUSTION_PHRASES.iter().any(|words| message.contains(words))
}
