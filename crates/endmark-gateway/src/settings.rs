//! What the gateway can be told, already parsed: every value here is usable as it stands.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use endmark_core::{MAX_CORRECTION_ATTEMPTS, MAX_RESUME_ATTEMPTS, OnAmbiguous};
use http::Uri;

/// Everything that shapes the gateway's behaviour.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The upstreams by name; never empty, and the first of a format serves that format's own paths.
    pub upstreams: Vec<Upstream>,
    /// When and how cut replies are resumed (PC-9).
    pub resume: ResumeSettings,
    /// Calls that may be spent on correcting a reply's form (PC-6).
    pub max_corrections: u32,
    /// Whether tool calls are held back in streams until they are whole.
    pub hold_tool_calls: bool,
    /// Whether replies that needed nothing are disclosed too.
    pub disclose_always: bool,
    /// Whether the texts of cut replies are kept beside their lengths and hashes.
    pub keep_text: bool,
    /// JSON Schemas that a client may name in `x-endmark-schema`.
    pub schemas: BTreeMap<String, String>,
    /// How often and how long a failed request is tried again.
    pub retry: RetrySettings,
    /// Bounds in bytes, counts and time.
    pub limits: Limits,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 4141)),
            upstreams: vec![Upstream::public_openai()],
            resume: ResumeSettings::default(),
            max_corrections: MAX_CORRECTION_ATTEMPTS,
            hold_tool_calls: false,
            disclose_always: false,
            keep_text: false,
            schemas: BTreeMap::new(),
            retry: RetrySettings::default(),
            limits: Limits::default(),
        }
    }
}

/// How often and how long a request is tried again that got no reply.
#[derive(Debug, Clone)]
pub struct RetrySettings {
    /// Further tries of one request at one upstream.
    pub max_retries: u32,
    /// The longest `Retry-After` that is waited for.
    pub max_wait: Duration,
    /// Further tries that one upstream may get, in percent of its requests.
    pub budget_percent: u32,
    /// Further tries a second that it may get however few its requests are.
    pub budget_per_second: u32,
    /// How long an upstream with a fallback is left alone after it failed again and again.
    pub cooldown: Duration,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            // As OpenAI's own clients do.
            max_retries: 2,
            // A client waits about as long before its user looks for another way.
            max_wait: Duration::from_secs(10),
            // Envoy's defaults: enough for single faults, and an upstream that is down gets a fifth more.
            budget_percent: 20,
            budget_per_second: 3,
            // A server process is back within seconds, or not for minutes; in either case a probe is cheap.
            cooldown: Duration::from_secs(5),
        }
    }
}

/// When and how cut replies are resumed (PC-9).
#[derive(Debug, Clone)]
pub struct ResumeSettings {
    /// When a cut reply is resumed, unless the request says otherwise.
    pub mode: Mode,
    /// Continuations that may be asked for, for one cut reply.
    pub max_attempts: u32,
    /// The output limit a continuation carries at least, in tokens.
    pub continuation_tokens: u64,
    /// Output tokens that all continuations of one request may be allowed together.
    pub max_extra_tokens: u64,
    /// What to hand over when two seams are plausible.
    pub on_ambiguous: OnAmbiguous,
    /// The user's own wording of the resume prompt.
    pub prompt: Option<String>,
}

impl Default for ResumeSettings {
    fn default() -> Self {
        Self {
            mode: Mode::Auto,
            max_attempts: MAX_RESUME_ATTEMPTS,
            continuation_tokens: 4_096,
            max_extra_tokens: 16_384,
            on_ambiguous: OnAmbiguous::Stop,
            prompt: None,
        }
    }
}

/// When a cut reply is resumed (PC-9, `x-endmark-resume`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// When the client cannot have wanted the cut.
    Auto,
    /// Always.
    On,
    /// Never; cuts are disclosed.
    Warn,
    /// Never, and nothing is looked at.
    Off,
}

/// A mode that is not `auto`, `on`, `warn` or `off`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown resume mode `{0}`: use auto, on, warn or off")]
pub struct UnknownMode(String);

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(name: &str) -> Result<Self, UnknownMode> {
        match name.trim() {
            "auto" => Ok(Self::Auto),
            "on" => Ok(Self::On),
            "warn" => Ok(Self::Warn),
            "off" => Ok(Self::Off),
            other => Err(UnknownMode(other.to_owned())),
        }
    }
}

/// A server that speaks OpenAI Chat Completions.
#[derive(Debug, Clone)]
pub struct Upstream {
    /// The name in the configuration, in paths (`/u/NAME/…`) and in the log.
    pub name: String,
    /// Where its API begins, usually with `/v1` at the end; without a trailing slash.
    pub base_url: BaseUrl,
    /// Its own key; without one the client's credentials are passed on.
    pub api_key: Option<Secret>,
    /// How it continues an unfinished assistant message.
    pub prefill: Prefill,
    /// The upstream that answers where this one cannot, and finishes what this one began.
    pub fallback: Option<String>,
    /// The model it is asked for where it stands in for another upstream, in place of the request's.
    pub model: Option<String>,
}

impl Upstream {
    /// An upstream of this name at this address, without a key or fallback of its own.
    pub fn new(name: &str, base_url: BaseUrl) -> Self {
        Self {
            name: name.to_owned(),
            base_url,
            api_key: None,
            prefill: Prefill::Auto,
            fallback: None,
            model: None,
        }
    }

