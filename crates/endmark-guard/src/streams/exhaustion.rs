//! Words with which agents and providers say that a context is full, where nothing but words says it.

/// In lower case. From the errors of Anthropic's, OpenAI's and Google's APIs, of vLLM and llama.cpp, and of the agents themselves.
const WORDS: [&str; 14] = [
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

/// Whether an error says that the context is full.
pub(super) fn is_said(message: &str) -> bool {
    let message = message.to_lowercase();
    WORDS.iter().any(|words| message.contains(words))
}
