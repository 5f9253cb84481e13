//! The servers that requests are forwarded to, and how each continues an unfinished message (PC-3).

use std::borrow::Cow;

use endmark_setting::OneOf;
use endmark_wire::openai_chat::OPENAI;
use endmark_wire::provider::Provider;

use super::authorities::Authorities;
use super::base_url::BaseUrl;
use super::conditions::Conditions;
use super::proxy::Proxy;
use super::secret::Secret;

/// A server that speaks one or more of the wire formats.
#[derive(Debug, Clone)]
pub struct Upstream {
    /// The name in the configuration, in paths (`/u/NAME/…`) and in the log.
    pub name: String,
    /// Where its API begins, with the version at the end unless the provider's own libraries add it.
    pub base_url: BaseUrl,
    /// Its own key. Without one the client's credentials are passed on.
    pub api_key: Option<Secret>,
    /// The provider whose formats it speaks. It serves their paths, unless an earlier upstream does.
    pub provider: &'static Provider,
    /// Conditions for requests. With any, it gets no other requests.
    pub conditions: Conditions,
    /// How it continues an unfinished assistant message.
    pub prefill: Prefill,
    /// The upstream that answers if this one cannot, and completes what this one began.
    pub fallback: Option<String>,
    /// Its model when it is the fallback of another upstream, instead of the request's.
    pub model: Option<String>,
    /// The model for the summary of a condensed conversation; `None` for a summary without a model.
    pub summary_model: Option<String>,
    /// Whether it is another Endmark: its recovery of a reply is passed on, and nothing more is done.
    pub endmark: bool,
    /// The proxy for its requests; `None` for a direct connection.
    pub proxy: Option<Proxy>,
    /// Its certificate authorities, in addition to the system's.
    pub authorities: Authorities,
}

impl Upstream {
    /// Makes an upstream of this name at this address, without a key or fallback of its own.
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

    /// Returns where its API begins, with the version.
    pub(crate) fn read_base_url(&self) -> Cow<'_, BaseUrl> {
        self.base_url.as_read_by(self.provider)
    }

    /// Returns the providers' public endpoints, the default without configuration.
    pub(super) fn public() -> Vec<Self> {
        let of = |provider: &'static Provider| {
            let base_url = BaseUrl::public(provider.origin, provider.base_path);
            Self { provider, ..Self::new(provider.name, base_url) }
        };
        Provider::all().into_iter().map(of).collect()
    }
}

/// How an upstream continues an unfinished assistant message (PC-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefill {
    /// Tried once for each model and remembered.
    Auto,
    /// Never: a user turn asks for the rest.
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

/// Each variant by its word.
pub const PREFILLS: OneOf<Prefill> = OneOf(&[
    ("auto", Prefill::Auto),
    ("never", Prefill::Never),
    ("assistant", Prefill::Assistant),
    ("continue_final_message", Prefill::ContinueFinalMessage),
    ("prefix", Prefill::Prefix),
    ("partial", Prefill::Partial),
]);
