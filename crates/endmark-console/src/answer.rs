//! Builds responses: documents and errors.

use std::error::Error;

use bytes::Bytes;
use endmark_store::StoreError;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use serde::Serialize;
use serde_json::json;

/// The body of a response.
pub type ConsoleBody = UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>>;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConsoleError {
    /// The request is invalid.
    #[error("{0}")]
    BadRequest(String),
    /// The requested object does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The admin key is missing or wrong.
    #[error("this asks for the admin key: send it as `Authorization: Bearer KEY`")]
    Unauthorized,
    /// No client may read the data.
    #[error(
        "the gateway has no admin key, and other machines or clients with its keys can reach it: set `admin_key` in its configuration"
    )]
    NoAdminKey,
    /// The form was not sent by one of the console's pages.
    #[error(
        "the form does not match the page as it is now: go back, reload the page and send the form again"
    )]
    ForgedForm,
    /// The route does not support this method, only reading.
    #[error("only GET and HEAD are offered here")]
    MethodNotAllowed,
    /// Too many clients follow the events. Contains the maximum number.
    #[error("at most {0} clients can follow events at once: try again later")]
    TooManyFollowers(usize),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The response cannot be serialised.
    #[error("the answer cannot be written: {0}")]
    Serialization(#[from] serde_json::Error),
}

impl ConsoleError {
    /// Returns the error type and the HTTP status.
    pub(crate) fn kind(&self) -> (&'static str, StatusCode) {
        match self {
            Self::BadRequest(_) => ("bad_request", StatusCode::BAD_REQUEST),
            Self::NotFound(_) => ("not_found", StatusCode::NOT_FOUND),
            Self::Unauthorized => ("admin_key_required", StatusCode::UNAUTHORIZED),
            Self::NoAdminKey => ("no_admin_key", StatusCode::FORBIDDEN),
            Self::ForgedForm => ("forged", StatusCode::FORBIDDEN),
            Self::MethodNotAllowed => ("method_not_allowed", StatusCode::METHOD_NOT_ALLOWED),
            Self::TooManyFollowers(_) => ("busy", StatusCode::SERVICE_UNAVAILABLE),
            Self::Store(_) => ("store_failed", StatusCode::SERVICE_UNAVAILABLE),
            Self::Serialization(_) => ("bug", StatusCode::INTERNAL_SERVER_ERROR),
        }
    }

    /// Returns the error as a JSON document.
    pub(crate) fn to_json_response(&self) -> Response<ConsoleBody> {
        let (code, status) = self.kind();
        let document = json!({ "error": { "code": code, "message": self.to_string() } });
        let mut response = document_response("application/json", format!("{document}\n"));
        *response.status_mut() = status;
        if matches!(self, Self::Unauthorized) {
            let challenge = HeaderValue::from_static("Bearer realm=\"endmark\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

/// Returns data as a JSON document.
pub(crate) fn json_response(data: &impl Serialize) -> Result<Response<ConsoleBody>, ConsoleError> {
    let mut text = serde_json::to_vec(data)?;
    text.push(b'\n');
    Ok(document_response("application/json", text))
}

/// Returns a document. It is not cached, and pages of other origins cannot use it.
pub(crate) fn document_response(kind: &'static str, body: impl Into<Bytes>) -> Response<ConsoleBody> {
    body_response(kind, Full::new(body.into()).map_err(|never| match never {}).boxed_unsync())
}

/// Returns a document whose body may still be arriving.
pub(crate) fn body_response(kind: &'static str, body: ConsoleBody) -> Response<ConsoleBody> {
    let mut response = Response::new(body);
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
