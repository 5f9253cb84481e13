//! The bodies that pass through the gateway.

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};

/// What a body can fail with, on either side.
pub(crate) type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// Any body, in either direction.
pub(crate) type AnyBody = UnsyncBoxBody<Bytes, BodyError>;

/// A body that is there as a whole.
pub(crate) fn full(bytes: impl Into<Bytes>) -> AnyBody {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// A body that passes as it comes.
pub(crate) fn passing<B>(body: B) -> AnyBody
where
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BodyError>,
{
    body.map_err(Into::into).boxed_unsync()
}