    /// The public `OpenAI` endpoint, the default when nothing is configured.
    fn public_openai() -> Self {
        let base_url = BaseUrl { origin: Uri::from_static("https://api.openai.com"), path: "/v1".to_owned() };
        Self::new("openai", base_url)
    }
}

/// An upstream's address, split into what the connection needs and what paths begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl {
    origin: Uri,
    path: String,
}

/// A base URL that no request can be sent to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a base URL ({reason}): use one like http://127.0.0.1:8080/v1")]
pub struct BaseUrlError {
    given: String,
    reason: &'static str,
}

impl FromStr for BaseUrl {
    type Err = BaseUrlError;

    fn from_str(given: &str) -> Result<Self, BaseUrlError> {
        let refuse = |reason| BaseUrlError { given: given.to_owned(), reason };
        let uri: Uri = given.parse().map_err(|_| refuse("it cannot be parsed"))?;
        let scheme = uri.scheme_str().ok_or_else(|| refuse("the scheme is missing"))?;
        if scheme != "http" && scheme != "https" {
            return Err(refuse("the scheme is neither http nor https"));
        }
        let authority = uri.authority().ok_or_else(|| refuse("the host is missing"))?;
        if authority.as_str().contains('@') {
            return Err(refuse("credentials belong into api_key"));
        }
        if uri.query().is_some() {
            return Err(refuse("a query cannot be kept"));
        }
        let origin = format!("{scheme}://{authority}").parse().map_err(|_| refuse("it cannot be parsed"))?;
        Ok(Self { origin, path: uri.path().trim_end_matches('/').to_owned() })
    }
}

impl BaseUrl {
    /// The address of a client's path at this upstream: `/v1/…` stands for the base path, every other path
    /// for itself.
    ///
    /// ```
    /// use endmark_gateway::BaseUrl;
    /// let base: BaseUrl = "http://127.0.0.1:8080/api/v1".parse().unwrap();
    /// assert_eq!(base.locate("/v1/models?x=1").unwrap(), "http://127.0.0.1:8080/api/v1/models?x=1");
    /// assert_eq!(base.locate("/health").unwrap(), "http://127.0.0.1:8080/health");
    /// ```
    pub fn locate(&self, path_and_query: &str) -> Result<Uri, http::Error> {
        let below_base =
            path_and_query.strip_prefix("/v1").filter(|rest| rest.is_empty() || rest.starts_with(['/', '?']));
        let target = match below_base {
            Some(rest) => format!("{}{rest}", self.path),
            None => path_and_query.to_owned(),
        };
        let mut parts = self.origin.clone().into_parts();
        parts.path_and_query = Some(if target.is_empty() { "/".parse()? } else { target.parse()? });
        Ok(Uri::from_parts(parts)?)
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = self.origin.to_string();
        write!(formatter, "{}{}", origin.trim_end_matches('/'), self.path)
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

/// A way of prefilling that is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown prefill `{0}`: use auto, never, assistant, continue_final_message, prefix or partial")]
pub struct UnknownPrefill(String);

impl FromStr for Prefill {
    type Err = UnknownPrefill;

    fn from_str(name: &str) -> Result<Self, UnknownPrefill> {
        match name {
            "auto" => Ok(Self::Auto),
            "never" => Ok(Self::Never),
            "assistant" => Ok(Self::Assistant),
            "continue_final_message" => Ok(Self::ContinueFinalMessage),
            "prefix" => Ok(Self::Prefix),
            "partial" => Ok(Self::Partial),
            other => Err(UnknownPrefill(other.to_owned())),
        }
    }
}

/// A credential: it can be sent, and never be printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes the credential out of reach of every formatter.
    pub fn new(value: String) -> Self {
        Self(value)
    }

    /// The credential itself, for the one place that sends it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

/// Bounds in bytes, counts and time. Each has a reason; none is "large enough".
#[derive(Debug, Clone)]
pub struct Limits {
    /// A request's head: agents send long cookies and tracing headers, not more.
    pub header_bytes: usize,
    /// A request's body: a full context window with images in base64.
    pub body_bytes: usize,
    /// A reply that is held in memory because it may still need help; beyond it a reply that is not
    /// streamed is refused, and a stream goes on without the ability to mend it.
    pub reply_bytes: usize,
    /// Connections served at once; the next waits in the kernel's queue.
    pub connections: usize,
    /// For the client to send its whole head.
    pub header: Duration,
    /// For the upstream to begin its answer: models think for minutes before a reply that is not streamed.
    pub first_byte: Duration,
    /// For the first byte of a streamed reply that a fallback can give instead: a long prompt takes seconds.
    pub first_token: Duration,
    /// Silence in mid-body, from client or upstream, after which the sender counts as stalled.
    pub idle: Duration,
    /// For one exchange in all.
    pub total: Duration,
    /// Between two comments that keep a waiting client's stream alive.
    pub heartbeat: Duration,
    /// For an upstream that broke off to come back before a resume attempt is given up.
    pub reconnect: Duration,
    /// For replies under way to end after a request to stop.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_bytes: 64 * 1024,
            body_bytes: 64 * 1024 * 1024,
            reply_bytes: 16 * 1024 * 1024,
            connections: 1_024,
            header: Duration::from_secs(10),
            first_byte: Duration::from_mins(10),
            first_token: Duration::from_mins(1),
            idle: Duration::from_mins(2),
            total: Duration::from_hours(1),
            heartbeat: Duration::from_secs(10),
            reconnect: Duration::from_secs(30),
            drain: Duration::from_secs(30),
        }
    }
}
