//! The gateway's settings. They are already parsed and valid.

mod authorities;
mod base_url;
mod budget;
mod conditions;
mod context;
mod correct;
mod disclose;
mod faults;
mod incomplete;
mod keys;
mod limits;
mod listener;
mod metrics;
mod on_missing;
mod proxy;
mod resume;
mod retry;
mod secret;
mod sole_key;
mod store_policy;
mod tools;
mod unfit_fallback;
mod upstream;
mod value_types;

use std::collections::BTreeMap;
use std::sync::Arc;

use endmark_console::Console;
use endmark_context::Models;

use crate::scrub::Scrubber;

pub use authorities::{Authorities, AuthoritiesError};
pub use base_url::{BaseUrl, BaseUrlError};
pub use budget::{BudgetSettings, Clock};
pub use conditions::{Conditions, HeaderPattern, Pattern, UnusablePattern};
pub use context::{CapSettings, CompactSettings, EmergencySettings, WindowSettings};
pub use correct::CorrectSettings;
pub use disclose::DiscloseSettings;
pub(crate) use faults::{FULL_SHARE, Fault, FaultKind, FaultPosition};
pub use faults::{FaultError, FaultPlan, FaultSettings, FaultSide, UnknownFaultSide};
pub use incomplete::IncompleteDelivery;
pub use keys::KeySettings;
pub use limits::Limits;
pub use listener::{ListenerSettings, TlsFiles};
pub use metrics::{MetricsAccess, MetricsSettings};
pub use on_missing::OnMissing;
pub use proxy::{Proxy, ProxyError, ProxyVariableError};
pub use resume::{MODES, ResumeMode, ResumeSettings, UnknownMode};
pub use retry::RetrySettings;
pub use secret::Secret;
pub use sole_key::SoleKey;
pub use store_policy::StorePolicy;
pub use tools::ToolSettings;
pub use unfit_fallback::UnfitFallback;
pub use upstream::{PREFILLS, Prefill, Upstream};
pub use value_types::SecretText;

/// The default port.
pub const DEFAULT_PORT: u16 = 4141;

/// Everything that controls the gateway's behaviour.
// Fields: one for each section of the configuration.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the gateway listens, and which clients it admits.
    pub listener: ListenerSettings,
    /// The files for TLS. Without them, the gateway serves plain HTTP.
    pub tls: Option<TlsFiles>,
    /// Which clients may read the metrics. By default all clients may, unless a key is required and there is no admin
    /// key.
    pub metrics: MetricsSettings,
    /// The gateway's own keys.
    pub keys: KeySettings,
    /// The only accepted key, instead of those in the store. Such a gateway serves no page except its health.
    pub sole_key: Option<SoleKey>,
    /// The upstreams by name; never empty. A request goes to the first one whose conditions it meets, or else to the
    /// first unconditional one that supports its format.
    pub upstreams: Vec<Upstream>,
    /// When and how cut replies are resumed (PC-9).
    pub resume: ResumeSettings,
    /// How the format of a reply may be corrected (PC-6).
    pub correct: CorrectSettings,
    /// How the tool calls of a reply are handled (PC-9).
    pub tools: ToolSettings,
    /// How clients learn about the recovery of a reply.
    pub disclose: DiscloseSettings,
    /// What the store keeps, and for how long.
    pub store_policy: StorePolicy,
    /// Limits of tool results in requests (CX-5).
    pub cap: CapSettings,
    /// When conversations are compacted (CX-1, CX-2).
    pub compact: CompactSettings,
    /// The table of models that replaces the built-in one.
    pub models: Option<Arc<Models>>,
    /// The budgets (CX-7).
    pub budget: BudgetSettings,
    /// JSON Schemas that a client may name in `x-endmark-schema`.
    pub schemas: BTreeMap<String, String>,
    /// How often and how long a failed request is retried.
    pub retry: RetrySettings,
    /// Limits in bytes, counts and time.
    pub limits: Limits,
    /// Faults to inject. By default the list is empty.
    pub faults: FaultSettings,
    /// Answers requests for the other pages below `/endmark/`.
    pub console: Option<Arc<Console>>,
}

impl Settings {
    pub(crate) fn models(&self) -> &Models {
        self.models.as_deref().unwrap_or_else(|| Models::builtin())
    }

    /// Creates a scrubber for all secrets in these settings.
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
            listener: ListenerSettings::default(),
            tls: None,
            metrics: MetricsSettings::default(),
            keys: KeySettings::default(),
            sole_key: None,
            upstreams: Upstream::public_endpoints(),
            resume: ResumeSettings::default(),
            correct: CorrectSettings::default(),
            tools: ToolSettings::default(),
            disclose: DiscloseSettings::default(),
            store_policy: StorePolicy::default(),
            cap: CapSettings::default(),
            compact: CompactSettings::default(),
            models: None,
            budget: BudgetSettings::default(),
            schemas: BTreeMap::new(),
            retry: RetrySettings::default(),
            limits: Limits::default(),
            faults: FaultSettings::default(),
            console: None,
        }
    }
}
