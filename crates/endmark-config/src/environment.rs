//! The environment variables that Endmark reads, by name.
//!
//! A name is systematic: `ENDMARK_`, the section and the key, joined by `_`, in capitals. An upstream's
//! are `ENDMARK_UPSTREAMS_<NAME>_<KEY>`, a schema's `ENDMARK_SCHEMAS_<NAME>`.

use std::collections::BTreeMap;
use std::ffi::OsString;

/// What every name of ours begins with.
pub(crate) const PREFIX: &str = "ENDMARK_";
/// The configuration file, in place of the ones that are looked for.
pub(crate) const CONFIG: &str = "ENDMARK_CONFIG";
/// What is logged to standard error, as `level` or `target=level,…`.
pub const LOG: &str = "ENDMARK_LOG";
/// Address and port to listen on.
pub(crate) const LISTEN: &str = "ENDMARK_LISTEN";
/// Hosts that requests may be sent to.
pub(crate) const ALLOWED_HOSTS: &str = "ENDMARK_ALLOWED_HOSTS";
/// Origins of pages that may send requests.
pub(crate) const ALLOWED_ORIGINS: &str = "ENDMARK_ALLOWED_ORIGINS";
/// Whether nobody is let in without one of the gateway's own keys.
pub(crate) const REQUIRE_KEY: &str = "ENDMARK_REQUIRE_KEY";
/// What the pages below `/endmark/` ask for.
pub const ADMIN_KEY: &str = "ENDMARK_ADMIN_KEY";
/// The listener's certificate.
pub(crate) const TLS_CERTIFICATE: &str = "ENDMARK_TLS_CERTIFICATE";
/// The certificate's key.
pub(crate) const TLS_KEY: &str = "ENDMARK_TLS_KEY";
/// Where recoveries are recorded.
pub(crate) const STORE: &str = "ENDMARK_STORE";
/// What the variables of an upstream begin with; its name and one of its keys follow.
pub const UPSTREAMS: &str = "ENDMARK_UPSTREAMS_";
/// What the variable of a schema begins with; its name follows.
pub(crate) const SCHEMAS: &str = "ENDMARK_SCHEMAS_";
/// Certificate authorities that are trusted beside the system's.
pub(crate) const CA_FILE: &str = "ENDMARK_CA_FILE";
/// When a cut reply is resumed.
pub(crate) const RESUME_MODE: &str = "ENDMARK_RESUME_MODE";
/// Continuation calls made before a reply is given up.
pub(crate) const RESUME_MAX_ATTEMPTS: &str = "ENDMARK_RESUME_MAX_ATTEMPTS";
/// Output limit of a continuation call, in tokens.
pub(crate) const RESUME_CONTINUATION_TOKENS: &str = "ENDMARK_RESUME_CONTINUATION_TOKENS";
/// Output limit of all continuation calls of a request together, in tokens.
pub(crate) const RESUME_TREAT_LIMIT_AS_CAP: &str = "ENDMARK_RESUME_TREAT_LIMIT_AS_CAP";
pub(crate) const RESUME_MAX_EXTRA_TOKENS: &str = "ENDMARK_RESUME_MAX_EXTRA_TOKENS";
/// Output tokens of all continuation calls of a reply whose client set a limit, as a multiple of that.
pub(crate) const RESUME_CLIENT_LIMIT_FACTOR: &str = "ENDMARK_RESUME_CLIENT_LIMIT_FACTOR";
/// The time for the recovery of such a reply.
pub(crate) const RESUME_MAX_SECONDS: &str = "ENDMARK_RESUME_MAX_SECONDS";
/// What is done with an ambiguous seam.
pub(crate) const RESUME_ON_AMBIGUOUS: &str = "ENDMARK_RESUME_ON_AMBIGUOUS";
/// Which text that is generated again may replace a cut one.
pub(crate) const RESUME_RESTART: &str = "ENDMARK_RESUME_RESTART";
/// The text that asks a model to continue.
pub(crate) const RESUME_PROMPT: &str = "ENDMARK_RESUME_PROMPT";
/// The ways to get the rest, in their order.
pub(crate) const RESUME_STRATEGIES: &str = "ENDMARK_RESUME_STRATEGIES";
/// Formatting corrections tried.
pub(crate) const CORRECT_MAX_ATTEMPTS: &str = "ENDMARK_CORRECT_MAX_ATTEMPTS";
/// Whether a correction may change what was received complete.
pub(crate) const CORRECT_MAY_CHANGE: &str = "ENDMARK_CORRECT_MAY_CHANGE";
/// Whether tool calls in a stream are held until they are whole.
pub(crate) const TOOLS_HOLD: &str = "ENDMARK_TOOLS_HOLD";
/// Which tool call that is generated again may replace a cut one.
pub(crate) const TOOLS_RESTART: &str = "ENDMARK_TOOLS_RESTART";
/// How a reply ends whose tool calls are whole, and that may lack further ones.
pub(crate) const TOOLS_ON_MISSING: &str = "ENDMARK_TOOLS_ON_MISSING";
/// Further tries of a request that got no reply.
pub(crate) const RETRY_MAX_RETRIES: &str = "ENDMARK_RETRY_MAX_RETRIES";
/// Longest wait that an upstream may ask for before a further try.
pub(crate) const RETRY_MAX_WAIT_SECONDS: &str = "ENDMARK_RETRY_MAX_WAIT_SECONDS";
/// Further tries, in percent of an upstream's requests.
pub(crate) const RETRY_BUDGET_PERCENT: &str = "ENDMARK_RETRY_BUDGET_PERCENT";
/// Further tries a second, however few requests there are.
pub(crate) const RETRY_BUDGET_PER_SECOND: &str = "ENDMARK_RETRY_BUDGET_PER_SECOND";
/// How long an upstream that is down is left to its fallback.
pub(crate) const RETRY_COOLDOWN_SECONDS: &str = "ENDMARK_RETRY_COOLDOWN_SECONDS";
/// Largest request header.
pub(crate) const LIMITS_HEADER_BYTES: &str = "ENDMARK_LIMITS_HEADER_BYTES";
/// Largest request body.
pub(crate) const LIMITS_BODY_BYTES: &str = "ENDMARK_LIMITS_BODY_BYTES";
/// Largest reply that can still be mended.
pub(crate) const LIMITS_REPLY_BYTES: &str = "ENDMARK_LIMITS_REPLY_BYTES";
/// Time for a client to send its header.
pub(crate) const LIMITS_HEADER_SECONDS: &str = "ENDMARK_LIMITS_HEADER_SECONDS";
/// Time for an upstream to begin its answer.
pub(crate) const LIMITS_FIRST_BYTE_SECONDS: &str = "ENDMARK_LIMITS_FIRST_BYTE_SECONDS";
/// Time for an upstream with a fallback to begin a stream.
pub(crate) const LIMITS_FIRST_TOKEN_SECONDS: &str = "ENDMARK_LIMITS_FIRST_TOKEN_SECONDS";
/// Silence in an answer after which it counts as stalled.
pub(crate) const LIMITS_IDLE_SECONDS: &str = "ENDMARK_LIMITS_IDLE_SECONDS";
/// Time for a whole request.
pub(crate) const LIMITS_TOTAL_SECONDS: &str = "ENDMARK_LIMITS_TOTAL_SECONDS";
/// Silence towards a client after which a comment is sent.
pub(crate) const LIMITS_HEARTBEAT_SECONDS: &str = "ENDMARK_LIMITS_HEARTBEAT_SECONDS";
/// Time for an upstream that broke off to come back.
pub(crate) const LIMITS_RECONNECT_SECONDS: &str = "ENDMARK_LIMITS_RECONNECT_SECONDS";
/// Time for replies under way to end after a request to stop.
pub(crate) const LIMITS_DRAIN_SECONDS: &str = "ENDMARK_LIMITS_DRAIN_SECONDS";
/// Client connections at the same time.
pub(crate) const LIMITS_CONNECTIONS: &str = "ENDMARK_LIMITS_CONNECTIONS";
/// Most fields in a request header.
pub(crate) const LIMITS_HEADER_FIELDS: &str = "ENDMARK_LIMITS_HEADER_FIELDS";
/// Largest request body that only passes.
pub(crate) const LIMITS_UPLOAD_BYTES: &str = "ENDMARK_LIMITS_UPLOAD_BYTES";
/// Bytes of a stream on their way to its client.
pub(crate) const LIMITS_STREAM_BYTES: &str = "ENDMARK_LIMITS_STREAM_BYTES";
/// Bodies and replies held for all requests together.
pub(crate) const LIMITS_HELD_BYTES: &str = "ENDMARK_LIMITS_HELD_BYTES";
/// Requests served at the same time.
pub(crate) const LIMITS_REQUESTS: &str = "ENDMARK_LIMITS_REQUESTS";
/// Requests that wait to be served.
pub(crate) const LIMITS_QUEUE: &str = "ENDMARK_LIMITS_QUEUE";
/// Time for a request to wait to be served.
pub(crate) const LIMITS_QUEUE_SECONDS: &str = "ENDMARK_LIMITS_QUEUE_SECONDS";
/// Time for a client to send its body.
pub(crate) const LIMITS_BODY_SECONDS: &str = "ENDMARK_LIMITS_BODY_SECONDS";
/// Time between two requests on a connection.
pub(crate) const LIMITS_KEEP_ALIVE_SECONDS: &str = "ENDMARK_LIMITS_KEEP_ALIVE_SECONDS";
/// Time in which a client has to read something.
pub(crate) const LIMITS_UNREAD_SECONDS: &str = "ENDMARK_LIMITS_UNREAD_SECONDS";
/// Most characters of a tool's output.
pub(crate) const CAP_MAX_CHARS: &str = "ENDMARK_CAP_MAX_CHARS";
/// Most items of a list in it.
pub(crate) const CAP_MAX_ITEMS: &str = "ENDMARK_CAP_MAX_ITEMS";
/// Whether models are offered a tool that reads what was left out of capped outputs.
pub(crate) const CAP_TOOL: &str = "ENDMARK_CAP_TOOL";
/// Whether outputs of tools are capped on their way to an upstream.
pub(crate) const CAP_ENABLED: &str = "ENDMARK_CAP_ENABLED";
/// Whether the sliding window is on.
pub(crate) const COMPACT_WINDOW_ENABLED: &str = "ENDMARK_COMPACT_WINDOW_ENABLED";
/// Tokens of a history above which it is compacted.
pub(crate) const COMPACT_WINDOW_TRIGGER_TOKENS: &str = "ENDMARK_COMPACT_WINDOW_TRIGGER_TOKENS";
/// Most tokens of a history after that.
pub(crate) const COMPACT_WINDOW_BUDGET_TOKENS: &str = "ENDMARK_COMPACT_WINDOW_BUDGET_TOKENS";
/// Newest messages that stay in full.
pub(crate) const COMPACT_WINDOW_KEEP_EVENTS: &str = "ENDMARK_COMPACT_WINDOW_KEEP_EVENTS";
/// Whether the emergency brake is on.
pub(crate) const COMPACT_EMERGENCY_ENABLED: &str = "ENDMARK_COMPACT_EMERGENCY_ENABLED";
/// Tokens of a request above which it is braked.
pub(crate) const COMPACT_EMERGENCY_TRIGGER_TOKENS: &str = "ENDMARK_COMPACT_EMERGENCY_TRIGGER_TOKENS";
/// Newest messages that stay in full where it is.
pub(crate) const COMPACT_EMERGENCY_KEEP_MESSAGES: &str = "ENDMARK_COMPACT_EMERGENCY_KEEP_MESSAGES";
/// Tokens that a session may take.
pub(crate) const BUDGET_SESSION_TOKENS: &str = "ENDMARK_BUDGET_SESSION_TOKENS";
/// Dollars that a session may cost.
pub(crate) const BUDGET_SESSION_USD: &str = "ENDMARK_BUDGET_SESSION_USD";
/// Tokens that all requests may take on one day.
pub(crate) const BUDGET_DAY_TOKENS: &str = "ENDMARK_BUDGET_DAY_TOKENS";
/// Dollars that all requests may cost on one day.
pub(crate) const BUDGET_DAY_USD: &str = "ENDMARK_BUDGET_DAY_USD";
/// Tokens that a key may take on one day.
pub(crate) const BUDGET_KEY_DAY_TOKENS: &str = "ENDMARK_BUDGET_KEY_DAY_TOKENS";
/// Dollars that a key may cost on one day.
pub(crate) const BUDGET_KEY_DAY_USD: &str = "ENDMARK_BUDGET_KEY_DAY_USD";
/// Tokens that a model may take on one day.
pub(crate) const BUDGET_MODEL_DAY_TOKENS: &str = "ENDMARK_BUDGET_MODEL_DAY_TOKENS";
/// Dollars that a model may cost on one day.
pub(crate) const BUDGET_MODEL_DAY_USD: &str = "ENDMARK_BUDGET_MODEL_DAY_USD";
/// Tokens of output held for a call that names no limit.
pub(crate) const BUDGET_ASSUME_OUTPUT_TOKENS: &str = "ENDMARK_BUDGET_ASSUME_OUTPUT_TOKENS";
/// What is done where the store fails.
pub(crate) const BUDGET_ON_STORE_ERROR: &str = "ENDMARK_BUDGET_ON_STORE_ERROR";
/// What is done with a model without a price.
pub(crate) const BUDGET_UNKNOWN_PRICE: &str = "ENDMARK_BUDGET_UNKNOWN_PRICE";
/// How paths of uncounted cost are treated.
pub(crate) const BUDGET_UNKNOWN_PATHS: &str = "ENDMARK_BUDGET_UNKNOWN_PATHS";
/// The zone in which days begin.
pub(crate) const BUDGET_ZONE: &str = "ENDMARK_BUDGET_ZONE";
/// Where it is reported that a budget is nearly used up.
pub(crate) const BUDGET_WEBHOOK: &str = "ENDMARK_BUDGET_WEBHOOK";
/// What such a report is signed with.
pub(crate) const BUDGET_WEBHOOK_SECRET: &str = "ENDMARK_BUDGET_WEBHOOK_SECRET";
/// Where it is reported what happens to supervised runs.
pub(crate) const RUNS_WEBHOOK: &str = "ENDMARK_RUNS_WEBHOOK";
/// What such a report is signed with.
pub(crate) const RUNS_WEBHOOK_SECRET: &str = "ENDMARK_RUNS_WEBHOOK_SECRET";
/// Who may read the metrics.
pub(crate) const METRICS_ACCESS: &str = "ENDMARK_METRICS_ACCESS";
/// Whether a reply that needed nothing is marked as well.
pub(crate) const DISCLOSE_ALWAYS: &str = "ENDMARK_DISCLOSE_ALWAYS";
/// How a reply is shown that could not be made whole.
pub(crate) const DISCLOSE_INCOMPLETE: &str = "ENDMARK_DISCLOSE_INCOMPLETE";
/// Whether the texts of cut replies are stored.
pub(crate) const STORE_POLICY_KEEP_TEXT: &str = "ENDMARK_STORE_POLICY_KEEP_TEXT";
/// For how long records are kept.
pub(crate) const STORE_POLICY_KEEP_DAYS: &str = "ENDMARK_STORE_POLICY_KEEP_DAYS";
/// How much room kept outputs may take.
pub(crate) const STORE_POLICY_OUTPUTS_MAX_BYTES: &str = "ENDMARK_STORE_POLICY_OUTPUTS_MAX_BYTES";

/// Variables of other names that set a key, too: those by which others know it. A later one beats those before it, and the
/// systematic name beats them all.
pub(crate) const OTHER_NAMES: [(&str, &str); 4] = [
    ("MAX_RESULT_CHARS", "cap.max_chars"),
    ("SAFE_TRIGGER_TOKENS", "compact.emergency.trigger_tokens"),
    ("SRE_AGENT_TOKEN_BUDGET", "budget.session_tokens"),
    ("ENDMARK_TOKEN_BUDGET", "budget.session_tokens"),
];

/// The environment as it was when the process began, so that what is read from it can be tested.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// Takes these variables; those that are not UTF-8 are none of ours.
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let readable =
            |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
        Self(variables.into_iter().filter_map(readable).collect())
    }

    /// The value of this variable; one that is empty counts as not set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Every variable that is set and whose name begins like this, in order of the names.
    pub fn beginning_with<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0
            .range(prefix.to_owned()..)
            .take_while(move |(name, _)| name.starts_with(prefix))
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }
}
