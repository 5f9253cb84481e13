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
    /// Where its API begins, with the version at the end where the provider's own libraries do not add it.
    pub base_url: BaseUrl,
    /// Its own key; without one the client's credentials are passed on.
    pub api_key: Option<Secret>,
    /// Whose formats it speaks: it serves their own paths, as far as no upstream before it does.
    pub provider: &'static Provider,
    /// What a request has to meet; with any, it gets nothing else.
    pub conditions: Conditions,
    /// How it continues an unfinished assistant message.
    pub prefill: Prefill,
    /// The upstream that answers where this one cannot, and finishes what this one began.
    pub fallback: Option<String>,
    /// The model it is asked for where it stands in for another upstream, in place of the request's.
    pub model: Option<String>,
    /// The model that is asked for the summary of a conversation that is condensed; none: the summary is made without a model.
    pub summary_model: Option<String>,
    /// Whether it is another Endmark: what that did for a reply is passed on, and nothing more is done for the reply.
    pub endmark: bool,
    /// The proxy that its requests go through; none is the direct way.
    pub proxy: Option<Proxy>,
    /// Who may have certified it, beside those whom the system trusts.
    pub authorities: Authorities,
}

impl Upstream {
    /// An upstream of this name at this address, without a key or fallback of its own.
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

    /// Where its API begins, with the version.
    pub(crate) fn read_base_url(&self) -> Cow<'_, BaseUrl> {
        self.base_url.as_read_by(self.provider)
    }

    /// The providers' public endpoints, the default when nothing is configured.
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
    /// Never: the rest is asked for in a user turn.
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

/// Each way by its word.
pub const PREFILLS: OneOf<Prefill> = OneOf(&[
    ("auto", Prefill::Auto),
    ("never", Prefill::Never),
    ("assistant", Prefill::Assistant),
    ("continue_final_message", Prefill::ContinueFinalMessage),
    ("prefix", Prefill::Prefix),
    ("partial", Prefill::Partial),
]);
