//! The effective configuration, typed. Where the gateway has a type or a default for a thing, it is used here.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use endmark_gateway::{
    BaseUrl, Conditions, Incomplete, MetricsAccess, Mode, OnMissing, Prefill, Proxy, Secret,
};
use endmark_recovery::{OnAmbiguous, Restart, Strategies};
use endmark_store::StoreLocation;
use endmark_wire::openai_chat::OPENAI;
use endmark_wire::provider::Provider;

use super::budget::Budget;
use super::choice::Choice;
use super::prices::Price;
use super::secret_source::SecretSource;

/// Everything that can be configured, with its default.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "`keys::list` documents each key")]
pub struct Settings {
    pub listen: SocketAddr,
    pub allowed_hosts: Vec<String>,
    pub allowed_origins: Vec<String>,
    /// Whether nobody is let in without one of the gateway's own keys.
    pub require_key: bool,
    /// What the pages below `/endmark/` ask for.
    pub admin_key: Option<SecretSource>,
    pub tls: Tls,
    pub store: StoreLocation,
    /// Certificate authorities that upstreams may be certified by, beside the system's.
    pub ca_file: Option<PathBuf>,
    /// In the order in which they were given: the first serves the paths that name none.
    pub upstreams: Vec<Upstream>,
    /// Whether somebody named them: else they are the providers' public endpoints.
    pub has_own_upstreams: bool,
    pub resume: Resume,
    pub correct: Correct,
    pub tools: Tools,
    pub retry: Retry,
    pub limits: Limits,
    pub cap: Cap,
    pub compact: Compact,
    pub budget: Budget,
    pub runs: Runs,
    pub metrics: Metrics,
    pub disclose: Disclose,
    pub store_policy: StorePolicy,
    pub schemas: Vec<Schema>,
    /// The user's own prices, in the order in which they were given.
    pub prices: Vec<Price>,
}

/// Where events of supervised runs go (CG-4). An address is enough to send something there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "`keys::list` documents each key")]
pub struct Runs {
    pub webhook: Option<Secret>,
    pub webhook_secret: Option<Secret>,
}

impl Settings {
    /// Whether the admin key stands in the configuration itself.
    pub fn holds_admin_key(&self) -> bool {
        matches!(self.admin_key, Some(SecretSource::Value(_)))
    }
}

/// The files for TLS on the listener: both or none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tls {
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
}

/// A server that requests are forwarded to.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "`keys::list` documents each key")]
pub struct Upstream {
    pub name: String,
    pub format: &'static Provider,
    /// What a request has to meet for it.
    pub conditions: Conditions,
    /// None only until the whole configuration has been read.
    pub base_url: Option<BaseUrl>,
    /// Its own key, used in place of the client's.
    pub api_key: Option<SecretSource>,
    pub prefill: Prefill,
    /// The name of the upstream that answers where this one cannot.
    pub fallback: Option<String>,
    /// The model it is asked for where it stands in for another.
    pub model: Option<String>,
    /// The model that is asked for summaries.
    pub summary_model: Option<String>,
    /// Whether it is another Endmark.
    pub endmark: bool,
    pub proxy: ProxyChoice,
    /// Certificate authorities that are trusted for it beside all others.
    pub ca_file: Option<PathBuf>,
}

impl Upstream {
    /// An upstream of this name, as it is before anything is said about it.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            format: &OPENAI,
            conditions: Conditions::default(),
            base_url: None,
            api_key: None,
            prefill: Prefill::Auto,
            fallback: None,
            model: None,
            summary_model: None,
            endmark: false,
            proxy: ProxyChoice::Environment,
            ca_file: None,
        }
    }
}

impl Upstream {
    /// Whether its key stands in the configuration itself.
    pub fn holds_key(&self) -> bool {
        matches!(self.api_key, Some(SecretSource::Value(_)))
    }
}

/// The proxy of an upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxyChoice {
    /// The one that the environment has for it, if any.
    Environment,
    /// None, whatever the environment says.
    None,
    /// This one.
    Named(Proxy),
    /// The one whose URL is kept elsewhere.
    Kept(SecretSource),
}

/// PC-5, PC-9.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resume {
    pub mode: Mode,
    pub max_attempts: u64,
    pub continuation_tokens: u64,
    pub treat_limit_as_cap: u64,
    pub max_extra_tokens: u64,
    pub client_limit_factor: u64,
    pub max_seconds: u64,
    pub on_ambiguous: OnAmbiguous,
    pub restart: Restart,
    pub prompt: Option<String>,
    pub strategies: Strategies,
}

