//! Converts all errors of the gateway to HTTP responses in the format that the client's SDK expects.

use std::time::{Duration, Instant};

use endmark_store::{SECRET_PREFIX, StoreError};
use endmark_wire::edit::Edits;
use endmark_wire::format::{WireFormat, WireReply};
use endmark_wire::http1::{AccessError, Fault};
use endmark_wire::openai_chat::Chat;
use http::{HeaderValue, Response, StatusCode, header};

use crate::admission::PermitRefused;
use crate::body::{AnyBody, full};
use crate::budget::NotAdmitted;
use crate::coding::SUPPORTED_CODINGS;
use crate::keys::key_refusal::KeyRefusal;
use crate::log_limit::LogThrottle;
use crate::settings::Upstream;
use crate::upstream::{AmbiguousCredential, ReadError, UpstreamError};

/// The type of the error when a budget refuses a request.
pub(crate) const BUDGET_ERROR_TYPE: &str = "endmark_budget";

/// Retry delay in seconds for a request that does not fit into a budget because of calls in progress. Large calls
/// take seconds, and official clients retry twice.
const HELD_RETRY_SECONDS: u32 = 5;

/// The header with the id of a request.
pub(crate) const REQUEST_ID_HEADER: &str = "x-endmark-request";

/// Returns the message of a refusal without the gateway's own keys. Messages may quote text of the client, which may
/// contain a key anywhere.
pub(crate) fn safe_message(refusal: &Refusal) -> String {
    let message = refusal.to_string();
    let mut pieces = message.split(SECRET_PREFIX);
    let mut cleaned = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        cleaned.extend([
            SECRET_PREFIX,
            "…",
            piece.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric()),
        ]);
    }
    cleaned
}

/// The forwarded methods. TRACE and similar methods would show the upstream's key to the client.
pub(crate) const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

fn did_you_mean(suggestion: Option<&str>) -> String {
    suggestion.map_or_else(String::new, |suggestion| format!(" (did you mean {suggestion}?)"))
}

