//! Relays a stream from its upstream to its client, as a gateway does.

use std::path::{Path, PathBuf};

use endmark_wire::format::{WireFormat, find_by_name};
use endmark_wire::reply::Event;
use endmark_wire::request::{Address, Request};
use endmark_wire::sse::{Decoder, Frame, Tail};
use endmark_wire::stream::Reader;
use endmark_wire::writer::Writer;

pub(crate) const KEEP_BYTES: usize = 1 << 20;

/// Returns a streaming request in this format.
pub(crate) fn request(format: &'static dyn WireFormat) -> Request {
    let body = r#"{"model":"m","max_tokens":9,"stream":true,"stream_options":{"include_usage":true},"messages":[],"input":"x","contents":[]}"#;
    let address = Address { model: Some("m".to_owned()), stream: Some(true), ..Address::default() };
    Request::parse(format, body.as_bytes(), &address).unwrap()
}

/// Returns the frames of a stream that arrived in these pieces, and the tail.
pub(crate) fn frames(pieces: &[&[u8]]) -> (Vec<Frame>, Tail) {
    let mut decoder = Decoder::new(KEEP_BYTES);
    let mut frames = Vec::new();
    for piece in pieces {
        decoder.push(piece).unwrap();
        frames.extend(std::iter::from_fn(|| decoder.next_frame()));
    }
    (frames, decoder.finish())
}

/// A stream that was relayed up to its end or its cut.
pub(crate) struct RelayResult {
    pub(crate) reader: Box<dyn Reader>,
    pub(crate) writer: Box<dyn Writer>,
    /// The bytes that the client received.
    pub(crate) sent: Vec<u8>,
    /// The held bytes, as received.
    pub(crate) held: Vec<u8>,
    /// The bytes that arrived after the stream's own end.
    pub(crate) after_end: Vec<u8>,
    /// Whether an unreadable event ended the stream.
    pub(crate) is_broken: bool,
}

/// Returns whether an event may be the end of an incomplete reply.
pub(crate) fn is_held(event: &Event, holds: bool) -> bool {
    let counts = event.usage.is_some() && event.pieces.is_empty();
    let ends = !event.finishes.is_empty() || event.is_done || event.error.is_some();
    event.completes_part || ends || (holds && counts && !event.is_idle)
}

/// Relays a stream, and holds back all events that may end it.
pub(crate) fn relay(request: &Request, bytes: &[u8]) -> RelayResult {
    let mut relayed = RelayResult {
        reader: request.stream(KEEP_BYTES),
        writer: request.writer(KEEP_BYTES),
        sent: Vec::new(),
        held: Vec::new(),
        after_end: Vec::new(),
        is_broken: false,
    };
    let mut is_over = false;
    for frame in frames(&[bytes]).0 {
        if is_over {
            relayed.after_end.extend_from_slice(&frame.raw);
            continue;
        }
        let Ok(event) = relayed.reader.read_frame(&frame) else {
            relayed.is_broken = true;
            break;
        };
        is_over = event.is_done || event.error.is_some();
        if is_held(&event, relayed.writer.is_holding()) {
            relayed.held.extend_from_slice(&frame.raw);
            relayed.writer.hold(frame, &event);
        } else {
            relayed.writer.pass(&frame, &event, &mut relayed.sent);
            if !relayed.writer.is_holding() {
                relayed.held.clear();
            }
        }
    }
    relayed
}

/// Returns the cases of a format with this file extension, in order.
pub(crate) fn cases(format: &str, kind: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(format);
    let mut cases: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.retain(|path| path.to_string_lossy().ends_with(kind));
    cases.sort();
    assert!(cases.len() >= 3, "the cases of kind {kind} are gone");
    cases
}

pub(crate) fn format(name: &str) -> &'static dyn WireFormat {
    find_by_name(name).unwrap()
}

/// Returns one case of a format.
pub(crate) fn case(format: &str, name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(format).join(name)
}
