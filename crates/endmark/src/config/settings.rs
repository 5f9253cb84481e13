//! The effective configuration, typed.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use endmark_store::StoreLocation;

use super::secret::Secret;

/// Everything that can be configured, with its default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) listen: SocketAddr,
    pub(crate) store: StoreLocation,
    /// In the order in which they were given: the first serves the paths that name none.
    pub(crate) upstreams: Vec<Upstream>,
    pub(crate) resume: Resume,
    pub(crate) correct: Correct,
    pub(crate) tools: Tools,
    pub(crate) limits: Limits,
    pub(crate) disclose: Disclose,
    pub(crate) store_policy: StorePolicy,
    pub(crate) schemas: Vec<Schema>,
}

/// A server that requests are forwarded to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Upstream {
    pub(crate) name: String,
    pub(crate) format: UpstreamFormat,
    /// Up to and including the version, as in `https://api.openai.com/v1`; no slash at its end.
    pub(crate) base_url: String,
    pub(crate) api_key: Option<ApiKey>,
    pub(crate) prefill: Prefill,
}

impl Upstream {
    /// An upstream of this name, as it is before anything is said about it.
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            format: UpstreamFormat::OpenAi,
            base_url: String::new(),
            api_key: None,
            prefill: Prefill::Auto,
        }
    }
}

/// A key of the upstream's own, used in place of the client's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ApiKey {
    /// Written in the configuration.
    Value(Secret),
    /// In the environment variable of this name.
    Environment(String),
}

/// PC-5, PC-9.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resume {
    pub(crate) mode: ResumeMode,
    pub(crate) max_attempts: u64,
    pub(crate) continuation_tokens: u64,
    pub(crate) max_extra_tokens: u64,
    pub(crate) on_ambiguous: OnAmbiguous,
    pub(crate) prompt: Option<String>,
}

/// PC-6.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Correct {
    pub(crate) max_attempts: u64,
}

/// PC-9, streaming.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tools {
    pub(crate) hold: bool,
}

/// How much and how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) header_bytes: u64,
    pub(crate) body_bytes: u64,
    pub(crate) reply_bytes: u64,
    pub(crate) header_seconds: u64,
    pub(crate) first_byte_seconds: u64,
    pub(crate) idle_seconds: u64,
    pub(crate) total_seconds: u64,
    pub(crate) heartbeat_seconds: u64,
    pub(crate) reconnect_seconds: u64,
    pub(crate) drain_seconds: u64,
    pub(crate) connections: u64,
}

/// PC-9, disclosure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Disclose {
    pub(crate) always: bool,
}

/// What the store keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StorePolicy {
    pub(crate) keep_text: bool,
    pub(crate) keep_days: u64,
}

/// A JSON Schema that a request names by header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Schema {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 4141)),
            store: StoreLocation::sqlite("endmark.db"),
            upstreams: Vec::new(),
            resume: Resume {
                mode: ResumeMode::Auto,
                max_attempts: 2,
                continuation_tokens: 4096,
                max_extra_tokens: 16_384,
                on_ambiguous: OnAmbiguous::Stop,
                prompt: None,
            },
            correct: Correct { max_attempts: 1 },
            tools: Tools { hold: false },
            limits: Limits {
                header_bytes: 64 << 10,
                body_bytes: 64 << 20,
                reply_bytes: 16 << 20,
                header_seconds: 10,
                first_byte_seconds: 600,
                idle_seconds: 120,
                total_seconds: 3600,
                heartbeat_seconds: 10,
                reconnect_seconds: 30,
                drain_seconds: 30,
                connections: 1024,
            },
            disclose: Disclose { always: false },
            store_policy: StorePolicy { keep_text: false, keep_days: 30 },
            schemas: Vec::new(),
        }
    }
}

/// A value that is one word out of a few.
pub(crate) trait Choice: Copy + PartialEq + 'static {
    /// Every word with its meaning.
    const WORDS: &'static [(&'static str, Self)];

    /// What this word means, if it is one of them.
    fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(name, _)| *name == word).map(|(_, value)| *value)
    }

    /// The word for this value.
    fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, value)| *value == self).map_or("", |(name, _)| *name)
    }
}

/// When a cut reply is resumed (PC-9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResumeMode {
    Auto,
    On,
    Off,
    Warn,
}

impl Choice for ResumeMode {
    const WORDS: &'static [(&'static str, Self)] =
        &[("auto", Self::Auto), ("on", Self::On), ("off", Self::Off), ("warn", Self::Warn)];
}

/// What is done with an ambiguous seam (PC-9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnAmbiguous {
    Stop,
    Best,
}

impl Choice for OnAmbiguous {
    const WORDS: &'static [(&'static str, Self)] = &[("stop", Self::Stop), ("best", Self::Best)];
}

/// The wire format an upstream speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UpstreamFormat {
    OpenAi,
}

impl Choice for UpstreamFormat {
    const WORDS: &'static [(&'static str, Self)] = &[("openai", Self::OpenAi)];
}

/// How an upstream is asked to continue an unfinished assistant message (PC-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prefill {
    Auto,
    Never,
    Assistant,
    ContinueFinalMessage,
    Prefix,
    Partial,
}

impl Choice for Prefill {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("auto", Self::Auto),
        ("never", Self::Never),
        ("assistant", Self::Assistant),
        ("continue_final_message", Self::ContinueFinalMessage),
        ("prefix", Self::Prefix),
        ("partial", Self::Partial),
    ];
}
