//! The HTTP client for upstream calls. It does not follow redirects or decode bodies, and all its timeouts are set.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use endmark_recovery::Ending;
use http::{Method, Request, Response, StatusCode, Version, header};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{CaptureConnection, capture_connection};
use hyper_util::rt::TokioTimer;

use super::connector::{ClientError, Connector, SystemAuthorities};
use super::framing::Framing;
use super::headers::from_upstream;
use crate::admission::BytesReservation;
use crate::body::{AnyBody, BodyError, ResetDetector, forward_body};
use crate::causes::with_causes;
use crate::settings::Upstream;
use crate::turn::SharedWorkExecutor;

/// Idle time after which a pooled connection is closed. It is shorter than the idle timeouts of common
/// servers and load balancers, so a connection is rarely closed during a request.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(55);

/// Maximum size of a response's head in bytes.
const HEAD_LIMIT_BYTES: u32 = 32 * 1024;

/// Size in bytes of the HTTP library's buffer for a response. The head must fit. For the body, `link` reduces the
/// buffer. The library accepts more of a request only while it has less than this to send.
pub(crate) const HTTP1_BUFFER_BYTES: usize = HEAD_LIMIT_BYTES as usize;

/// Maximum number of fields in a response's head. Proxies add a few. Hundreds indicate a fault.
const MAX_HTTP1_FIELDS: usize = 256;

/// How many bytes of a stream an HTTP/2 upstream may send before the client reads them. This is as much as a socket
/// buffers.
const HTTP2_STREAM_WINDOW_BYTES: u32 = 128 * 1024;

/// The same limit for all streams of a connection together. It is large, so that a slow client does not delay others.
const HTTP2_CONNECTION_WINDOW_BYTES: u32 = 256 * HTTP2_STREAM_WINDOW_BYTES;

/// Ping interval for connections with streams in progress. Only an unanswered ping shows that such a connection is
/// lost.
const HTTP2_PING_INTERVAL: Duration = Duration::from_secs(30);

/// Sends requests to upstreams, each over its own connections.
pub(crate) struct Client {
    by_upstream: BTreeMap<String, UpstreamConnections>,
}

/// The connections to one upstream.
struct UpstreamConnections {
    inner: legacy::Client<Connector, AnyBody>,
    connector: Connector,
}

/// Error of an upstream that did not respond.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpstreamError {
    /// The upstream was unreachable, or disconnected before the head of its response.
    #[error("{0}")]
    Unreachable(String),
    /// The response cannot be parsed. The upstream has received the request, and may have processed it.
    #[error("{0}")]
    Unreadable(String),
    /// The upstream accepted the request but did not begin to respond within this time.
    #[error("no answer began within {0:?}")]
    Silent(Duration),
}

impl UpstreamError {
    /// Returns how the call ended.
    pub(crate) fn ending(&self) -> Ending {
        match self {
            Self::Unreachable(_) => Ending::Dropped,
            Self::Unreadable(_) => Ending::UpstreamError,
            Self::Silent(_) => Ending::Stalled,
        }
    }
}

impl Client {
    /// Creates a client for these upstreams. If the system has no certificate authorities, only plain HTTP works.
    pub(crate) fn new(upstreams: &[Upstream]) -> Result<Self, ClientError> {
        let system = SystemAuthorities::read(upstreams)?;
        let mut of = BTreeMap::new();
        for upstream in upstreams {
            let connector = Connector::for_upstream(upstream, &system)?;
            let inner = legacy::Client::builder(SharedWorkExecutor)
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(POOL_IDLE_TIMEOUT)
                .timer(TokioTimer::new())
                .http1_max_buf_size(HTTP1_BUFFER_BYTES)
                .http1_max_headers(MAX_HTTP1_FIELDS)
                .http2_initial_stream_window_size(HTTP2_STREAM_WINDOW_BYTES)
                .http2_initial_connection_window_size(HTTP2_CONNECTION_WINDOW_BYTES)
                .http2_max_header_list_size(HEAD_LIMIT_BYTES)
                .http2_keep_alive_interval(HTTP2_PING_INTERVAL)
                .build(connector.clone());
            of.insert(upstream.name.clone(), UpstreamConnections { inner, connector });
        }
        Ok(Self { by_upstream: of })
    }

    /// Sends a request to this upstream, and waits at most `first_byte` for the head of the response. The
    /// returned headers are only those that a client may get.
    pub(crate) async fn send(
        &self,
        upstream: &Upstream,
        mut request: Request<AnyBody>,
        first_byte: Duration,
    ) -> Result<Response<AnyBody>, UpstreamError> {
        let Some(reach) = self.by_upstream.get(&upstream.name) else {
            return Err(UpstreamError::Unreachable("it is not configured".to_owned()));
        };
        if let Some(authorization) = reach.connector.proxy_authorization() {
            request.headers_mut().insert(header::PROXY_AUTHORIZATION, authorization.clone());
        }
        let (method, connection) = (request.method().clone(), capture_connection(&mut request));
        match tokio::time::timeout(first_byte, reach.inner.request(request)).await {
            // This status is followed by another protocol instead of a response.
            Ok(Ok(response)) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                Err(UpstreamError::Unreadable(format!(
                    "it switches to another protocol ({}), which was not requested",
                    response.status()
                )))
            }
            Ok(Ok(mut response)) => {
                if response.version() != Version::HTTP_2 {
                    check_framing(&method, &mut response, &connection)?;
                }
                let headers = std::mem::take(response.headers_mut());
                *response.headers_mut() = from_upstream(headers, upstream);
                let is_refusal = !response.status().is_success();
                // The client gets the response with the gateway's own framing.
                match std::mem::replace(response.version_mut(), Version::HTTP_11) {
                    Version::HTTP_2 => {
                        Ok(response.map(|body| ResetDetector::new(body, is_refusal).boxed_unsync()))
                    }
                    _ => Ok(response.map(forward_body)),
                }
            }
            Ok(Err(error)) => Err(convert_error(&error)),
            Err(_) => Err(UpstreamError::Silent(first_byte)),
        }
    }
}