/// PC-6.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correct {
    pub max_attempts: u64,
    pub may_change: bool,
}

/// PC-9, streaming.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tools {
    pub hold: bool,
    pub restart: Restart,
    pub on_missing: OnMissing,
}

/// How often and how long a request is tried again that got no reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    pub max_retries: u64,
    pub max_wait_seconds: u64,
    pub budget_percent: u64,
    pub budget_per_second: u64,
    pub cooldown_seconds: u64,
}

/// How much and how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    pub header_bytes: u64,
    pub body_bytes: u64,
    pub reply_bytes: u64,
    pub header_seconds: u64,
    pub first_byte_seconds: u64,
    pub first_token_seconds: u64,
    pub idle_seconds: u64,
    pub total_seconds: u64,
    pub heartbeat_seconds: u64,
    pub reconnect_seconds: u64,
    pub drain_seconds: u64,
    pub connections: u64,
    pub header_fields: u64,
    pub upload_bytes: u64,
    pub stream_bytes: u64,
    pub held_bytes: u64,
    pub requests: u64,
    pub queue: u64,
    pub queue_seconds: u64,
    pub body_seconds: u64,
    pub keep_alive_seconds: u64,
    pub unread_seconds: u64,
}

/// CX-5.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "`keys::list` documents each key")]
pub struct Cap {
    pub enabled: bool,
    pub max_chars: u64,
    pub max_items: u64,
    pub tool: bool,
}

/// CX-1, CX-2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compact {
    pub window: CompactWindow,
    pub emergency: CompactEmergency,
}

/// The sliding window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactWindow {
    pub enabled: bool,
    pub trigger_tokens: u64,
    pub budget_tokens: u64,
    pub keep_events: u64,
}

/// The emergency brake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactEmergency {
    pub enabled: bool,
    pub trigger_tokens: u64,
    pub keep_messages: u64,
}

/// The counters at `/endmark/metrics`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metrics {
    pub access: Option<MetricsAccess>,
}

/// PC-9, disclosure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disclose {
    pub always: bool,
    pub incomplete: Incomplete,
}

/// What the store keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorePolicy {
    pub keep_text: bool,
    pub keep_days: u64,
    pub outputs_max_bytes: u64,
}

/// A JSON Schema that a request names by header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    pub name: String,
    pub path: PathBuf,
}

impl Cap {
    fn of(gateway: endmark_gateway::CapSettings) -> Self {
        Self {
            enabled: gateway.enabled,
            max_chars: length(gateway.max_chars),
            max_items: length(gateway.max_items),
            tool: gateway.tool,
        }
    }
}

impl Tools {
    fn of(gateway: &endmark_gateway::Settings) -> Self {
        Self {
            hold: gateway.hold_tool_calls,
            restart: gateway.restart_tool_calls,
            on_missing: gateway.on_missing_calls,
        }
    }
}

impl Compact {
    fn of(gateway: endmark_gateway::CompactSettings) -> Self {
        Self {
            window: CompactWindow {
                enabled: gateway.window.enabled,
                trigger_tokens: gateway.window.trigger_tokens,
                budget_tokens: gateway.window.budget_tokens,
                keep_events: length(gateway.window.keep_turns),
            },
            emergency: CompactEmergency {
                enabled: gateway.emergency.enabled,
                trigger_tokens: gateway.emergency.trigger_tokens,
                keep_messages: length(gateway.emergency.keep_turns),
            },
        }
    }
}

