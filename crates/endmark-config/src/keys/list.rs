//! Every key there is, in one list.

use endmark_gateway::{HostName, OriginName};

use super::{Access, Key, Place};
use crate::environment;
use crate::given::Expected;

macro_rules! access {
    ($($field:ident).+) => {
        Access { get: |settings| &settings.$($field).+, get_mut: |settings| &mut settings.$($field).+ }
    };
}

const fn key(name: &'static str, environment: &'static str, summary: &'static str, place: Place) -> Key {
    Key { name, environment, summary, place }
}

const fn count(least: u64, access: Access<u64>) -> Place {
    Place::Count { least, access }
}

/// The least characters that a tool's output may be given: there has to be room for markers with a handle.
const LEAST_CAP: u64 = 200;

/// The least tokens of a history that is compacted: a summary has to have room in it.
const LEAST_COMPACT: u64 = 500;

/// What a host has to be.
fn host(name: &str) -> Result<(), Expected> {
    name.parse::<HostName>().map(|_| ()).map_err(|_| "host names, like [\"gateway.example.com\"]".to_owned())
}

/// What an origin has to be.
fn origin(name: &str) -> Result<(), Expected> {
    name.parse::<OriginName>()
        .map(|_| ())
        .map_err(|_| "origins, like [\"https://app.example.com\"]".to_owned())
}

