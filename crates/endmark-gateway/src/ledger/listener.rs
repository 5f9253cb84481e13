//! Reads the usage of a response while it is forwarded unchanged.

use bytes::Bytes;
use endmark_context::count::TextTally;
use endmark_wire::json::Value;
use endmark_wire::paths::{Service, read_usage};
use endmark_wire::reply::{Choice, Usage};
use endmark_wire::request::Request;
use endmark_wire::sse;
use endmark_wire::stream::Reader;
use http::HeaderMap;

use super::ended::finish_words;
use crate::admission::BytesReservation;
use crate::coding::{Codings, Decoder};
use crate::upstream::is_event_stream;
use crate::work::LARGE_BYTES;

/// Reads a response that needs no recovery, without delaying or changing it. If it cannot be parsed, or memory is
/// short, its tokens are estimated.
pub(crate) struct Listener {
    /// The request of the response. Without it, only the usage is read.
    request: Option<Request>,
    /// Whether the service generates no text, so that no response bytes count as output.
    has_no_output: bool,
    decoder: Option<Decoder>,
    state: ListenerState,
    holding: BytesReservation,
    /// Maximum bytes of a response that are read.
    limit: usize,
}

enum ListenerState {
    Whole(Vec<u8>),
    Stream(sse::Decoder, Box<dyn Reader>),
    /// Events that are searched for usage.
    Events(sse::Decoder, Option<Usage>),
    /// The listener no longer reads.
    Nothing,
}

/// What was read from a response.
#[derive(Debug, Default)]
pub(super) struct AnswerContent {
    pub(super) usage: Option<Usage>,
    /// Whether the response ended with its usage.
    pub(super) is_counted: bool,
    /// The service tier.
    pub(super) tier: Option<String>,
    /// Web searches that the usage does not include.
    pub(super) web_searches: u64,
    pub(super) model: Option<String>,
    /// The stop reasons of the choices.
    pub(super) finish_words: Vec<String>,
    /// The text of each choice.
    pub(super) written_tallies: Option<Vec<TextTally>>,
}

impl Listener {
    /// Creates a listener for a response to this request with these headers. It reads at most `limit` bytes.
    pub(crate) fn new(
        request: Request,
        headers: &HeaderMap,
        limit: usize,
        holding: BytesReservation,
    ) -> Self {
        let stream = |decoder| ListenerState::Stream(decoder, request.stream(limit));
        let mut listener = Self::new_with(headers, limit, holding, stream);
        listener.request = Some(request);
        listener
    }

    /// Creates a listener for the response of another service.
    pub(crate) fn for_service(
        service: Service,
        headers: &HeaderMap,
        limit: usize,
        holding: BytesReservation,
    ) -> Self {
        let events = |decoder| ListenerState::Events(decoder, None);
        let has_no_output = !service.generates();
        Self { has_no_output, ..Self::new_with(headers, limit, holding, events) }
    }

    fn new_with(
        headers: &HeaderMap,
        limit: usize,
        holding: BytesReservation,
        stream: impl FnOnce(sse::Decoder) -> ListenerState,
    ) -> Self {
        let codings = Codings::from_headers(headers).ok();
        let heard = match codings {
            None => ListenerState::Nothing,
            Some(_) if is_event_stream(headers) => stream(sse::Decoder::new(limit)),
            Some(_) => ListenerState::Whole(Vec::new()),
        };
        let decoder = codings.filter(|codings| !codings.is_empty()).map(|codings| Decoder::new(&codings));
        Self { request: None, has_no_output: false, decoder, state: heard, holding, limit }
    }

    /// Whether the response is large enough to be parsed on another thread.
    pub(super) fn is_large(&self) -> bool {
        matches!(&self.state, ListenerState::Whole(body) if body.len() >= LARGE_BYTES)
    }

    pub(super) fn read_data(&mut self, data: &[u8]) {
        if matches!(self.state, ListenerState::Nothing) {
            return;
        }
        let Some(decoder) = &mut self.decoder else { return self.hear_plain(data) };
        decoder.push(data);
        self.hear_decoded();
    }

