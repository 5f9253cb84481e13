//! Reads the usage of a response while it is forwarded unchanged.

use bytes::Bytes;
use endmark_context::count::TextTally;
use endmark_wire::json::Value;
use endmark_wire::paths::{Service, usage_in};
use endmark_wire::reply::{Choice, Usage};
use endmark_wire::request::Request;
use endmark_wire::sse;
use endmark_wire::stream::Reader;
use http::HeaderMap;

use super::ended::finish_words;
use crate::admission::Holding;
use crate::coding::{Codings, Decoder};
use crate::upstream::is_event_stream;
use crate::work::LARGE_BYTES;

/// Reads a response that needs no recovery, without delaying or changing it. If it cannot be read, or memory
/// is short, its tokens are estimated.
pub(crate) struct Listener {
    /// The request of the response. Without it, only the usage is read.
    request: Option<Request>,
    /// Whether the service generates no text, so that no byte of the response counts as output.
    has_no_output: bool,
    decoder: Option<Decoder>,
    heard: Heard,
    holding: Holding,
    /// Maximum bytes of a response that are read.
    limit: usize,
}

enum Heard {
    Whole(Vec<u8>),
    Stream(sse::Decoder, Box<dyn Reader>),
    /// Events that are searched for usage.
    Events(sse::Decoder, Option<Usage>),
    /// The listener no longer reads.
    Nothing,
}

/// What was read from a response.
#[derive(Debug, Default)]
pub(super) struct Said {
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
    pub(super) written: Option<Vec<TextTally>>,
}

impl Listener {
    /// Creates a listener for a response to this request with these headers. It reads at most `limit` bytes.
    pub(crate) fn new(request: Request, headers: &HeaderMap, limit: usize, holding: Holding) -> Self {
        let stream = |decoder| Heard::Stream(decoder, request.stream(limit));
        let mut listener = Self::with(headers, limit, holding, stream);
        listener.request = Some(request);
        listener
    }

    /// Creates a listener for the response of another service.
    pub(crate) fn of_service(service: Service, headers: &HeaderMap, limit: usize, holding: Holding) -> Self {
        let events = |decoder| Heard::Events(decoder, None);
        let has_no_output = !service.generates();
        Self { has_no_output, ..Self::with(headers, limit, holding, events) }
    }

    fn with(
        headers: &HeaderMap,
        limit: usize,
        holding: Holding,
        stream: impl FnOnce(sse::Decoder) -> Heard,
    ) -> Self {
        let codings = Codings::of(headers).ok();
        let heard = match codings {
            None => Heard::Nothing,
            Some(_) if is_event_stream(headers) => stream(sse::Decoder::new(limit)),
            Some(_) => Heard::Whole(Vec::new()),
        };
        let decoder = codings.filter(|codings| !codings.is_empty()).map(|codings| Decoder::new(&codings));
        Self { request: None, has_no_output: false, decoder, heard, holding, limit }
    }

    /// Whether the response is so large that it should be parsed on another thread.
    pub(super) fn is_large(&self) -> bool {
        matches!(&self.heard, Heard::Whole(body) if body.len() >= LARGE_BYTES)
    }

    pub(super) fn hear(&mut self, data: &[u8]) {
        if matches!(self.heard, Heard::Nothing) {
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
                Err(_) => self.heard = Heard::Nothing,
            }
            if matches!(self.heard, Heard::Nothing) {
                return;
            }
        }
    }

    fn hear_plain(&mut self, data: &[u8]) {
        let has_room = data.len() <= self.limit && self.holding.grow(data.len());
        self.limit = self.limit.saturating_sub(data.len());
        let is_heard = has_room
            && match &mut self.heard {
                Heard::Whole(bytes) => {
                    bytes.extend_from_slice(data);
                    true
                }
                Heard::Stream(decoder, reader) => {
                    let is_read = decoder.push(data).is_ok();
                    is_read
                        && std::iter::from_fn(|| decoder.next_frame())
                            .all(|frame| reader.frame(&frame).is_ok())
                }
                Heard::Events(decoder, usage) => {
                    let is_read = decoder.push(data).is_ok();
                    while let Some(frame) = decoder.next_frame() {
                        let data = frame.data.as_deref().unwrap_or_default();
                        *usage = Value::parse_str(data).ok().and_then(usage_in).or(usage.take());
                    }
                    is_read
                }
                Heard::Nothing => false,
            };
        if !is_heard {
            self.heard = Heard::Nothing;
        }
    }

    /// Returns what was read. A response that is not a stream can only be read once it has `ended`.
    pub(super) fn said(self, ended: bool) -> Said {
        let has_no_output = self.has_no_output;
        let said = self.heard(ended);
        if has_no_output { Said { written: Some(Vec::new()), ..said } } else { said }
    }

    fn heard(mut self, ended: bool) -> Said {
        if let Some(decoder) = &mut self.decoder
            && ended
        {
            decoder.end();
            self.hear_decoded();
        }
        let written = |choices: &[Choice]| choices.iter().map(|choice| choice.written).collect();
        let searches = |choices: &[Choice]| choices.iter().map(|choice| choice.web_searches).sum();
        match self.heard {
            Heard::Stream(decoder, mut reader) => {
                if let sse::Tail::Frame(frame) = decoder.finish() {
                    // A part that cannot be parsed contributes no usage.
                    let _ = reader.frame(&frame);
                }
                let received = reader.received();
                Said {
                    usage: received.usage().cloned(),
                    is_counted: received.is_counted(),
                    tier: received.tier().map(str::to_owned),
                    web_searches: searches(received.choices()),
                    model: received.model().map(str::to_owned),
                    finish_words: finish_words(received.choices()),
                    written: Some(written(received.choices())),
                }
            }
            Heard::Events(_, usage) => {
                Said { is_counted: ended && usage.is_some(), usage, ..Said::default() }
            }
            Heard::Whole(body) if ended => {
                let Some(request) = &self.request else {
                    let usage = Value::parse_body(&body).ok().and_then(usage_in);
                    return Said { is_counted: usage.is_some(), usage, ..Said::default() };
                };
                request.response(&body).map_or_else(
                    |_| Said::default(),
                    |response| Said {
                        usage: response.reply().usage.clone(),
                        is_counted: true,
                        tier: response.reply().tier.clone(),
                        web_searches: searches(&response.reply().choices),
                        model: Some(response.reply().model.clone()),
                        finish_words: finish_words(&response.reply().choices),
                        written: Some(written(&response.reply().choices)),
                    },
                )
            }
            Heard::Whole(_) | Heard::Nothing => Said::default(),
        }
    }
}