/// Error of a request that could not be served. Each message states the next step.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// The request cannot be understood.
    #[error("{0}")]
    BadRequest(String),
    /// The received bytes are not an HTTP request.
    #[error("{0}")]
    Malformed(Fault),
    /// The head of the request did not arrive in time.
    #[error("the request's head did not arrive within {0:?}: send it again")]
    HeadTimeout(Duration),
    /// The client was slow, and another client needed the connection.
    #[error("the request's head was late, and another client needed the connection: send it again")]
    GaveWayToOthers,
    /// The request was sent to another host, or by a page of another host.
    #[error("{0}")]
    Stranger(AccessError),
    /// The gateway is stopping.
    #[error("the gateway is stopping and takes no more requests: send it again, to the one that follows")]
    Draining,
    /// The gateway stopped before there was a reply.
    #[error(
        "the gateway stopped before the reply was there: send the request again, to the gateway that follows (what the upstream did for it may be billed)"
    )]
    Interrupted,
    /// All connections are busy.
    #[error("every connection is busy: send the request again later, or raise [limits] connections")]
    QueueFull,
    /// All permits are in use, and the queue is full.
    #[error(
        "{served} requests are being served and {queue} wait: send it again later, or raise [limits] requests or queue"
    )]
    TooManyRequests {
        /// Maximum requests served at once.
        served: usize,
        /// Maximum requests that wait.
        queue: usize,
    },
    /// The bodies of all requests together have reached the memory limit.
    #[error(
        "the bodies of all requests together are over {0} bytes: send it again later, or raise [limits] held_bytes"
    )]
    NoRoom(usize),
    /// There was no reply within the time limit.
    #[error("there was no reply within {0:?}: ask for less, or raise [limits] total_seconds")]
    Timeout(Duration),
    /// The body of a forwarded request is too long.
    #[error("the request body is over {0} bytes: send less, or raise [limits] upload_bytes")]
    UploadTooLong(u64),
    /// The client's body is too long.
    #[error(
        "the request body is over {0} bytes, as it came or decompressed: send less, or raise [limits] body_bytes"
    )]
    BodyTooLong(usize),
    /// The client stopped sending in the middle of the body.
    #[error("the request body did not arrive: {0}; send it again")]
    BodyLost(String),
    /// The body's encoding is not supported.
    #[error(
        "a request body in the encoding `{0}` cannot be read: send it in gzip, deflate, br or zstd, or uncompressed"
    )]
    Encoding(String),
    /// The connection should switch to a protocol other than HTTP.
    #[error("{0} is not served here: connect to the upstream itself")]
    Upgrade(String),
    /// The method is not forwarded.
    #[error("the method {0} is not served here: use one of {METHODS}")]
    Method(String),
    /// The path's cost is not counted, but a budget applies.
    #[error(
        "what {path} costs is not counted here, and a budget applies{}: use a key without a budget, or set \
         [budget] unknown_paths = \"pass\" (\"refuse\" by default)", did_you_mean(.suggestion.as_deref())
    )]
    NotCounted {
        path: String,
        /// The known path that the client probably meant.
        suggestion: Option<String>,
    },
    /// The path does not exist.
    #[error("{0}")]
    NotFound(String),
    /// No upstream is configured for the provider of the request and its key.
    #[error(
        "no upstream is configured for {titles}, and the request's key is not sent to another provider: add \
         `[upstreams.NAME]` with `format = \"{word}\"` and its `base_url` to the configuration, or name the upstream in \
         the path, /u/NAME/…"
    )]
    NoUpstream {
        /// The titles of the formats that such an upstream must support.
        titles: String,
        /// The value of `format` for such an upstream.
        word: &'static str,
    },
    /// The provider has upstreams, but the request does not meet their conditions.
    #[error(
        "no upstream is for this request: {0}; send what one of them is for, name the upstream in the path, /u/NAME/…, or \
         add `[upstreams.NAME]` without `for_models`, `for_headers` and `for_paths` to the configuration"
    )]
    NoConditionMet(String),
    /// The client's key does not permit the request.
    #[error("{0}")]
    Key(KeyRefusal),
    /// The request requires the admin key.
    #[error("this asks for the admin key: send it as `Authorization: Bearer KEY`")]
    AdminKeyRequired,
    /// The request requires an admin key, but none is configured.
    #[error("this is closed, since the gateway has no admin key: set `admin_key` in its configuration")]
    NoAdminKey,
    /// A budget does not admit the request.
    #[error("{0}")]
    Budget(NotAdmitted),
    /// The upstream did not respond.
    #[error(
        "the upstream `{upstream}` at {address} cannot be reached ({error}): check that it runs and that its base_url is right"
    )]
    Unreachable { upstream: String, address: String, error: UpstreamError },
    /// The upstream's response is not valid HTTP, or not supported.
    #[error(
        "the answer of the upstream `{upstream}` at {address} cannot be read: {why}; check that its base_url points at an API and what a proxy before it does (the request is not sent again by itself: it may be billed)"
    )]
    Unreadable { upstream: String, address: String, why: String },
    /// The upstream's response was incomplete.
    #[error("the answer of the upstream `{upstream}` was lost: {error}; send the request again")]
    AnswerLost { upstream: String, error: ReadError },
    /// The upstream's response is not in the expected format.
    #[error(
        "the upstream `{upstream}` answered {what} where a JSON answer was expected: check that its base_url points at an API and not at a page or proxy"
    )]
    NotTheFormat { upstream: String, what: String },
    /// The model requested omitted parts of a result, and they cannot be provided.
    #[error("the model {0}: send the request again, or set [cap] tool = false")]
    ReadToolFailed(&'static str),
    /// The request needs the store, which fails.
    #[error("the store does not answer: {0}; try again")]
    Store(String),
}

impl From<AmbiguousCredential> for Refusal {
    fn from(why: AmbiguousCredential) -> Self {
        Self::BadRequest(why.to_string())
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error.client_message())
    }
}

impl From<PermitRefused> for Refusal {
    fn from(why: PermitRefused) -> Self {
        match why {
            PermitRefused::QueueFull { served, queue } => Self::TooManyRequests { served, queue },
            PermitRefused::Stopping => Self::Draining,
        }
    }
}

