//! Determines which feature an upstream rejected.

use endmark_wire::error::ProviderError;
use http::StatusCode;

/// The features that an upstream rejected.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RefusedFeatures {
    /// Whether the upstream rejected a prefill, and how long that rejection counts.
    pub(super) prefill: Option<RefusalTerm>,
    /// Whether the upstream rejected a limit that the client had not set.
    pub(super) limit: bool,
    /// Whether the upstream rejects all requests of this client.
    pub(super) refuses_all_requests: bool,
}

/// How long a refusal is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefusalTerm {
    /// Only for this reply, because an internal error may have had another cause.
    ThisReply,
    Permanent,
}

/// Whether the prefill may have caused a rejection, so that another form may be accepted. Credentials, model and
/// length are other causes.
pub(super) fn is_about_the_prefill(status: StatusCode, error: &ProviderError) -> bool {
    matches!(
        status,
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY | StatusCode::INTERNAL_SERVER_ERROR
    ) && !error.is_context_length()
        && !error.is_about_the_account()
}

/// Returns how long the rejection of a prefill counts. It counts permanently if it concerns the request or names the
/// prefill. llama.cpp rejects prefills with status 500.
pub(super) fn refusal_duration(status: StatusCode, error: &ProviderError) -> RefusalTerm {
    let message = error.message.to_ascii_lowercase();
    let names_prefill = ["prefill", "assistant"].iter().any(|word| message.contains(word));
    if status.is_client_error() || names_prefill { RefusalTerm::Permanent } else { RefusalTerm::ThisReply }
}

/// Whether a rejection concerns the limit of output tokens, or the sum of prompt and limit.
pub(super) fn is_about_the_limit(error: &ProviderError) -> bool {
    let message = error.message.to_ascii_lowercase();
    let names_limit = ["max_tokens", "max_completion_tokens", "max_output_tokens", "maxoutputtokens"];
    error.is_context_length() || names_limit.iter().any(|name| message.contains(name))
}
