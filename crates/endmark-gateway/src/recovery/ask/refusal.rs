//! What an upstream's refusal is about.

use endmark_wire::error::ProviderError;
use http::StatusCode;

/// What an upstream refused.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Refused {
    /// To go on with an unfinished message.
    pub(super) prefill: Option<For>,
    /// A limit that the client had not set.
    pub(super) limit: bool,
    /// Whoever asks, whatever is asked.
    pub(super) whoever_asks: bool,
}

/// For how long a refusal counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum For {
    /// An error of the server's may have had another reason.
    ThisReply,
    Good,
}

/// Whether a refusal can have the prefill for its reason, and another way of asking may be taken: not where
/// the credential, the model or the length is what the upstream minds.
pub(super) fn is_about_the_prefill(status: StatusCode, error: &ProviderError) -> bool {
    matches!(
        status,
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY | StatusCode::INTERNAL_SERVER_ERROR
    ) && !error.is_context_length()
        && !error.is_about_the_account()
}

/// For how long a refusal counts that can have the prefill for its reason: for good where the request is what the upstream
/// minds, or where it says so. llama.cpp answers 500.
pub(super) fn for_how_long(status: StatusCode, error: &ProviderError) -> For {
    let message = error.message.to_ascii_lowercase();
    let is_said = ["prefill", "assistant"].iter().any(|word| message.contains(word));
    if status.is_client_error() || is_said { For::Good } else { For::ThisReply }
}

/// Whether a refusal minds the limit of output tokens, or that prompt and limit together are too long.
pub(super) fn is_about_the_limit(error: &ProviderError) -> bool {
    let message = error.message.to_ascii_lowercase();
    let names_limit = ["max_tokens", "max_completion_tokens", "max_output_tokens", "maxoutputtokens"];
    error.is_context_length() || names_limit.iter().any(|name| message.contains(name))
}
