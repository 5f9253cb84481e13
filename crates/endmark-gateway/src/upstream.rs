//! Calls upstreams: the HTTP client, and the headers in both directions.

mod client;
mod connector;
mod content_type;
mod credential;
mod decompression;
mod destination;
mod endmark_claims;
mod framing;
mod headers;
mod health;
mod link;

pub use connector::{ClientError, Connector};
pub use link::UpstreamStream;

pub(crate) use client::{
    Client, HTTP1_BUFFER_BYTES, PartialBody, ReadError, UpstreamError, read_up_to, read_whole,
};
pub(crate) use content_type::with_stream_type;
pub(crate) use credential::{AmbiguousCredential, Credential};
pub(crate) use decompression::decode_response;
pub(crate) use destination::{Destination, Interceptor};
pub(crate) use endmark_claims::{frame_without_claims, without_claims};
pub(crate) use headers::{
    CREDENTIAL_HEADERS, KEY_HEADERS, client_retries, find_secrets, for_fallback, for_upstream,
    is_event_stream, remove_body_headers, remove_replaced_body_headers, retry_after, should_retry,
};
pub(crate) use health::{UpstreamHealth, random};
