//! The client for upstream calls: no redirects, no hidden decoding, all timeouts set.

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
use crate::admission::Holding;
use crate::body::{AnyBody, BodyError, Unreset, passing};
use crate::causes::with_causes;
use crate::settings::Upstream;
use crate::turn::BesideConnections;

/// Shorter than the idle timeouts of common servers and load balancers, so that a pooled connection is rarely closed
/// during a request.
const POOL_IDLE: Duration = Duration::from_secs(55);

/// The longest head of a response, in bytes.
const HEAD_LIMIT_BYTES: u32 = 32 * 1024;

/// Bytes of a response that the HTTP library may hold; a head must fit. It holds less of a body, see `link`. It
/// accepts more of a request only while it holds less than this.
pub(crate) const HTTP1_BUFFER: usize = HEAD_LIMIT_BYTES as usize;

/// The most fields of a response's head. Proxies add some to the provider's, and hundreds are a fault.
const HTTP1_FIELDS: usize = 256;

/// What an HTTP/2 upstream may send ahead of a client that does not read: as much as a socket's buffers.
const HTTP2_STREAM_WINDOW: u32 = 128 * 1024;

/// For all streams of one connection together: enough that no slow client delays the others.
const HTTP2_CONNECTION_WINDOW: u32 = 256 * HTTP2_STREAM_WINDOW;

/// A connection with streams in progress that does not answer a ping is lost, and only this shows it.
const HTTP2_PING: Duration = Duration::from_secs(30);

/// Sends requests to upstreams, each over connections of its own.
pub(crate) struct Client {
    of: BTreeMap<String, Reach>,
}

/// How one upstream is reached.
struct Reach {
    inner: legacy::Client<Connector, AnyBody>,
    connector: Connector,
}

/// Why an upstream did not respond.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpstreamError {
    /// It was unreachable, or disconnected before the head of its response.
    #[error("{0}")]
    Unreachable(String),
    /// It responded, and the response cannot be read. It had the request, and may have processed it.
    #[error("{0}")]
    Unreadable(String),
    /// It accepted the request and did not begin to respond.
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
    /// Makes a client for these upstreams. Without certificate authorities in the system, only plain HTTP works.
    pub(crate) fn new(upstreams: &[Upstream]) -> Result<Self, ClientError> {
        let system = SystemAuthorities::read(upstreams)?;
        let mut of = BTreeMap::new();
        for upstream in upstreams {
            let connector = Connector::with(upstream, &system)?;
            let inner = legacy::Client::builder(BesideConnections)
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(POOL_IDLE)
                .timer(TokioTimer::new())
                .http1_max_buf_size(HTTP1_BUFFER)
                .http1_max_headers(HTTP1_FIELDS)
                .http2_initial_stream_window_size(HTTP2_STREAM_WINDOW)
                .http2_initial_connection_window_size(HTTP2_CONNECTION_WINDOW)
                .http2_max_header_list_size(HEAD_LIMIT_BYTES)
                .http2_keep_alive_interval(HTTP2_PING)
                .build(connector.clone());
            of.insert(upstream.name.clone(), Reach { inner, connector });
        }
        Ok(Self { of })
    }

    /// Sends a request to this upstream and waits at most `first_byte` for the head of the response, whose headers
    /// are those that a client may get.
    pub(crate) async fn send(
        &self,
        upstream: &Upstream,
        mut request: Request<AnyBody>,
        first_byte: Duration,
    ) -> Result<Response<AnyBody>, UpstreamError> {
        let Some(reach) = self.of.get(&upstream.name) else {
            return Err(UpstreamError::Unreachable("it is not configured".to_owned()));
        };
        if let Some(authorization) = reach.connector.proxy_authorization() {
            request.headers_mut().insert(header::PROXY_AUTHORIZATION, authorization.clone());
        }
        let (method, connection) = (request.method().clone(), capture_connection(&mut request));
        match tokio::time::timeout(first_byte, reach.inner.request(request)).await {
            // After it come the bytes of another protocol, and no response.
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
                // The client gets a response of the gateway's, with its framing.
                match std::mem::replace(response.version_mut(), Version::HTTP_11) {
                    Version::HTTP_2 => Ok(response.map(|body| Unreset::new(body, is_refusal).boxed_unsync())),
                    _ => Ok(response.map(passing)),
                }
            }
            Ok(Err(error)) => Err(failure(&error)),
            Err(_) => Err(UpstreamError::Silent(first_byte)),
        }
    }
}