impl Refusal {
    /// Returns the refusal for an upstream that did not respond.
    pub(crate) fn upstream_unavailable(upstream: &Upstream, error: UpstreamError) -> Self {
        let (name, address) = (upstream.name.clone(), upstream.base_url.to_string());
        match error {
            UpstreamError::Unreadable(why) => Self::Unreadable { upstream: name, address, why },
            error => Self::Unreachable { upstream: name, address, error },
        }
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::Malformed(Fault::HeadTooLong(_) | Fault::TooManyFields(_)) => {
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            }
            Self::Malformed(Fault::Version | Fault::Http2) => StatusCode::HTTP_VERSION_NOT_SUPPORTED,
            Self::BadRequest(_) | Self::Malformed(_) => StatusCode::BAD_REQUEST,
            Self::BodyTooLong(_) | Self::UploadTooLong(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyLost(_) | Self::HeadTimeout(_) | Self::GaveWayToOthers => StatusCode::REQUEST_TIMEOUT,
            Self::Stranger(_) | Self::NoAdminKey | Self::NotCounted { .. } => StatusCode::FORBIDDEN,
            Self::AdminKeyRequired => StatusCode::UNAUTHORIZED,
            Self::Key(why) => why.status(),
            Self::Budget(NotAdmitted::StoreFails(_)) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Budget(why) if why.is_rate_limit() || why.is_temporary() => StatusCode::TOO_MANY_REQUESTS,
            Self::Budget(_) => StatusCode::PAYMENT_REQUIRED,
            Self::Draining | Self::Interrupted | Self::QueueFull | Self::NoRoom(_) | Self::Store(_) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::TooManyRequests { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::Encoding(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Upgrade(_) => StatusCode::NOT_IMPLEMENTED,
            Self::Method(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::NotFound(_) | Self::NoUpstream { .. } | Self::NoConditionMet(_) => StatusCode::NOT_FOUND,
            Self::Unreachable { error: UpstreamError::Silent(_), .. } | Self::Timeout(_) => {
                StatusCode::GATEWAY_TIMEOUT
            }
            Self::Unreachable { .. }
            | Self::Unreadable { .. }
            | Self::AnswerLost { .. }
            | Self::NotTheFormat { .. }
            | Self::ReadToolFailed(_) => StatusCode::BAD_GATEWAY,
        }
    }

    /// Returns the type of the error, which is stable for programs.
    pub(crate) fn error_type(&self) -> &'static str {
        match self {
            Self::Malformed(Fault::HeadTooLong(_) | Fault::TooManyFields(_)) => "endmark_head_too_large",
            Self::BadRequest(_) | Self::Malformed(_) => "endmark_bad_request",
            Self::HeadTimeout(_) | Self::GaveWayToOthers => "endmark_head_late",
            Self::Stranger(AccessError::Host(_)) => "endmark_host_not_allowed",
            Self::Stranger(AccessError::Origin(_) | AccessError::Site(_)) => "endmark_origin_not_allowed",
            Self::Draining | Self::Interrupted => "endmark_stopping",
            Self::QueueFull | Self::NoRoom(_) => "endmark_overloaded",
            Self::TooManyRequests { .. } => "endmark_too_many_requests",
            Self::Timeout(_) => "endmark_took_too_long",
            Self::Key(why) => why.error_type(),
            Self::AdminKeyRequired => "endmark_admin_key_required",
            Self::NoAdminKey => "endmark_no_admin_key",
            Self::Store(_) | Self::Budget(NotAdmitted::StoreFails(_)) => "endmark_store_failed",
            Self::Budget(why) if why.is_rate_limit() => "endmark_rate_limited",
            Self::Budget(why) if why.is_temporary() => "endmark_budget_held",
            Self::Budget(_) => BUDGET_ERROR_TYPE,
            Self::BodyTooLong(_) | Self::UploadTooLong(_) => "endmark_body_too_large",
            Self::BodyLost(_) => "endmark_body_lost",
            Self::Encoding(_) => "endmark_unsupported_encoding",
            Self::Upgrade(_) => "endmark_no_upgrade",
            Self::Method(_) => "endmark_method_not_allowed",
            Self::NotCounted { .. } => "endmark_path_not_counted",
            Self::NotFound(_) => "endmark_not_found",
            Self::NoUpstream { .. } | Self::NoConditionMet(_) => "endmark_no_upstream",
            Self::Unreachable { .. } => "endmark_upstream_unreachable",
            Self::Unreadable { .. } => "endmark_upstream_unreadable",
            Self::AnswerLost { .. } => "endmark_upstream_answer_lost",
            Self::NotTheFormat { .. } => "endmark_upstream_not_an_api",
            Self::ReadToolFailed(_) => "endmark_reads_on",
        }
    }

    /// Whether the request was refused after an upstream call. In that case, the ledger already has a row for
    /// it.
    pub(crate) fn is_after_call(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. }
                | Self::Unreadable { .. }
                | Self::AnswerLost { .. }
                | Self::NotTheFormat { .. }
                | Self::ReadToolFailed(_)
                | Self::Interrupted
        )
    }

    /// Whether the store or the shared database caused the refusal.
    fn is_store_failure(&self) -> bool {
        matches!(self, Self::Store(_) | Self::Budget(NotAdmitted::StoreFails(_)))
    }

