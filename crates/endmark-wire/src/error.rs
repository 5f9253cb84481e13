//! Errors of requests and responses, and errors that providers report.

use crate::json::JsonError;

/// Error of a body that is not a request in its format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RequestError {
    /// The reason, as a fragment that begins in lower case.
    pub message: String,
    /// A sentence that states how to correct the request.
    pub hint: &'static str,
}

/// Error of a body that is not a response in its format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResponseError {
    /// The body is not JSON, for example a gateway's HTML page or a truncated document.
    #[error("the upstream's answer is not JSON: {0}")]
    NotJson(#[source] JsonError),
    /// The body is JSON without the field that contains the reply, for example an error.
    #[error("the upstream's answer has no `{0}`")]
    MissingField(&'static str),
}

/// An error that a provider returned as a response, or sent in the middle of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderError {
    /// The provider's message.
    pub message: String,
    /// The kind of error, such as `invalid_request_error`.
    pub kind: Option<String>,
    /// The error's code. A number is kept as its digits.
    pub code: Option<String>,
}

impl ProviderError {
    /// Returns whether the request was refused because it does not fit into the model's context (PC-8 `window`).
    pub fn is_context_length(&self) -> bool {
        let named = |word: &Option<String>| {
            matches!(word.as_deref(), Some("context_length_exceeded" | "exceed_context_size_error"))
        };
        let message = self.message.to_ascii_lowercase();
        named(&self.kind)
            || named(&self.code)
            || message.contains("maximum context length")
            || message.contains("context size")
            || message.contains("context window")
            || message.contains("prompt is too long")
            || message.contains("exceed context limit")
            || (message.contains("input token count") && message.contains("exceeds the maximum"))
    }

    /// Returns whether the error concerns the sender and not the request: the key, the account, its balance
    /// or its country. The provider would also reject any other request of this sender.
    ///
    /// ```
    /// use endmark_wire::error::ProviderError;
    ///
    /// let message = "Your credit balance is too low to access the Anthropic API.".to_owned();
    /// let error = ProviderError { message, kind: Some("invalid_request_error".to_owned()), code: None };
    /// assert!(error.is_about_the_account());
    /// ```
    pub fn is_about_the_account(&self) -> bool {
        let message = self.message.to_ascii_lowercase();
        let mentions = |words: &[&str]| words.iter().any(|word| message.contains(word));
        let is_named = [&self.kind, &self.code].into_iter().flatten().any(|word| {
            let word = word.to_ascii_lowercase();
            ["authentication", "permission", "unauthenticated", "billing", "quota", "api_key", "account"]
                .iter()
                .any(|part| word.contains(part))
        });
        is_named
            || mentions(&[
                "credit balance",
                "billing",
                "api key",
                "api-key",
                "insufficient balance",
                "payment",
            ])
            || mentions(&["exceeded your current quota", "location is not supported", "account is"])
    }

    /// Returns whether the provider refused the request itself, so that a repetition would be refused, too.
    /// Such an error can also arrive in the middle of a stream.
    ///
    /// ```
    /// use endmark_wire::error::ProviderError;
    ///
    /// let of_kind = |kind: &str| ProviderError { message: String::new(), kind: Some(kind.to_owned()), code: None };
    /// assert!(of_kind("invalid_request_error").is_final());
    /// assert!(!of_kind("overloaded_error").is_final());
    /// ```
    pub fn is_final(&self) -> bool {
        [&self.kind, &self.code].into_iter().flatten().any(|word| {
            let word = word.to_ascii_lowercase();
            matches!(
                word.as_str(),
                "authentication_error"
                    | "permission_error"
                    | "permission_denied"
                    | "unauthenticated"
                    | "not_found"
                    | "not_found_error"
                    | "failed_precondition"
                    | "billing_error"
                    | "insufficient_quota"
                    | "request_too_large"
                    | "context_length_exceeded"
                    | "content_filter"
                    | "400"
                    | "401"
                    | "402"
                    | "403"
                    | "404"
                    | "413"
                    | "422"
            ) || word.starts_with("invalid_")
                || word.contains("policy")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_length_error_of_every_provider_is_recognised() {
        let error = |message: &str| ProviderError { message: message.to_owned(), kind: None, code: None };
        for message in [
            "This model's maximum context length is 8192 tokens.",
            "Your input exceeds the context window of this model.",
            "prompt is too long: 200001 tokens > 200000 maximum",
            "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000",
            "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).",
        ] {
            assert!(error(message).is_context_length(), "{message}");
        }
        assert!(!error("max_tokens: 9 > 8, which is the maximum").is_context_length());
    }
}
