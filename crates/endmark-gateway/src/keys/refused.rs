//! Why a key lets nobody in, or not to what was asked for.

use http::StatusCode;

/// Why a request is not served, by its key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyRefused {
    /// The gateway lets nobody in without a key.
    #[error(
        "this gateway requires one of its own keys (em_sk_…): send it where the provider's key stands; `endmark keys add NAME` makes one"
    )]
    Missing,
    /// Nobody has it.
    #[error(
        "the key is none of this gateway's: check that all of it was sent; `endmark keys add NAME` makes one"
    )]
    Unknown,
    /// The gateway serves one client, and this is not its key.
    #[error("this gateway serves one run, and accepts the key of that run alone")]
    OfAnother,
    /// Its time is over, or another secret took the place of this one.
    #[error("the key `{0}` has ended: `endmark keys rotate` or `endmark keys add` makes another")]
    Ended(String),
    /// Somebody took it back.
    #[error("the key `{0}` was revoked: `endmark keys add NAME` makes another")]
    Revoked(String),
    /// It is not for the model.
    #[error("the key `{name}` is for {models}, and not for {}", said(.model.as_deref()))]
    Model {
        name: String,
        /// None where it cannot be found out.
        model: Option<String>,
        models: String,
    },
    /// It is for some models, and which one the path uses cannot be known.
    #[error(
        "the key `{name}` is for some models alone, and which model {path} uses cannot be known: use a key without a list of models"
    )]
    Path { name: String, path: String },
    /// There is no key that could take its place.
    #[error(
        "the upstream `{0}` has no key of its own, and a key of this gateway is never sent to it: set api_key under [upstreams.{0}] (any text for a server that asks for none)"
    )]
    NoUpstreamKey(String),
}

fn said(model: Option<&str>) -> String {
    model.map_or_else(|| "a request whose model cannot be read".to_owned(), |model| format!("`{model}`"))
}

impl KeyRefused {
    /// As the official clients understand it: they raise an error of authentication or of permission, and do not ask again.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Missing | Self::Unknown | Self::OfAnother | Self::Ended(_) | Self::Revoked(_) => {
                StatusCode::UNAUTHORIZED
            }
            Self::Model { .. } | Self::Path { .. } | Self::NoUpstreamKey(_) => StatusCode::FORBIDDEN,
        }
    }

    /// The error's word.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Missing => "endmark_key_required",
            Self::Unknown | Self::OfAnother | Self::Ended(_) | Self::Revoked(_) => "endmark_key_invalid",
            Self::Model { .. } | Self::Path { .. } => "endmark_key_not_for_this",
            Self::NoUpstreamKey(_) => "endmark_upstream_without_key",
        }
    }
}
