#![doc = include_str!("../README.md")]

mod admin;
mod admission;
mod api;
mod body;
mod bounds;
mod budget;
mod causes;
mod coding;
mod disclosure;
mod edge;
mod exchange;
mod faults;
mod gateway;
mod keys;
mod ledger;
mod log_limit;
mod metrics;
mod pass_through;
mod query;
mod recovered_items;
mod recovery;
mod refusal_context;
mod refusals;
mod reply;
mod request_body;
mod rotations;
mod route;
mod scrub;
mod settings;
mod shaping;
mod stack;
mod stage;
mod stopping;
mod successors;
mod telemetry;
mod tls;
mod turn;
mod upstream;
mod webhook;
mod work;

pub use causes::with_causes;
pub use edge::{ServeError, Server, listen, serve};
pub use endmark_wire::http1::{HostName, OriginName};
pub use gateway::{BuildError, Gateway};
pub use scrub::Scrubber;
pub use settings::{
    Authorities, AuthoritiesError, BaseUrl, BaseUrlError, BudgetSettings, CapSettings, Clock,
    CompactSettings, Conditions, CorrectSettings, DEFAULT_PORT, DiscloseSettings, EmergencySettings,
    FaultError, FaultPlan, FaultSettings, FaultSide, HeaderPattern, IncompleteDelivery, KeySettings, Limits,
    ListenerSettings, MODES, MetricsAccess, MetricsSettings, OnMissing, PREFILLS, Pattern, Prefill, Proxy,
    ProxyError, ProxyVariableError, ResumeMode, ResumeSettings, RetrySettings, Secret, SecretText, Settings,
    SoleKey, StorePolicy, TlsFiles, ToolSettings, UnfitFallback, UnknownFaultSide, UnknownMode,
    UnusablePattern, Upstream, WindowSettings,
};
pub use telemetry::SPANS;
pub use tls::TlsError;
pub use upstream::{ClientError, Connector, UpstreamStream};
pub use webhook::{Webhook, WebhookError};