    fn hear_decoded(&mut self) {
        while let Some(decoder) = &mut self.decoder {
            match decoder.pull() {
                Ok(plain) if plain.is_empty() => return,
                Ok(plain) => {
                    let plain: Bytes = plain;
                    self.hear_plain(&plain);
                }
                Err(_) => self.state = ListenerState::Nothing,
            }
            if matches!(self.state, ListenerState::Nothing) {
                return;
            }
        }
    }

    fn hear_plain(&mut self, data: &[u8]) {
        let has_room = data.len() <= self.limit && self.holding.grow(data.len());
        self.limit = self.limit.saturating_sub(data.len());
        let is_heard = has_room
            && match &mut self.state {
                ListenerState::Whole(bytes) => {
                    bytes.extend_from_slice(data);
                    true
                }
                ListenerState::Stream(decoder, reader) => {
                    let is_read = decoder.push(data).is_ok();
                    is_read
                        && std::iter::from_fn(|| decoder.next_frame())
                            .all(|frame| reader.read_frame(&frame).is_ok())
                }
                ListenerState::Events(decoder, usage) => {
                    let is_read = decoder.push(data).is_ok();
                    while let Some(frame) = decoder.next_frame() {
                        let data = frame.data.as_deref().unwrap_or_default();
                        *usage = Value::parse_str(data).ok().and_then(read_usage).or(usage.take());
                    }
                    is_read
                }
                ListenerState::Nothing => false,
            };
        if !is_heard {
            self.state = ListenerState::Nothing;
        }
    }

    /// Returns the parsed content. A response that is not a stream can be parsed only after it has `ended`.
    pub(super) fn finish(self, ended: bool) -> AnswerContent {
        let has_no_output = self.has_no_output;
        let report = self.finish_reading(ended);
        if has_no_output { AnswerContent { written_tallies: Some(Vec::new()), ..report } } else { report }
    }

    fn finish_reading(mut self, ended: bool) -> AnswerContent {
        if let Some(decoder) = &mut self.decoder
            && ended
        {
            decoder.end();
            self.hear_decoded();
        }
        let written = |choices: &[Choice]| choices.iter().map(|choice| choice.written).collect();
        let searches = |choices: &[Choice]| choices.iter().map(|choice| choice.web_searches).sum();
        match self.state {
            ListenerState::Stream(decoder, mut reader) => {
                if let sse::Tail::Frame(frame) = decoder.finish() {
                    // A part that cannot be parsed contributes no usage.
                    let _ = reader.read_frame(&frame);
                }
                let received = reader.received();
                AnswerContent {
                    usage: received.usage().cloned(),
                    is_counted: received.is_counted(),
                    tier: received.tier().map(str::to_owned),
                    web_searches: searches(received.choices()),
                    model: received.model().map(str::to_owned),
                    finish_words: finish_words(received.choices()),
                    written_tallies: Some(written(received.choices())),
                }
            }
            ListenerState::Events(_, usage) => {
                AnswerContent { is_counted: ended && usage.is_some(), usage, ..AnswerContent::default() }
            }
            ListenerState::Whole(body) if ended => {
                let Some(request) = &self.request else {
                    let usage = Value::parse_body(&body).ok().and_then(read_usage);
                    return AnswerContent { is_counted: usage.is_some(), usage, ..AnswerContent::default() };
                };
                request.response(&body).map_or_else(
                    |_| AnswerContent::default(),
                    |response| AnswerContent {
                        usage: response.reply().usage.clone(),
                        is_counted: true,
                        tier: response.reply().tier.clone(),
                        web_searches: searches(&response.reply().choices),
                        model: Some(response.reply().model.clone()),
                        finish_words: finish_words(&response.reply().choices),
                        written_tallies: Some(written(&response.reply().choices)),
                    },
                )
            }
            ListenerState::Whole(_) | ListenerState::Nothing => AnswerContent::default(),
        }
    }
}
