//! The errors of keys that the gateway refuses.

use http::StatusCode;

/// Error of a request that is refused because of its key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyRefusal {
    /// The gateway requires a key.
    #[error(
        "this gateway requires one of its own keys (em_sk_…): send it in the header of the provider's key; `endmark keys add NAME` creates one"
    )]
    Missing,
    /// The key does not exist.
    #[error(
        "this gateway does not have this key: check that all of it was sent; `endmark keys add NAME` makes one"
    )]
    Unknown,
    /// The gateway serves one client, which has another key.
    #[error("this gateway serves one run, and accepts the key of that run alone")]
    OtherGateway,
    /// The key has expired, or another secret has replaced this one.
    #[error("the key `{0}` has ended: `endmark keys rotate` or `endmark keys add` makes another")]
    Expired(String),
    /// The key was revoked.
    #[error("the key `{0}` was revoked: `endmark keys add NAME` makes another")]
    Revoked(String),
    /// The key does not admit the model.
    #[error("the key `{name}` is for {models}, and not for {}", model_phrase(.model.as_deref()))]
    Model {
        name: String,
        /// `None` if the model is unknown.
        model: Option<String>,
        models: String,
    },
    /// The key admits only some models, and the path does not name a known model.
    #[error(
        "the key `{name}` is for some models alone, and which model {path} uses cannot be known: use a key without a list of models"
    )]
    Path { name: String, path: String },
    /// The upstream has no key of its own to replace the client's key.
    #[error(
        "the upstream `{0}` has no key of its own, and a key of this gateway is never sent to it: set api_key under [upstreams.{0}] (any text for a server that asks for none)"
    )]
    NoUpstreamKey(String),
}

fn model_phrase(model: Option<&str>) -> String {
    model.map_or_else(|| "a request whose model cannot be read".to_owned(), |model| format!("`{model}`"))
}

impl KeyRefusal {
    /// Returns the HTTP status. Official clients raise an authentication or permission error for it, and do not retry.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Missing | Self::Unknown | Self::OtherGateway | Self::Expired(_) | Self::Revoked(_) => {
                StatusCode::UNAUTHORIZED
            }
            Self::Model { .. } | Self::Path { .. } | Self::NoUpstreamKey(_) => StatusCode::FORBIDDEN,
        }
    }

    /// Returns the error type that the response contains.
    pub(crate) fn error_type(&self) -> &'static str {
        match self {
            Self::Missing => "endmark_key_required",
            Self::Unknown | Self::OtherGateway | Self::Expired(_) | Self::Revoked(_) => "endmark_key_invalid",
            Self::Model { .. } | Self::Path { .. } => "endmark_key_not_for_this",
            Self::NoUpstreamKey(_) => "endmark_upstream_without_key",
        }
    }
}
