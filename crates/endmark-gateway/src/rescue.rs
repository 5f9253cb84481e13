//! Every error the gateway itself raises becomes an HTTP answer here, in the shape the client's SDK knows.

use endmark_wire::openai_chat::error_body;
use http::{HeaderValue, Response, StatusCode, header};

use crate::body::{AnyBody, full};
use crate::coding::UNDERSTOOD;
use crate::upstream::{ReadError, UpstreamError};

/// Why a request could not be served. Each message says what to do next.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// The request cannot be understood.
    #[error("{0}")]
    BadRequest(String),
    /// The client's body is too long.
    #[error(
        "the request body is over {0} bytes, as it came or decompressed: send less, or raise [limits] body_bytes"
    )]
    BodyTooLong(usize),
    /// The client stopped sending in mid-body.
    #[error("the request body did not arrive: {0}; send it again")]
    BodyLost(String),
    /// The body's encoding is not read here.
    #[error(
        "a request body in the encoding `{0}` cannot be read: send it in gzip, deflate, br or zstd, or uncompressed"
    )]
    Encoding(String),
    /// A connection that is to become something else than HTTP.
    #[error("{0} is not served here: connect to the upstream itself")]
    Upgrade(String),
    /// Nothing is at that path.
    #[error("{0}")]
    NotFound(String),
    /// The upstream gave no answer.
    #[error(
        "the upstream `{upstream}` at {address} cannot be reached ({error}): check that it runs and that its base_url is right"
    )]
    Unreachable { upstream: String, address: String, error: UpstreamError },
    /// The upstream's answer came in parts and did not end.
    #[error("the answer of the upstream `{upstream}` was lost: {error}; send the request again")]
    AnswerLost { upstream: String, error: ReadError },
    /// The upstream answered something that is not of its format.
    #[error(
        "the upstream `{upstream}` answered {what} where a JSON answer was expected: check that its base_url points at an API and not at a page or proxy"
    )]
    NotTheFormat { upstream: String, what: String },
}

impl Refusal {
    fn status(&self) -> StatusCode {
        match self {
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::BodyTooLong(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyLost(_) => StatusCode::REQUEST_TIMEOUT,
            Self::Encoding(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Upgrade(_) => StatusCode::NOT_IMPLEMENTED,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::Unreachable { error: UpstreamError::Silent(_), .. } => StatusCode::GATEWAY_TIMEOUT,
            Self::Unreachable { .. } | Self::AnswerLost { .. } | Self::NotTheFormat { .. } => {
                StatusCode::BAD_GATEWAY
            }
        }
    }

    /// The error's word: stable, for programs.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::BadRequest(_) => "endmark_bad_request",
            Self::BodyTooLong(_) => "endmark_body_too_large",
            Self::BodyLost(_) => "endmark_body_lost",
            Self::Encoding(_) => "endmark_unsupported_encoding",
            Self::Upgrade(_) => "endmark_no_upgrade",
            Self::NotFound(_) => "endmark_not_found",
            Self::Unreachable { .. } => "endmark_upstream_unreachable",
            Self::AnswerLost { .. } => "endmark_upstream_answer_lost",
            Self::NotTheFormat { .. } => "endmark_upstream_not_an_api",
        }
    }
}

/// The answer to a request that could not be served.
pub(crate) fn respond(refusal: &Refusal) -> Response<AnyBody> {
    tracing::info!(kind = refusal.kind(), %refusal, "refused");
    let mut response = error_response(refusal.status(), refusal.kind(), &refusal.to_string());
    if matches!(refusal, Refusal::Encoding(_)) {
        response.headers_mut().insert(header::ACCEPT_ENCODING, HeaderValue::from_static(UNDERSTOOD));
    }
    response
}

/// An error in the provider's own shape.
pub(crate) fn error_response(status: StatusCode, kind: &str, message: &str) -> Response<AnyBody> {
    let mut response = Response::new(full(error_body(message, kind, None, None)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
