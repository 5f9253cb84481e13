//! Calls to upstreams: the HTTP client, and the headers in both directions.

mod claims;
mod client;
mod connector;
mod credential;
mod destination;
mod framing;
mod headers;
mod link;
mod plain;
mod standing;
mod typed;

pub use connector::{ClientError, Connector};
pub use link::Link;

pub(crate) use claims::{frame_without_claims, without_claims};
pub(crate) use client::{Client, HTTP1_BUFFER, Read, ReadError, UpstreamError, read_up_to, read_whole};
pub(crate) use credential::{Credential, UnclearCredential};
pub(crate) use destination::{Destination, Interceptor};
pub(crate) use headers::{
    CREDENTIALS, KEYS, for_fallback, for_upstream, is_event_stream, of_another_body, of_changed_body,
    retries_of_client, retry_after, secrets_in, should_retry,
};
pub(crate) use plain::plain;
pub(crate) use standing::{Standing, random};
pub(crate) use typed::typed;
