//! The servers to which requests are forwarded, and how each of them continues an unfinished message (PC-3).

use std::borrow::Cow;

use endmark_setting::OneOf;
use endmark_wire::openai_chat::OPENAI;
use endmark_wire::provider::Provider;

use super::authorities::Authorities;
use super::base_url::BaseUrl;
use super::conditions::Conditions;
use super::proxy::Proxy;
use super::secret::Secret;

/// A server that supports one or more wire formats.
#[derive(Debug, Clone)]
pub struct Upstream {
    /// The name in the configuration, in paths (`/u/NAME/…`) and in the log.
    pub name: String,
    /// The URL of the API. It ends with the version, unless the provider's own libraries append it.
    pub base_url: BaseUrl,
    /// The upstream's own key. Without one, the client's credentials are forwarded.
    pub api_key: Option<Secret>,
    /// The provider whose formats the upstream supports. The upstream serves their paths, unless an earlier upstream
    /// does.
    pub provider: &'static Provider,
    /// Conditions for requests. The upstream gets only requests that meet them.
    pub conditions: Conditions,
    /// How the upstream continues an unfinished assistant message.
    pub prefill: Prefill,
    /// The upstream that is used if this one cannot answer, and that completes replies that this one began.
    pub fallback: Option<String>,
    /// The model to request instead of the client's when this upstream is used as a fallback.
    pub model: Option<String>,
    /// The model that summarises a condensed conversation. `None` means a summary without a model.
    pub summary_model: Option<String>,
    /// Whether the upstream is another Endmark gateway, which recovers replies itself.
    pub endmark: bool,
    /// The proxy for requests to this upstream. `None` means a direct connection.
    pub proxy: Option<Proxy>,
    /// Certificate authorities for this upstream, in addition to the system's.
    pub authorities: Authorities,
}

impl Upstream {
    /// Creates an upstream with this name and base URL, without a key and a fallback.
    pub fn new(name: &str, base_url: BaseUrl) -> Self {
        Self {
            name: name.to_owned(),
            base_url,
            api_key: None,
            provider: &OPENAI,
            conditions: Conditions::default(),
            prefill: Prefill::Auto,
            fallback: None,
            model: None,
            summary_model: None,
            endmark: false,
            proxy: None,
            authorities: Authorities::default(),
        }
    }

    /// Returns the base URL with the version.
    pub(crate) fn api_base_url(&self) -> Cow<'_, BaseUrl> {
        self.base_url.as_used_by(self.provider)
    }

    /// Returns the providers' public endpoints, which are the default without configuration.
    pub(super) fn public_endpoints() -> Vec<Self> {
        let of = |provider: &'static Provider| {
            let base_url = BaseUrl::provider_default(provider.origin, provider.base_path);
            Self { provider, ..Self::new(provider.name, base_url) }
        };
        Provider::all().into_iter().map(of).collect()
    }
}

/// How an upstream continues an unfinished assistant message (PC-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefill {
    /// Prefill is tried once for each model, and the result is remembered.
    Auto,
    /// Prefill is never used. An additional user turn requests the rest.
    Never,
    /// A plain last assistant message (llama.cpp, older Claude models behind adapters).
    Assistant,
    /// `continue_final_message` (vLLM, `SGLang`).
    ContinueFinalMessage,
    /// `"prefix": true` on the message (`DeepSeek`, Mistral).
    Prefix,
    /// `"partial": true` on the message (Qwen, Kimi).
    Partial,
}

/// Each variant with its name in the configuration.
pub const PREFILLS: OneOf<Prefill> = OneOf(&[
    ("auto", Prefill::Auto),
    ("never", Prefill::Never),
    ("assistant", Prefill::Assistant),
    ("continue_final_message", Prefill::ContinueFinalMessage),
    ("prefix", Prefill::Prefix),
    ("partial", Prefill::Partial),
]);