    /// Returns the seconds after which the client should retry, if waiting helps. The official clients obey this.
    fn retry_after(&self) -> Option<u32> {
        match self {
            Self::Draining
            | Self::Interrupted
            | Self::QueueFull
            | Self::NoRoom(_)
            | Self::TooManyRequests { .. } => Some(1),
            Self::Budget(why) if why.is_rate_limit() => u32::try_from(why.rate_retry_seconds()?).ok(),
            Self::Budget(why) if why.is_temporary() => Some(HELD_RETRY_SECONDS),
            _ => None,
        }
    }
}

/// Returns the response to a request that was never read: the status, the retry delay in seconds, and the body.
pub(crate) fn raw_response_parts(refusal: &Refusal) -> (StatusCode, Option<u32>, Vec<u8>) {
    let status = refusal.status();
    let body = Chat.error_body(status.as_u16(), refusal.error_type(), &safe_message(refusal));
    (status, refusal.retry_after(), body)
}

/// Returns the response to a request that could not be served.
pub(crate) fn respond(refusal: &Refusal, format: &dyn WireFormat) -> Response<AnyBody> {
    log(None, refusal);
    response(refusal, format)
}

/// Returns the response to a request that was admitted with this id and could not be served.
pub(crate) fn refusal_response(id: &str, refusal: &Refusal, format: &dyn WireFormat) -> Response<AnyBody> {
    log(Some(id), refusal);
    let mut response = response(refusal, format);
    if let Ok(id) = HeaderValue::from_str(id) {
        response.headers_mut().insert(REQUEST_ID_HEADER, id);
    }
    response
}

/// Logs a refusal. If the store fails, every request may be refused, so only one line is logged every few seconds.
fn log(request: Option<&str>, refusal: &Refusal) {
    static STORE_FAILURE_LOG: LogThrottle = LogThrottle::new();
    let skipped =
        if refusal.is_store_failure() { STORE_FAILURE_LOG.count_skipped(Instant::now()) } else { Some(0) };
    let (kind, refusal) = (refusal.error_type(), safe_message(refusal));
    match skipped {
        None => {}
        Some(0) => tracing::info!(request, kind, refusal, "refused"),
        Some(skipped) => tracing::info!(request, kind, refusal, skipped, "refused, as were others before"),
    }
}

fn response(refusal: &Refusal, format: &dyn WireFormat) -> Response<AnyBody> {
    let mut response = error_response(format, refusal.status(), refusal.error_type(), &safe_message(refusal));
    if matches!(refusal, Refusal::Encoding(_)) {
        response.headers_mut().insert(header::ACCEPT_ENCODING, HeaderValue::from_static(SUPPORTED_CODINGS));
    }
    if matches!(refusal, Refusal::Method(_)) {
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(METHODS));
    }
    if matches!(refusal, Refusal::AdminKeyRequired) {
        let challenge = HeaderValue::from_static("Bearer realm=\"endmark\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    if let Refusal::Budget(why) = refusal {
        // An exhausted budget does not recover within seconds. Without this header, an official client would keep
        // retrying. A failing store may recover soon, so the client decides.
        if !refusal.is_store_failure() {
            let should_retry = if refusal.retry_after().is_some() { "true" } else { "false" };
            response.headers_mut().insert("x-should-retry", HeaderValue::from_static(should_retry));
        }
        why.write_rate_headers(format, response.headers_mut());
        if let Some(details) = why.details() {
            add_details(&mut response, format, refusal, &details);
        }
    }
    if let Some(seconds) = refusal.retry_after() {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response.extensions_mut().insert(RefusalMarker(refusal.error_type()));
    response
}

/// Adds the machine-readable details to the error in the provider's format.
fn add_details(
    response: &mut Response<AnyBody>,
    format: &dyn WireFormat,
    refusal: &Refusal,
    details: &serde_json::Value,
) {
    let body = format.error_body(refusal.status().as_u16(), refusal.error_type(), &safe_message(refusal));
    let Ok(mut edits) = Edits::new(&body) else { return };
    if edits.set("endmark", &details.to_string()).is_ok() {
        *response.body_mut() = full(edits.finish());
    }
}

/// Marks a response as the gateway's own error of this type, for the metrics.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RefusalMarker(pub(crate) &'static str);

/// Returns an error in the provider's format.
pub(crate) fn error_response(
    format: &dyn WireFormat,
    status: StatusCode,
    kind: &str,
    message: &str,
) -> Response<AnyBody> {
    let mut response = Response::new(full(format.error_body(status.as_u16(), kind, message)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
