//! Calls upstreams: the HTTP client, and the headers in both directions.

mod claims;
mod client;
mod connector;
mod credential;
mod destination;
mod framing;
mod headers;
mod health;
mod link;
mod plain;
mod typed;

pub use connector::{ClientError, Connector};
pub use link::Link;

pub(crate) use claims::{frame_without_claims, without_claims};
pub(crate) use client::{
    Client, HTTP1_BUFFER, PartialBody, ReadError, UpstreamError, read_up_to, read_whole,
};
pub(crate) use credential::{Credential, UnclearCredential};
pub(crate) use destination::{Destination, Interceptor};
pub(crate) use headers::{
    CREDENTIALS, KEYS, client_retries, find_secrets, for_fallback, for_upstream, is_event_stream,
    remove_body_headers, remove_replaced_body_headers, retry_after, should_retry,
};
pub(crate) use health::{UpstreamHealth, random};
pub(crate) use plain::decode_response;
pub(crate) use typed::with_stream_type;
