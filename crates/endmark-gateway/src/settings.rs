//! What the gateway can be told, already parsed: every value here is usable as it stands.

mod authorities;
mod base_url;
mod budget;
mod conditions;
mod context;
mod correct;
mod faults;
mod incomplete;
mod limits;
mod listener;
mod on_missing;
mod pages;
mod proxy;
mod resume;
mod retry;
mod secret;
mod sole_key;
mod stand_in;
mod upstream;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use endmark_context::Models;
use endmark_recovery::Restart;

use crate::scrub::Scrubber;

pub use authorities::{Authorities, AuthoritiesError};
pub use base_url::{BaseUrl, BaseUrlError};
pub use budget::BudgetSettings;
pub use conditions::{Conditions, FieldPattern, Pattern, UnusablePattern};
pub use context::{CapSettings, CompactSettings, EmergencySettings, WindowSettings};
pub use correct::CorrectSettings;
pub(crate) use faults::{ALL, Fault, Kind, Place};
pub use faults::{FaultError, FaultPlan, FaultSettings, FaultSide, UnknownFaultSide};
pub use incomplete::Incomplete;
pub use limits::Limits;
pub use listener::TlsFiles;
pub use on_missing::OnMissing;
pub use pages::{AddedLatency, AdminAccess, Answering, MetricsAccess, PageBody, Pages, Visit};
pub use proxy::{Proxy, ProxyError, ProxyVariableError};
pub use resume::{Mode, ResumeSettings, UnknownMode};
pub use retry::RetrySettings;
pub use secret::Secret;
pub use sole_key::SoleKey;
pub use stand_in::Unfit;
pub use upstream::{Prefill, UnknownPrefill, Upstream};

/// Everything that shapes the gateway's behaviour.
#[expect(clippy::struct_excessive_bools, reason = "each is a key of the configuration")]
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The files for TLS; without them it speaks plain HTTP.
    pub tls: Option<TlsFiles>,
    /// Hosts that requests may be sent to, beside this machine's own names; `*` allows all. Where none is named a
    /// listener on the loopback address serves this machine's names alone, and any other one every name.
    pub allowed_hosts: Vec<String>,
    /// Origins of pages that may send requests, beside the gateway's own; `*` allows all.
    pub allowed_origins: Vec<String>,
    /// Whether nobody is let in without one of the gateway's own keys.
    pub require_key: bool,
    /// Who may read the metrics. Without a value they are open, except where a key is required and there is no admin key.
    pub metrics_access: Option<MetricsAccess>,
    /// The only accepted key, instead of those in the store. A gateway with one serves no page but its health.
    pub sole_key: Option<SoleKey>,
    /// The upstreams by name; never empty. A request is for the first one whose conditions it meets, else for the first
    /// without conditions that speaks its format.
    pub upstreams: Vec<Upstream>,
    /// When and how cut replies are resumed (PC-9).
    pub resume: ResumeSettings,
    /// What corrections of a reply's form may do (PC-6).
    pub correct: CorrectSettings,
    /// Whether tool calls are held back in streams until they are whole.
    pub hold_tool_calls: bool,
    /// Which tool call that was generated again may replace a cut one.
    pub restart_tool_calls: Restart,
    /// How a reply ends whose tool calls are whole, and that may lack further ones.
    pub on_missing_calls: OnMissing,
    /// Whether replies that needed nothing are disclosed too.
    pub disclose_always: bool,
    /// How a reply is shown that could not be made whole.
    pub incomplete: Incomplete,
    /// Whether the texts of cut replies are kept beside their lengths and hashes.
    pub keep_text: bool,
    /// For how many days without use full outputs and summaries are kept; 0: for ever.
    pub keep_days: u32,
    /// The room that full outputs may take in the store, in bytes; 0: no limit.
    pub outputs_max_bytes: u64,
    /// How long the results of tools may be on their way to an upstream (CX-5).
    pub cap: CapSettings,
    /// When conversations are compacted (CX-1, CX-2).
    pub compact: CompactSettings,
    /// What is known of models; the builtin table where there is no other.
    pub models: Option<Arc<Models>>,
    /// What may be spent (CX-7).
    pub budget: BudgetSettings,
    /// JSON Schemas that a client may name in `x-endmark-schema`.
    pub schemas: BTreeMap<String, String>,
    /// How often and how long a failed request is tried again.
    pub retry: RetrySettings,
    /// Bounds in bytes, counts and time.
    pub limits: Limits,
    /// What goes wrong on command; nothing by default.
    pub faults: FaultSettings,
    /// Who shows the pages below `/endmark/` that are not the gateway's own.
    pub pages: Option<Arc<dyn Pages>>,
}

impl Settings {
    /// What is known of models.
    pub(crate) fn models(&self) -> &Models {
        self.models.as_deref().unwrap_or_else(|| Models::builtin())
    }

    /// Knows every secret that is in these settings.
    pub fn scrubber(&self) -> Scrubber {
        let keys = self.upstreams.iter().filter_map(|upstream| upstream.api_key.as_ref()).cloned();
        let passwords =
            self.upstreams.iter().filter_map(|upstream| upstream.proxy.as_ref()).flat_map(Proxy::secrets);
        let secrets: Vec<Secret> = keys.chain(passwords).collect();
        Scrubber::new(secrets.iter().map(Secret::reveal))
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 4141)),
            tls: None,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            require_key: false,
            metrics_access: None,
            sole_key: None,
            upstreams: Upstream::public(),
            resume: ResumeSettings::default(),
            correct: CorrectSettings::default(),
            hold_tool_calls: false,
            // A call is an action.
            restart_tool_calls: Restart::Same,
            on_missing_calls: OnMissing::default(),
            disclose_always: false,
            incomplete: Incomplete::default(),
            keep_text: false,
            keep_days: 30,
            outputs_max_bytes: 2 << 30,
            cap: CapSettings::default(),
            compact: CompactSettings::default(),
            models: None,
            budget: BudgetSettings::default(),
            schemas: BTreeMap::new(),
            retry: RetrySettings::default(),
            limits: Limits::default(),
            faults: FaultSettings::default(),
            pages: None,
        }
    }
}
