//! What an upstream's refusal is about.

use endmark_wire::error::ProviderError;
use http::StatusCode;

/// What an upstream refused.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Refused {
    /// To continue an unfinished message.
    pub(super) prefill: Option<For>,
    /// A limit that the client had not set.
    pub(super) limit: bool,
    /// Every request of this client.
    pub(super) whoever_asks: bool,
}

/// How long a refusal counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum For {
    /// An internal error may have had another reason.
    ThisReply,
    Good,
}

/// Whether the prefill may be the reason of a refusal, so that another form may be accepted. It is not if the refusal
/// is about the credential, the model or the length.
pub(super) fn is_about_the_prefill(status: StatusCode, error: &ProviderError) -> bool {
    matches!(
        status,
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY | StatusCode::INTERNAL_SERVER_ERROR
    ) && !error.is_context_length()
        && !error.is_about_the_account()
}

/// Returns how long a refusal counts that may be about the prefill: permanently if it is about the request or names
/// the prefill. llama.cpp answers 500.
pub(super) fn for_how_long(status: StatusCode, error: &ProviderError) -> For {
    let message = error.message.to_ascii_lowercase();
    let is_said = ["prefill", "assistant"].iter().any(|word| message.contains(word));
    if status.is_client_error() || is_said { For::Good } else { For::ThisReply }
}

/// Whether a refusal is about the limit of output tokens, or about prompt and limit together.
pub(super) fn is_about_the_limit(error: &ProviderError) -> bool {
    let message = error.message.to_ascii_lowercase();
    let names_limit = ["max_tokens", "max_completion_tokens", "max_output_tokens", "maxoutputtokens"];
    error.is_context_length() || names_limit.iter().any(|name| message.contains(name))
}
