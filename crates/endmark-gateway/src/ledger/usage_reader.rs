//! Reads the usage of a response while it is forwarded unchanged.

use bytes::Bytes;
use endmark_context::count::TextTally;
use endmark_wire::json::Value;
use endmark_wire::paths::{TokenService, read_usage};
use endmark_wire::reply::{Choice, Usage};
use endmark_wire::request::Request;
use endmark_wire::sse;
use endmark_wire::stream::Reader;
use http::HeaderMap;

use super::endings::finish_reasons;
use crate::admission::BytesReservation;
use crate::coding::{Codings, Decoder};
use crate::upstream::is_event_stream;
use crate::work::LARGE_BYTES;

/// Reads a response that needs no recovery, without delaying or changing it. If it cannot be parsed, or memory is
/// short, its tokens are estimated.
pub(crate) struct UsageReader {
    /// The request that the response answers. Without it, only the usage is read.
    request: Option<Request>,
    /// Whether the service generates no text. In that case, no response bytes count as output.
    has_no_output: bool,
    decoder: Option<Decoder>,
    state: UsageReaderState,
    memory: BytesReservation,
    /// Maximum bytes of a response that are read.
    limit: usize,
}

enum UsageReaderState {
    Whole(Vec<u8>),
    Stream(sse::Decoder, Box<dyn Reader>),
    /// Events that are searched for usage.
    Events(sse::Decoder, Option<Usage>),
    /// The reader has stopped, because the response is invalid or too large.
    Stopped,
}

/// What was read from a response.
#[derive(Debug, Default)]
pub(super) struct ResponseContent {
    pub(super) usage: Option<Usage>,
    /// Whether the response ended with its usage.
    pub(super) is_counted: bool,
    /// The service tier.
    pub(super) tier: Option<String>,
    /// Web searches that the usage does not include.
    pub(super) web_searches: u64,
    pub(super) model: Option<String>,
    /// The stop reasons of the choices.
    pub(super) finish_reasons: Vec<String>,
    /// The text of each choice.
    pub(super) written_tallies: Option<Vec<TextTally>>,
}

impl UsageReader {
    /// Creates a reader for a response to this request with these headers. It reads at most `limit` bytes.
    pub(crate) fn new(
        request: Request,
        headers: &HeaderMap,
        limit: usize,
        holding: BytesReservation,
    ) -> Self {
        let stream = |decoder| UsageReaderState::Stream(decoder, request.stream(limit));
        let mut usage_reader = Self::new_with(headers, limit, holding, stream);
        usage_reader.request = Some(request);
        usage_reader
    }

    /// Creates a reader for the response of another service.
    pub(crate) fn for_service(
        service: TokenService,
        headers: &HeaderMap,
        limit: usize,
        holding: BytesReservation,
    ) -> Self {
        let events = |decoder| UsageReaderState::Events(decoder, None);
        let has_no_output = !service.generates_output();
        Self { has_no_output, ..Self::new_with(headers, limit, holding, events) }
    }

    fn new_with(
        headers: &HeaderMap,
        limit: usize,
        holding: BytesReservation,
        stream: impl FnOnce(sse::Decoder) -> UsageReaderState,
    ) -> Self {
        let codings = Codings::from_headers(headers).ok();
        let state = match codings {
            None => UsageReaderState::Stopped,
            Some(_) if is_event_stream(headers) => stream(sse::Decoder::new(limit)),
            Some(_) => UsageReaderState::Whole(Vec::new()),
        };
        let decoder = codings.filter(|codings| !codings.is_empty()).map(|codings| Decoder::new(&codings));
        Self { request: None, has_no_output: false, decoder, state, memory: holding, limit }
    }

    /// Whether the response is large enough to be parsed on another thread.
    pub(super) fn is_large(&self) -> bool {
        matches!(&self.state, UsageReaderState::Whole(body) if body.len() >= LARGE_BYTES)
    }

    pub(super) fn read_data(&mut self, data: &[u8]) {
        if matches!(self.state, UsageReaderState::Stopped) {
            return;
        }
        let Some(decoder) = &mut self.decoder else { return self.read_plain(data) };
        decoder.push(data);
        self.read_decoded();
    }