/// Checks that no reader can find another end of the response than the HTTP library does. If one could, the
/// connection is not used again.
fn check_framing(
    method: &Method,
    response: &mut Response<Incoming>,
    connection: &CaptureConnection,
) -> Result<(), UpstreamError> {
    let framing = Framing::of(method, response.status(), response.headers());
    if framing == Framing::Clear {
        return Ok(());
    }
    if let Some(connection) = connection.connection_metadata().as_ref() {
        connection.poison();
    }
    if let Framing::Coded(coding) = framing {
        return Err(UpstreamError::Unreadable(format!(
            "its body has the transfer coding `{coding}`, and only `chunked` is read here"
        )));
    }
    if response.headers_mut().remove(header::TRANSFER_ENCODING).is_some() {
        response.headers_mut().remove(header::CONTENT_LENGTH);
    }
    Ok(())
}

/// Returns what an error of the client says about the upstream. An unreadable head is still a response.
fn failure(error: &(dyn Error + 'static)) -> UpstreamError {
    let causes = || std::iter::successors(Some(error), |error| (*error).source());
    // A fault found here, not reported by the other end.
    if causes().any(|cause| cause.downcast_ref::<h2::Error>().is_some_and(h2::Error::is_library)) {
        return UpstreamError::Unreadable(format!(
            "its head is over {HEAD_LIMIT_BYTES} bytes (a fixed limit), or it is not HTTP/2: {}",
            with_causes(error)
        ));
    }
    match causes().find_map(|cause| cause.downcast_ref::<hyper::Error>().filter(|error| error.is_parse())) {
        Some(error) if error.is_parse_too_large() => UpstreamError::Unreadable(format!(
            "its head is over {HEAD_LIMIT_BYTES} bytes or {HTTP1_FIELDS} fields (a fixed limit)"
        )),
        Some(error) => UpstreamError::Unreadable(format!("it is not HTTP: {}", with_causes(error))),
        None => UpstreamError::Unreachable(with_causes(error)),
    }
}

/// Why a body was not read to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// It exceeds the limit.
    #[error("it is over {0} bytes")]
    TooLong(usize),
    /// No byte arrived for that long.
    #[error("nothing came for {0:?}")]
    Stalled(Duration),
    /// It ended well as HTTP, but within JSON.
    #[error("its JSON ends too early, after {0} bytes")]
    CutShort(usize),
    /// The sender broke off.
    #[error("it broke off: {0}")]
    Broken(BodyError),
}

/// Reads a body of at most `cap` bytes, with at most `idle` between its parts.
pub(crate) async fn read_whole<B>(body: B, cap: usize, idle: Duration) -> Result<Bytes, ReadError>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BodyError>,
{
    match read_up_to(body, cap, idle, None).await? {
        Read::Whole(bytes) => Ok(bytes),
        Read::Longer(..) | Read::NoRoom(..) => Err(ReadError::TooLong(cap)),
    }
}

/// The read part of a body that may be longer than its limit.
pub(crate) enum Read<B> {
    /// All of it.
    Whole(Bytes),
    /// Its beginning, and the body that continues from there.
    Longer(Bytes, B),
    /// The same, if there is no memory for more of it.
    NoRoom(Bytes, B),
}

/// Reads a body until it ends or exceeds `cap` bytes, with at most `idle` between its parts. The bytes are counted in
/// `holding`, if given.
pub(crate) async fn read_up_to<B>(
    mut body: B,
    cap: usize,
    idle: Duration,
    mut holding: Option<&mut Holding>,
) -> Result<Read<B>, ReadError>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BodyError>,
{
    if body.size_hint().lower() > cap as u64 {
        return Ok(Read::Longer(Bytes::new(), body));
    }
    let mut whole = Gathered::default();
    loop {
        match tokio::time::timeout(idle, body.frame()).await {
            Err(_) => return Err(ReadError::Stalled(idle)),
            Ok(None) => return Ok(Read::Whole(whole.freeze())),
            Ok(Some(Err(error))) => return Err(ReadError::Broken(error.into())),
            Ok(Some(Ok(frame))) => {
                if let Ok(data) = frame.into_data() {
                    let has_room = holding.as_mut().is_none_or(|holding| holding.grow(data.len()));
                    whole.push(data);
                    if !has_room {
                        return Ok(Read::NoRoom(whole.freeze(), body));
                    }
                    if whole.len() > cap {
                        return Ok(Read::Longer(whole.freeze(), body));
                    }
                }
            }
        }
    }
}

/// The received bytes of a body. Most arrive in one part, which is kept without a copy.
#[derive(Default)]
struct Gathered {
    /// The only part, until there is a second one.
    only: Bytes,
    parts: BytesMut,
}

impl Gathered {
    fn push(&mut self, part: Bytes) {
        if self.len() == 0 {
            self.only = part;
            return;
        }
        self.parts.extend_from_slice(&std::mem::take(&mut self.only));
        self.parts.extend_from_slice(&part);
    }

    fn len(&self) -> usize {
        self.only.len() + self.parts.len()
    }

    fn freeze(self) -> Bytes {
        if self.parts.is_empty() { self.only } else { self.parts.freeze() }
    }
}
