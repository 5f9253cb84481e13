//! Cuts a reply as if it had reached its token limit. This works for all formats.

use endmark_wire::format::WireFormat;
use endmark_wire::reply::Choice;
use endmark_wire::request::{Address, Request};
use endmark_wire::sse::Frame;
use endmark_wire::stream::Reader;
use endmark_wire::writer::{ChoiceEnd, ReportedEnd, StreamEnd, Writer};

/// Maximum bytes of a stream that are read in order to cut it.
const MAX_STREAM_BYTES: usize = 1024 * 1024;

/// Returns a minimal request in this format.
fn minimal_request(format: &'static dyn WireFormat) -> Option<Request> {
    let body = br#"{"model":"","stream":true,"messages":[],"input":[],"contents":[]}"#;
    let address = Address { model: Some(String::new()), stream: Some(true), ..Address::default() };
    Request::parse(format, body, &address).ok()
}

/// Cuts a stream at a limit.
pub(super) struct LimitCut {
    reader: Box<dyn Reader>,
    writer: Box<dyn Writer>,
}

impl LimitCut {
    pub(super) fn new(format: &'static dyn WireFormat) -> Option<Self> {
        let request = minimal_request(format)?;
        Some(Self { reader: request.stream(MAX_STREAM_BYTES), writer: request.writer(MAX_STREAM_BYTES) })
    }

    /// Processes an event. If the cut `is_due` and the reply has content, returns an end of the stream that
    /// replaces the event. A reply that reaches its own end stays whole, whatever its stop reason is.
    pub(super) fn apply(&mut self, frame: &Frame, is_due: bool) -> Option<Vec<u8>> {
        let event = self.reader.read_frame(frame).ok()?;
        if is_due && !event.pieces.is_empty() && event.finishes.is_empty() {
            let ends: Vec<ChoiceEnd<'_>> = self.reader.received().choices().iter().map(cut_end).collect();
            return Some(self.writer.close(&StreamEnd { choices: &ends, ..StreamEnd::default() }));
        }
        self.writer.pass(frame, &event, &mut Vec::new());
        None
    }
}

fn cut_end(choice: &Choice) -> ChoiceEnd<'static> {
    ChoiceEnd { choice: choice.index, end: Some(ReportedEnd::Cut), endmark: None, is_rewritten: false }
}

/// Returns a reply in which each text and each arguments string is cut after this many bytes. Returns `None` if the
/// reply is not longer.
pub(super) fn cut_reply(format: &'static dyn WireFormat, at: usize, body: &[u8]) -> Option<Vec<u8>> {
    let response = minimal_request(format)?.response(body).ok()?;
    let mut edit = response.edit();
    let mut has_changed = false;
    for choice in &response.reply().choices {
        let text = prefix(&choice.text, at);
        let mut was_cut = text.is_some();
        if let Some(text) = text {
            edit.set_text(choice.index, text);
        }
        for call in &choice.tool_calls {
            let Some(arguments) = prefix(&call.arguments, at) else { continue };
            was_cut = true;
            // In a format whose arguments are an object, servers drop truncated arguments. Imitate that.
            edit.set_arguments(choice.index, call.index, "{}");
            edit.set_arguments(choice.index, call.index, arguments);
        }
        if was_cut {
            edit.set_end(choice.index, ReportedEnd::Cut);
            has_changed = true;
        }
    }
    has_changed.then(|| edit.finish())
}

/// Returns the beginning of a text, or `None` if the text is not longer.
fn prefix(text: &str, at: usize) -> Option<&str> {
    let end = text.floor_char_boundary(at);
    text.get(..end).filter(|beginning| beginning.len() < text.len())
}