/// Checks that all readers find the same end of the response as the HTTP library. If another reader may find
/// a different end, the connection is not reused.
fn check_framing(
    method: &Method,
    response: &mut Response<Incoming>,
    connection: &CaptureConnection,
) -> Result<(), UpstreamError> {
    let framing = Framing::from_response(method, response.status(), response.headers());
    if framing == Framing::Clear {
        return Ok(());
    }
    if let Some(connection) = connection.connection_metadata().as_ref() {
        connection.poison();
    }
    if let Framing::TransferCoded(coding) = framing {
        return Err(UpstreamError::Unreadable(format!(
            "its body has the transfer coding `{coding}`, and only `chunked` is read here"
        )));
    }
    if response.headers_mut().remove(header::TRANSFER_ENCODING).is_some() {
        response.headers_mut().remove(header::CONTENT_LENGTH);
    }
    Ok(())
}

/// Converts an error of the HTTP client. A head that cannot be parsed still counts as a response.
fn convert_error(error: &(dyn Error + 'static)) -> UpstreamError {
    let causes = || std::iter::successors(Some(error), |error| (*error).source());
    // The HTTP library found this fault. The other side did not report it.
    if causes().any(|cause| cause.downcast_ref::<h2::Error>().is_some_and(h2::Error::is_library)) {
        return UpstreamError::Unreadable(format!(
            "its head is over {HEAD_LIMIT_BYTES} bytes (a fixed limit), or it is not HTTP/2: {}",
            with_causes(error)
        ));
    }
    match causes().find_map(|cause| cause.downcast_ref::<hyper::Error>().filter(|error| error.is_parse())) {
        Some(error) if error.is_parse_too_large() => UpstreamError::Unreadable(format!(
            "its head is over {HEAD_LIMIT_BYTES} bytes or {MAX_HTTP1_FIELDS} fields (a fixed limit)"
        )),
        Some(error) => UpstreamError::Unreadable(format!("it is not HTTP: {}", with_causes(error))),
        None => UpstreamError::Unreachable(with_causes(error)),
    }
}

/// The reason why a body could not be read to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// The body exceeds the limit.
    #[error("it is over {0} bytes")]
    TooLong(usize),
    /// No data arrived for this long.
    #[error("no data arrived for {0:?}")]
    Stalled(Duration),
    /// The HTTP body ended normally, but in the middle of JSON.
    #[error("its JSON ends too early, after {0} bytes")]
    Truncated(usize),
    /// The sender closed the connection.
    #[error("it broke off: {0}")]
    Broken(BodyError),
}

/// Reads a body of at most `cap` bytes. Pauses are limited to `idle`.
pub(crate) async fn read_whole<B>(body: B, cap: usize, idle: Duration) -> Result<Bytes, ReadError>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BodyError>,
{
    match read_up_to(body, cap, idle, None).await? {
        PartialBody::Whole(bytes) => Ok(bytes),
        PartialBody::Longer(..) | PartialBody::NoRoom(..) => Err(ReadError::TooLong(cap)),
    }
}

/// The result of reading a body that may exceed a limit.
pub(crate) enum PartialBody<B> {
    /// The complete body.
    Whole(Bytes),
    /// The beginning of the body, and the body that continues after it.
    Longer(Bytes, B),
    /// The body did not fit into the available memory.
    NoRoom(Bytes, B),
}

/// Reads a body until it ends or exceeds `cap` bytes. Pauses are limited to `idle`. If `memory` is given, the
/// bytes are reserved in it.
pub(crate) async fn read_up_to<B>(
    mut body: B,
    cap: usize,
    idle: Duration,
    mut memory: Option<&mut BytesReservation>,
) -> Result<PartialBody<B>, ReadError>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BodyError>,
{
    if body.size_hint().lower() > cap as u64 {
        return Ok(PartialBody::Longer(Bytes::new(), body));
    }
    let mut whole = CollectedBytes::default();
    loop {
        match tokio::time::timeout(idle, body.frame()).await {
            Err(_) => return Err(ReadError::Stalled(idle)),
            Ok(None) => return Ok(PartialBody::Whole(whole.freeze())),
            Ok(Some(Err(error))) => return Err(ReadError::Broken(error.into())),
            Ok(Some(Ok(frame))) => {
                if let Ok(data) = frame.into_data() {
                    let has_room = memory.as_mut().is_none_or(|holding| holding.grow(data.len()));
                    whole.push(data);
                    if !has_room {
                        return Ok(PartialBody::NoRoom(whole.freeze(), body));
                    }
                    if whole.len() > cap {
                        return Ok(PartialBody::Longer(whole.freeze(), body));
                    }
                }
            }
        }
    }
}

/// The received bytes of a body. Most bodies arrive in one part, which is not copied.
#[derive(Default)]
struct CollectedBytes {
    /// The only part, until a second part arrives.
    single_part: Bytes,
    parts: BytesMut,
}

impl CollectedBytes {
    fn push(&mut self, part: Bytes) {
        if self.len() == 0 {
            self.single_part = part;
            return;
        }
        self.parts.extend_from_slice(&std::mem::take(&mut self.single_part));
        self.parts.extend_from_slice(&part);
    }

    fn len(&self) -> usize {
        self.single_part.len() + self.parts.len()
    }

    fn freeze(self) -> Bytes {
        if self.parts.is_empty() { self.single_part } else { self.parts.freeze() }
    }
}