fn length(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

impl Default for Settings {
    fn default() -> Self {
        let gateway = endmark_gateway::Settings::default();
        let tools = Tools::of(&gateway);
        let limits = &gateway.limits;
        let bytes = length;
        let seconds = |duration: Duration| duration.as_secs();
        Self {
            listen: gateway.listen,
            allowed_hosts: gateway.allowed_hosts,
            allowed_origins: gateway.allowed_origins,
            require_key: gateway.require_key,
            admin_key: None,
            tls: Tls::default(),
            store: StoreLocation::sqlite(super::SHOWN_STORE),
            ca_file: None,
            upstreams: Vec::new(),
            has_own_upstreams: false,
            resume: Resume {
                mode: gateway.resume.mode,
                max_attempts: gateway.resume.max_attempts.into(),
                continuation_tokens: gateway.resume.continuation_tokens,
                treat_limit_as_cap: gateway.resume.treat_limit_as_cap,
                max_extra_tokens: gateway.resume.max_extra_tokens,
                client_limit_factor: gateway.resume.client_limit_factor,
                max_seconds: seconds(gateway.resume.max_time),
                on_ambiguous: gateway.resume.on_ambiguous,
                restart: gateway.resume.restart,
                prompt: gateway.resume.prompt,
                strategies: gateway.resume.strategies,
            },
            correct: Correct {
                max_attempts: gateway.correct.max_attempts.into(),
                may_change: gateway.correct.may_change,
            },
            tools,
            retry: Retry {
                max_retries: gateway.retry.max_retries.into(),
                max_wait_seconds: seconds(gateway.retry.max_wait),
                budget_percent: gateway.retry.budget_percent.into(),
                budget_per_second: gateway.retry.budget_per_second.into(),
                cooldown_seconds: seconds(gateway.retry.cooldown),
            },
            limits: Limits {
                header_bytes: bytes(limits.header_bytes),
                body_bytes: bytes(limits.body_bytes),
                reply_bytes: bytes(limits.reply_bytes),
                header_seconds: seconds(limits.header),
                first_byte_seconds: seconds(limits.first_byte),
                first_token_seconds: seconds(limits.first_token),
                idle_seconds: seconds(limits.idle),
                total_seconds: seconds(limits.total),
                heartbeat_seconds: seconds(limits.heartbeat),
                reconnect_seconds: seconds(limits.reconnect),
                drain_seconds: seconds(limits.drain),
                connections: bytes(limits.connections),
                header_fields: bytes(limits.header_fields),
                upload_bytes: limits.upload_bytes,
                stream_bytes: bytes(limits.stream_bytes),
                held_bytes: bytes(limits.held_bytes),
                requests: bytes(limits.requests),
                queue: bytes(limits.queue),
                queue_seconds: seconds(limits.queue_wait),
                body_seconds: seconds(limits.body),
                keep_alive_seconds: seconds(limits.keep_alive),
                unread_seconds: seconds(limits.unread),
            },
            cap: Cap::of(gateway.cap),
            compact: Compact::of(gateway.compact),
            budget: Budget::default(),
            runs: Runs::default(),
            metrics: Metrics { access: gateway.metrics_access },
            disclose: Disclose { always: gateway.disclose_always, incomplete: gateway.incomplete },
            store_policy: StorePolicy {
                keep_text: gateway.keep_text,
                keep_days: gateway.keep_days.into(),
                outputs_max_bytes: gateway.outputs_max_bytes,
            },
            schemas: Vec::new(),
            prices: Vec::new(),
        }
    }
}

impl Choice for Mode {
    fn words() -> Vec<(&'static str, Self)> {
        vec![("auto", Self::Auto), ("on", Self::On), ("off", Self::Off), ("warn", Self::Warn)]
    }
}

impl Choice for MetricsAccess {
    fn words() -> Vec<(&'static str, Self)> {
        vec![("open", Self::Open), ("admin", Self::Admin)]
    }
}

impl Choice for OnAmbiguous {
    fn words() -> Vec<(&'static str, Self)> {
        vec![("stop", Self::Stop), ("best", Self::Best)]
    }
}

impl Choice for Restart {
    fn words() -> Vec<(&'static str, Self)> {
        vec![("any", Self::Any), ("same", Self::Same), ("off", Self::Off)]
    }
}

impl Choice for Incomplete {
    fn words() -> Vec<(&'static str, Self)> {
        vec![("finish_reason", Self::FinishReason), ("error", Self::Error)]
    }
}

impl Choice for OnMissing {
    fn words() -> Vec<(&'static str, Self)> {
        vec![("deliver", Self::Deliver), ("cut", Self::Cut)]
    }
}

impl Choice for Prefill {
    fn words() -> Vec<(&'static str, Self)> {
        vec![
            ("auto", Self::Auto),
            ("never", Self::Never),
            ("assistant", Self::Assistant),
            ("continue_final_message", Self::ContinueFinalMessage),
            ("prefix", Self::Prefix),
            ("partial", Self::Partial),
        ]
    }
}

impl Choice for &'static Provider {
    fn words() -> Vec<(&'static str, Self)> {
        Provider::all().into_iter().map(|provider| (provider.name, provider)).collect()
    }
}