/// Every key that is not of an upstream or a schema, in the order in which they are shown.
pub(crate) static KEYS: &[Key] = &[
    key("listen", environment::LISTEN, "address and port to listen on", Place::Address(access!(listen))),
    key(
        "allowed_hosts",
        environment::ALLOWED_HOSTS,
        "hosts that requests may be sent to, beside this machine's own names; \"*\": any",
        Place::Names(access!(allowed_hosts), host),
    ),
    key(
        "allowed_origins",
        environment::ALLOWED_ORIGINS,
        "origins of pages that may send requests, beside the gateway's own; \"*\": any",
        Place::Names(access!(allowed_origins), origin),
    ),
    key(
        "require_key",
        environment::REQUIRE_KEY,
        "whether nobody is let in without one of the gateway's own keys (endmark keys)",
        Place::Flag(access!(require_key)),
    ),
    key(
        "admin_key",
        environment::ADMIN_KEY,
        "what the pages below /endmark/ ask for; without one they open on the loopback address alone, and not with require_key",
        Place::KeptSecret(access!(admin_key)),
    ),
    key(
        "store",
        environment::STORE,
        "where recoveries are recorded: sqlite:PATH",
        Place::Store(access!(store)),
    ),
    key(
        "ca_file",
        environment::CA_FILE,
        "certificate authorities (PEM) that upstreams may be certified by, beside the system's",
        Place::OptionalPath(access!(ca_file)),
    ),
    key(
        "tls.certificate",
        environment::TLS_CERTIFICATE,
        "the listener's chain of certificates, a PEM file; without one it speaks plain HTTP",
        Place::OptionalPath(access!(tls.certificate)),
    ),
    key(
        "tls.key",
        environment::TLS_KEY,
        "the key of the certificate, a PEM file",
        Place::OptionalPath(access!(tls.key)),
    ),
    key(
        "resume.mode",
        environment::RESUME_MODE,
        "when a cut reply is resumed: auto, on, off or warn",
        Place::Mode(access!(resume.mode)),
    ),
    key(
        "resume.max_attempts",
        environment::RESUME_MAX_ATTEMPTS,
        "continuation calls made for each choice before a reply is given up (MAX_RESUME_ATTEMPTS)",
        count(0, access!(resume.max_attempts)),
    ),
    key(
        "resume.continuation_tokens",
        environment::RESUME_CONTINUATION_TOKENS,
        "output limit of a continuation call, where the client's own is not larger",
        count(1, access!(resume.continuation_tokens)),
    ),
    key(
        "resume.treat_limit_as_cap",
        environment::RESUME_TREAT_LIMIT_AS_CAP,
        "a limit that Anthropic Messages wants in every request counts as the client's own only below this",
        count(1, access!(resume.treat_limit_as_cap)),
    ),
    key(
        "resume.max_extra_tokens",
        environment::RESUME_MAX_EXTRA_TOKENS,
        "output limit of all continuation calls of one request together",
        count(0, access!(resume.max_extra_tokens)),
    ),
    key(
        "resume.client_limit_factor",
        environment::RESUME_CLIENT_LIMIT_FACTOR,
        "in auto, output tokens of all continuation calls of a reply whose client set a limit, as a multiple of that; at least 2048",
        count(1, access!(resume.client_limit_factor)),
    ),
    key(
        "resume.max_seconds",
        environment::RESUME_MAX_SECONDS,
        "time for the recovery of a reply that its client limited, where that reply's own pace gives it no more",
        count(1, access!(resume.max_seconds)),
    ),
    key(
        "resume.on_ambiguous",
        environment::RESUME_ON_AMBIGUOUS,
        "what is done with an ambiguous seam: stop, or take the best candidate",
        Place::OnAmbiguous(access!(resume.on_ambiguous)),
    ),
    key(
        "resume.restart",
        environment::RESUME_RESTART,
        "which text or document that is generated again may replace a cut one: any, one with the same complete values, none",
        Place::Restart(access!(resume.restart)),
    ),
    key(
        "resume.prompt",
        environment::RESUME_PROMPT,
        "the text that asks a model to continue, in place of the built-in one",
        Place::OptionalText(access!(resume.prompt)),
    ),
    key(
        "resume.strategies",
        environment::RESUME_STRATEGIES,
        "the ways to get the rest, in the order in which they are tried: prefill, prompt, restart",
        Place::Strategies(access!(resume.strategies)),
    ),
    key(
        "correct.max_attempts",
        environment::CORRECT_MAX_ATTEMPTS,
        "formatting corrections tried (MAX_CORRECTION_ATTEMPTS)",
        count(0, access!(correct.max_attempts)),
    ),
    key(
        "correct.may_change",
        environment::CORRECT_MAY_CHANGE,
        "whether a correction may change or drop a value that was received complete",
        Place::Flag(access!(correct.may_change)),
    ),
    key(
        "tools.hold",
        environment::TOOLS_HOLD,
        "whether tool calls in a stream are held until they are whole",
        Place::Flag(access!(tools.hold)),
    ),
    key(
        "tools.restart",
        environment::TOOLS_RESTART,
        "which tool call that is generated again may replace a cut one: any, one with the same complete values, none",
        Place::Restart(access!(tools.restart)),
    ),
    key(
        "tools.on_missing",
        environment::TOOLS_ON_MISSING,
        "how a reply ends whose tool calls are whole, and that may lack further ones: with its calls, or as a cut one",
        Place::OnMissing(access!(tools.on_missing)),
    ),
    key(
        "retry.max_retries",
        environment::RETRY_MAX_RETRIES,
        "further tries of a request that got no reply, at one upstream",
        count(0, access!(retry.max_retries)),
    ),
    key(
        "retry.max_wait_seconds",
        environment::RETRY_MAX_WAIT_SECONDS,
        "longest Retry-After that is waited for",
        count(0, access!(retry.max_wait_seconds)),
    ),
    key(
        "retry.budget_percent",
        environment::RETRY_BUDGET_PERCENT,
        "further tries that an upstream may get, in percent of its requests",
        count(0, access!(retry.budget_percent)),
    ),
    key(
        "retry.budget_per_second",
        environment::RETRY_BUDGET_PER_SECOND,
        "further tries a second that it may get however few its requests are",
        count(0, access!(retry.budget_per_second)),
    ),
    key(
        "retry.cooldown_seconds",
        environment::RETRY_COOLDOWN_SECONDS,
        "how long an upstream that is down is left to its fallback before it is tried again",
        count(1, access!(retry.cooldown_seconds)),
    ),
    key(
        "limits.header_bytes",
        environment::LIMITS_HEADER_BYTES,
        "largest request header",
        count(1024, access!(limits.header_bytes)),
    ),
    key(
        "limits.body_bytes",
        environment::LIMITS_BODY_BYTES,
        "largest request body",
        count(1024, access!(limits.body_bytes)),
    ),
    key(
        "limits.reply_bytes",
        environment::LIMITS_REPLY_BYTES,
        "largest reply that can still be mended; a longer one passes as it is",
        count(1024, access!(limits.reply_bytes)),
    ),
    key(
        "limits.header_seconds",
        environment::LIMITS_HEADER_SECONDS,
        "time for a client to send its header",
        count(1, access!(limits.header_seconds)),
    ),
    key(
        "limits.first_byte_seconds",
        environment::LIMITS_FIRST_BYTE_SECONDS,
        "time for an upstream to begin its answer",
        count(1, access!(limits.first_byte_seconds)),
    ),
    key(
        "limits.first_token_seconds",
        environment::LIMITS_FIRST_TOKEN_SECONDS,
        "time for an upstream with a fallback to begin a stream",
        count(1, access!(limits.first_token_seconds)),
    ),
    key(
        "limits.idle_seconds",
        environment::LIMITS_IDLE_SECONDS,
        "silence in an answer after which it counts as stalled",
        count(1, access!(limits.idle_seconds)),
    ),
    key(
        "limits.total_seconds",
        environment::LIMITS_TOTAL_SECONDS,
        "time for a whole request",
        count(1, access!(limits.total_seconds)),
    ),
    key(
        "limits.heartbeat_seconds",
        environment::LIMITS_HEARTBEAT_SECONDS,
        "silence towards a client after which a comment is sent",
        count(1, access!(limits.heartbeat_seconds)),
    ),
    key(
        "limits.reconnect_seconds",
        environment::LIMITS_RECONNECT_SECONDS,
        "time for an upstream that broke off to come back before a resume attempt is given up",
        count(0, access!(limits.reconnect_seconds)),
    ),
    key(
        "limits.drain_seconds",
        environment::LIMITS_DRAIN_SECONDS,
        "time for replies under way to end after a request to stop",
        count(0, access!(limits.drain_seconds)),
    ),
    key(
        "limits.connections",
        environment::LIMITS_CONNECTIONS,
        "client connections at the same time",
        count(1, access!(limits.connections)),
    ),
    key(
        "limits.header_fields",
        environment::LIMITS_HEADER_FIELDS,
        "most fields in a request header",
        count(1, access!(limits.header_fields)),
    ),
    key(
        "limits.upload_bytes",
        environment::LIMITS_UPLOAD_BYTES,
        "largest request body on a path that only passes",
        count(1024, access!(limits.upload_bytes)),
    ),
    key(
        "limits.stream_bytes",
        environment::LIMITS_STREAM_BYTES,
        "bytes of a stream on their way to a client that does not read",
        count(1024, access!(limits.stream_bytes)),
    ),
    key(
        "limits.held_bytes",
        environment::LIMITS_HELD_BYTES,
        "bodies and replies held in memory for all requests together",
        count(1024, access!(limits.held_bytes)),
    ),
    key(
        "limits.requests",
        environment::LIMITS_REQUESTS,
        "requests served at the same time; further ones wait",
        count(1, access!(limits.requests)),
    ),
    key(
        "limits.queue",
        environment::LIMITS_QUEUE,
        "requests that wait to be served; further ones are answered 429",
        count(0, access!(limits.queue)),
    ),
    key(
        "limits.queue_seconds",
        environment::LIMITS_QUEUE_SECONDS,
        "time for a request to wait to be served",
        count(0, access!(limits.queue_seconds)),
    ),
    key(
        "limits.body_seconds",
        environment::LIMITS_BODY_SECONDS,
        "time for a client to send its body, beside a second for every kilobyte",
        count(1, access!(limits.body_seconds)),
    ),
    key(
        "limits.keep_alive_seconds",
        environment::LIMITS_KEEP_ALIVE_SECONDS,
        "time between two requests on a connection that is kept",
        count(1, access!(limits.keep_alive_seconds)),
    ),
    key(
        "limits.unread_seconds",
        environment::LIMITS_UNREAD_SECONDS,
        "time in which a client has to read something of its reply",
        count(1, access!(limits.unread_seconds)),
    ),
    key(
        "cap.max_chars",
        environment::CAP_MAX_CHARS,
        "most characters of a tool's output (MAX_RESULT_CHARS)",
        count(LEAST_CAP, access!(cap.max_chars)),
    ),
    key(
        "cap.max_items",
        environment::CAP_MAX_ITEMS,
        "most items of a list in a tool's output",
        count(1, access!(cap.max_items)),
    ),
    key(
        "cap.enabled",
        environment::CAP_ENABLED,
        "whether outputs of tools are capped on their way to an upstream",
        Place::Flag(access!(cap.enabled)),
    ),
    key(
        "cap.tool",
        environment::CAP_TOOL,
        "whether models are offered a tool that reads what was left out",
        Place::Flag(access!(cap.tool)),
    ),
    key(
        "compact.window.enabled",
        environment::COMPACT_WINDOW_ENABLED,
        "whether the older part of a long history is condensed",
        Place::Flag(access!(compact.window.enabled)),
    ),
    key(
        "compact.window.trigger_tokens",
        environment::COMPACT_WINDOW_TRIGGER_TOKENS,
        "tokens of a history from which on that is done",
        count(LEAST_COMPACT, access!(compact.window.trigger_tokens)),
    ),
    key(
        "compact.window.budget_tokens",
        environment::COMPACT_WINDOW_BUDGET_TOKENS,
        "most tokens of a history afterwards",
        count(LEAST_COMPACT, access!(compact.window.budget_tokens)),
    ),
    key(
        "compact.window.keep_events",
        environment::COMPACT_WINDOW_KEEP_EVENTS,
        "newest messages that stay in full",
        count(1, access!(compact.window.keep_events)),
    ),
    key(
        "compact.emergency.enabled",
        environment::COMPACT_EMERGENCY_ENABLED,
        "whether a request is condensed that no model could take, or that its provider refused for length",
        Place::Flag(access!(compact.emergency.enabled)),
    ),
    key(
        "compact.emergency.trigger_tokens",
        environment::COMPACT_EMERGENCY_TRIGGER_TOKENS,
        "tokens of a request from which on that is done; fewer where its model takes fewer (SAFE_TRIGGER_TOKENS)",
        count(LEAST_COMPACT, access!(compact.emergency.trigger_tokens)),
    ),
    key(
        "compact.emergency.keep_messages",
        environment::COMPACT_EMERGENCY_KEEP_MESSAGES,
        "newest messages that stay in full then",
        count(1, access!(compact.emergency.keep_messages)),
    ),
    key(
        "budget.session_tokens",
        environment::BUDGET_SESSION_TOKENS,
        "tokens that a session may take; 0: any number (SRE_AGENT_TOKEN_BUDGET, ENDMARK_TOKEN_BUDGET)",
        count(0, access!(budget.session_tokens)),
    ),
    key(
        "budget.session_usd",
        environment::BUDGET_SESSION_USD,
        "dollars that a session may cost; 0: any sum",
        Place::Dollars(access!(budget.session_usd)),
    ),
    key(
        "budget.day_tokens",
        environment::BUDGET_DAY_TOKENS,
        "tokens that all requests may take on one day; 0: any number",
        count(0, access!(budget.day_tokens)),
    ),
    key(
        "budget.day_usd",
        environment::BUDGET_DAY_USD,
        "dollars that all requests may cost on one day; 0: any sum",
        Place::Dollars(access!(budget.day_usd)),
    ),
    key(
        "budget.key_day_tokens",
        environment::BUDGET_KEY_DAY_TOKENS,
        "tokens that one key may take on one day; 0: any number",
        count(0, access!(budget.key_day_tokens)),
    ),
    key(
        "budget.key_day_usd",
        environment::BUDGET_KEY_DAY_USD,
        "dollars that one key may cost on one day; 0: any sum",
        Place::Dollars(access!(budget.key_day_usd)),
    ),
    key(
        "budget.model_day_tokens",
        environment::BUDGET_MODEL_DAY_TOKENS,
        "tokens that one model may take on one day; 0: any number",
        count(0, access!(budget.model_day_tokens)),
    ),
    key(
        "budget.model_day_usd",
        environment::BUDGET_MODEL_DAY_USD,
        "dollars that one model may cost on one day; 0: any sum",
        Place::Dollars(access!(budget.model_day_usd)),
    ),
    key(
        "budget.assume_output_tokens",
        environment::BUDGET_ASSUME_OUTPUT_TOKENS,
        "tokens of output that are held for a call that names no limit",
        count(1, access!(budget.assume_output_tokens)),
    ),
    key(
        "budget.on_store_error",
        environment::BUDGET_ON_STORE_ERROR,
        "whether calls are made where the store cannot hold them: open, or closed",
        Place::OnStoreError(access!(budget.on_store_error)),
    ),
    key(
        "budget.unknown_price",
        environment::BUDGET_UNKNOWN_PRICE,
        "a model without a price, where a budget is in dollars: refuse, or count_tokens_only",
        Place::UnknownPrice(access!(budget.unknown_price)),
    ),
    key(
        "budget.unknown_paths",
        environment::BUDGET_UNKNOWN_PATHS,
        "paths whose cost is not counted, where a budget applies: refuse, or pass",
        Place::UnknownPaths(access!(budget.unknown_paths)),
    ),
    key(
        "budget.zone",
        environment::BUDGET_ZONE,
        "the zone in which days and months begin at midnight: UTC, +02:00, Europe/Berlin",
        Place::Zone(access!(budget.zone)),
    ),
    key(
        "budget.webhook",
        environment::BUDGET_WEBHOOK,
        "an address that is sent an event when a budget comes to 80 or 95 percent",
        Place::Secret(access!(budget.webhook)),
    ),
    key(
        "budget.webhook_secret",
        environment::BUDGET_WEBHOOK_SECRET,
        "what these events are signed with (HMAC-SHA256, in x-endmark-signature)",
        Place::Secret(access!(budget.webhook_secret)),
    ),
    key(
        "runs.webhook",
        environment::RUNS_WEBHOOK,
        "an address that is sent each event of supervised runs",
        Place::Secret(access!(runs.webhook)),
    ),
    key(
        "runs.webhook_secret",
        environment::RUNS_WEBHOOK_SECRET,
        "what these events are signed with (HMAC-SHA256, in x-endmark-signature)",
        Place::Secret(access!(runs.webhook_secret)),
    ),
    key(
        "metrics.access",
        environment::METRICS_ACCESS,
        "who reads the metrics: all, or who has the admin key; unset: all, but none with require_key and no admin_key",
        Place::MetricsAccess(access!(metrics.access)),
    ),
    key(
        "disclose.always",
        environment::DISCLOSE_ALWAYS,
        "whether a reply that needed nothing is marked as well",
        Place::Flag(access!(disclose.always)),
    ),
    key(
        "disclose.incomplete",
        environment::DISCLOSE_INCOMPLETE,
        "how a reply is shown that could not be made whole, or may lack calls: as far as it came, or as an error",
        Place::Incomplete(access!(disclose.incomplete)),
    ),
    key(
        "store_policy.keep_text",
        environment::STORE_POLICY_KEEP_TEXT,
        "whether the texts of cut replies are stored",
        Place::Flag(access!(store_policy.keep_text)),
    ),
    key(
        "store_policy.keep_days",
        environment::STORE_POLICY_KEEP_DAYS,
        "for how many days records are kept; 0: for ever",
        count(0, access!(store_policy.keep_days)),
    ),
    key(
        "store_policy.outputs_max_bytes",
        environment::STORE_POLICY_OUTPUTS_MAX_BYTES,
        "the room that kept outputs may take in the store, compressed; the least recently used ones are removed for new ones; 0: no limit",
        count(0, access!(store_policy.outputs_max_bytes)),
    ),
];