    fn read_decoded(&mut self) {
        while let Some(decoder) = &mut self.decoder {
            match decoder.pull() {
                Ok(plain) if plain.is_empty() => return,
                Ok(plain) => {
                    let plain: Bytes = plain;
                    self.read_plain(&plain);
                }
                Err(_) => self.state = UsageReaderState::Stopped,
            }
            if matches!(self.state, UsageReaderState::Stopped) {
                return;
            }
        }
    }

    fn read_plain(&mut self, data: &[u8]) {
        let has_room = data.len() <= self.limit && self.memory.grow(data.len());
        self.limit = self.limit.saturating_sub(data.len());
        let was_read = has_room
            && match &mut self.state {
                UsageReaderState::Whole(bytes) => {
                    bytes.extend_from_slice(data);
                    true
                }
                UsageReaderState::Stream(decoder, reader) => {
                    let is_read = decoder.push(data).is_ok();
                    is_read
                        && std::iter::from_fn(|| decoder.next_frame())
                            .all(|frame| reader.read_frame(&frame).is_ok())
                }
                UsageReaderState::Events(decoder, usage) => {
                    let is_read = decoder.push(data).is_ok();
                    while let Some(frame) = decoder.next_frame() {
                        let data = frame.data.as_deref().unwrap_or_default();
                        *usage = Value::parse_str(data).ok().and_then(read_usage).or(usage.take());
                    }
                    is_read
                }
                UsageReaderState::Stopped => false,
            };
        if !was_read {
            self.state = UsageReaderState::Stopped;
        }
    }

    /// Returns the parsed content. A response that is not a stream can be parsed only after it has `ended`.
    pub(super) fn finish(self, ended: bool) -> ResponseContent {
        let has_no_output = self.has_no_output;
        let report = self.finish_reading(ended);
        if has_no_output { ResponseContent { written_tallies: Some(Vec::new()), ..report } } else { report }
    }

    fn finish_reading(mut self, ended: bool) -> ResponseContent {
        if let Some(decoder) = &mut self.decoder
            && ended
        {
            decoder.end();
            self.read_decoded();
        }
        let written = |choices: &[Choice]| choices.iter().map(|choice| choice.written).collect();
        let searches = |choices: &[Choice]| choices.iter().map(|choice| choice.web_searches).sum();
        match self.state {
            UsageReaderState::Stream(decoder, mut reader) => {
                if let sse::Tail::Frame(frame) = decoder.finish() {
                    // A part that cannot be parsed contributes no usage.
                    let _ = reader.read_frame(&frame);
                }
                let received = reader.received();
                ResponseContent {
                    usage: received.usage().cloned(),
                    is_counted: received.is_counted(),
                    tier: received.tier().map(str::to_owned),
                    web_searches: searches(received.choices()),
                    model: received.model().map(str::to_owned),
                    finish_reasons: finish_reasons(received.choices()),
                    written_tallies: Some(written(received.choices())),
                }
            }
            UsageReaderState::Events(_, usage) => {
                ResponseContent { is_counted: ended && usage.is_some(), usage, ..ResponseContent::default() }
            }
            UsageReaderState::Whole(body) if ended => {
                let Some(request) = &self.request else {
                    let usage = Value::parse_body(&body).ok().and_then(read_usage);
                    return ResponseContent {
                        is_counted: usage.is_some(),
                        usage,
                        ..ResponseContent::default()
                    };
                };
                request.response(&body).map_or_else(
                    |_| ResponseContent::default(),
                    |response| ResponseContent {
                        usage: response.reply().usage.clone(),
                        is_counted: true,
                        tier: response.reply().tier.clone(),
                        web_searches: searches(&response.reply().choices),
                        model: Some(response.reply().model.clone()),
                        finish_reasons: finish_reasons(&response.reply().choices),
                        written_tallies: Some(written(&response.reply().choices)),
                    },
                )
            }
            UsageReaderState::Whole(_) | UsageReaderState::Stopped => ResponseContent::default(),
        }
    }
}
