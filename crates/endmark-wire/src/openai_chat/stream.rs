//! A streamed reply, chunk by chunk.

use std::collections::BTreeMap;

use endmark_recovery::Ending;

use super::choice::{choice_index, message_reasoning, non_empty_text};
use super::content::{content_text, has_other_content};
use super::error::read_error_among;
use super::finish::read_finish;
use super::piece_assignment::piece_owner;
use super::tool_call::CallView;
use super::usage::{choice_usage, sum_choices, usage_among};
use super::{ChatRequest, Template};
use crate::json::{Fields, Value};
use crate::reply::{Choice, ChoicePiece, Event, EventError, Fidelity, Piece, Received, Usage};
use crate::sse::Frame;
use crate::stream::{FrameData, frame_data, parse_data};

/// Reads a stream and assembles its reply (PC-9).
///
/// It stores at most `keep_bytes` of texts, names and arguments. Beyond that limit it drops everything
/// stored, and no choice is [mendable](Choice::is_mendable). Chunks are still read.
///
/// ```
/// use endmark_wire::openai_chat::{ChatRequest, ChatStream};
/// let request = ChatRequest::parse(br#"{"messages":[],"stream":true}"#)?;
/// let mut stream = ChatStream::new(&request, 1 << 20);
/// stream.read_chunk(r#"{"id":"c1","choices":[{"index":0,"delta":{"role":"assistant","content":null}}]}"#)?;
/// stream.read_chunk(r#"{"id":"c1","choices":[{"index":0,"delta":{"content":"Hello"}}]}"#)?;
/// let chunk = stream.read_chunk(r#"{"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"length"}]}"#)?;
/// assert_eq!(chunk.finishes[0].reason, "length");
/// assert_eq!(stream.choices()[0].text, "Hello");
/// let rest = r#"{"id":"c1","choices":[{"index":0,"delta":{"content":", world"},"finish_reason":null}]}"#;
/// assert_eq!(stream.template().text_chunk(0, ", world"), rest.as_bytes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct ChatStream {
    has_stop: bool,
    received: Received,
    template: Option<Template>,
    fallback_template: Template,
    /// Whether the server sends an id and a name only at the beginning of a call, as shown by pieces without
    /// them.
    names_calls_once: bool,
    /// The counts of choices that have counts of their own.
    choice_usages: BTreeMap<u32, Usage>,
}

/// No request can ask for more choices than this. The counts of further choices are not kept.
const MAX_COUNTED_CHOICES: usize = 128;

/// Returns whether an item of `choices` contains only a role, as the first chunk of most servers does.
fn is_bare(choice: &Fields<'_>, delta: Option<&Fields<'_>>) -> bool {
    let mut fields_left = delta.into_iter().flat_map(Fields::iter);
    choice.non_empty("finish_reason").is_none()
        && fields_left.all(|field| field.has_name("role") || field.value.is_blank())
}

impl ChatStream {
    /// Creates a reader of the stream that answers this request.
    pub fn new(request: &ChatRequest, keep_bytes: usize) -> Self {
        Self::for_model(&request.model, request.has_stop, keep_bytes)
    }

    pub(super) fn for_model(model: &str, has_stop: bool, keep_bytes: usize) -> Self {
        Self {
            has_stop,
            received: Received::new(keep_bytes),
            template: None,
            fallback_template: Template::new(model),
            names_calls_once: false,
            choice_usages: BTreeMap::new(),
        }
    }

    /// Reads a frame. A comment results in an empty event.
    ///
    /// After a broken chunk, later events may lack its content. The content before it stays available, but no
    /// choice is mendable once another chunk is read.
    pub fn read_frame(&mut self, frame: &Frame) -> Result<Event, EventError> {
        let data = frame_data(frame, &mut self.received)?;
        Ok(self.read_data(data))
    }

    /// Reads the data of a frame; see [`ChatStream::read_frame`].
    pub fn read_chunk(&mut self, data: &str) -> Result<Event, EventError> {
        let data = parse_data(data, &mut self.received)?;
        Ok(self.read_data(data))
    }

    fn read_data(&mut self, data: FrameData<'_>) -> Event {
        let root = match data {
            FrameData::Nothing => return Event::idle(),
            FrameData::Done => {
                let done = Event { is_done: true, ..Event::default() };
                self.received.note_event(&done, None);
                return done;
            }
            FrameData::Object(root) => root,
        };
        // Only a few fields are read. One pass finds all of them.
        let fields = Fields::new(root);
        let error = read_error_among(root, &fields);
        let mut event = Event { has_no_choices: true, error, ..Event::default() };
        let choices = fields.get("choices");
        self.received.note_tier(fields.get("service_tier").and_then(Value::text).map(Into::into));
        let mut are_bare = true;
        let mut counted = Vec::new();
        for (position, choice) in (0..).zip(choices.into_iter().flat_map(Value::items)) {
            event.has_no_choices = false;
            let choice = Fields::new(choice);
            let index = choice_index(&choice, position);
            are_bare &= self.read_choice(&choice, index, &mut event);
            counted.extend(choice_usage(&choice).map(|usage| (index, usage)));
        }
        if !event.has_no_choices && self.template.is_none() {
            self.template = Some(Template::read(root));
            self.received.note_identity(root.non_empty_text("model"), root.non_empty_text("id"));
        }
        event.usage = usage_among(&fields).or_else(|| self.count_choices(counted));
        // A chunk without choices may contain Azure's filter results for the prompt.
        let opens = |choices: Value<'_>| if choices.is_blank() { event.usage.is_none() } else { are_bare };
        event.only_begins = event.error.is_none() && choices.is_some_and(opens);
        // llama.cpp reports the count here if the request did not ask for usage.
        let counted = fields.get("timings").and_then(|timings| timings.field("predicted_n"));
        self.received.note_event(&event, counted.and_then(Value::as_u64));
        event
    }

    /// Returns the reply received so far.
    pub fn received(&self) -> &Received {
        &self.received
    }

    /// Returns the choices, in the order in which they began.
    pub fn choices(&self) -> &[Choice] {
        self.received.choices()
    }

    /// Returns the choice with this number, if any part of it arrived.
    pub fn choice_at(&self, index: u32) -> Option<&Choice> {
        self.received.choice_at(index)
    }

    /// Returns the model that the reply names, or `None` if the chunks name none.
    pub fn model(&self) -> Option<&str> {
        self.received.model()
    }

    /// Returns the tokens of the whole reply, or `None` before they are counted.
    pub fn usage(&self) -> Option<&Usage> {
        self.received.usage()
    }

    /// Returns the number of generated tokens; see [`Received::output_tokens`].
    pub fn output_tokens(&self) -> Option<u64> {
        self.received.output_tokens()
    }

    /// Returns how a choice ended if the stream's bytes end here; see [`Received::ending`].
    pub fn ending(&self, choice: u32) -> Ending {
        self.received.ending(choice)
    }

    /// Returns whether the stream's own end arrived.
    pub fn is_done(&self) -> bool {
        self.received.is_done()
    }

    /// Returns the common fields of this stream's chunks, from which further chunks can be built.
    pub fn template(&self) -> &Template {
        self.template.as_ref().unwrap_or(&self.fallback_template)
    }

    /// Replaces the counts of these choices. Returns the counts of the whole reply.
    fn count_choices(&mut self, counted: Vec<(u32, Usage)>) -> Option<Usage> {
        if counted.is_empty() {
            return None;
        }
        for (index, usage) in counted {
            if self.choice_usages.len() < MAX_COUNTED_CHOICES || self.choice_usages.contains_key(&index) {
                self.choice_usages.insert(index, usage);
            }
        }
        sum_choices(self.choice_usages.values())
    }

    /// Reads an item of `choices`. Returns whether it only contains a role.
    fn read_choice(&mut self, value: &Fields<'_>, index: u32, event: &mut Event) -> bool {
        let mut fidelity = Fidelity::Exact;
        let delta = value.get("delta").map(Fields::new);
        if let Some(delta) = &delta {
            let ends = value.non_empty("finish_reason").is_some();
            self.read_pieces(delta, index, ends, &mut fidelity, &mut event.pieces);
            // No request can contain audio of the assistant.
            fidelity = fidelity.max(Fidelity::partial_if(delta.non_empty("audio").is_some()));
            if has_other_content(delta) {
                self.note_unrequestable(index);
            }
        } else {
            self.received.add_pieces(index, &[], false);
        }
        let refused = self.choice_at(index).is_some_and(|choice| choice.is_refused);
        // Ignore the finish reason next to an error: `"error": {…}, "choices": [{"finish_reason": "error"}]`.
        let finish = read_finish(value, index, self.has_stop, refused).filter(|_| event.error.is_none());
        event.finishes.extend(finish.clone());
        self.received.end(index, finish, fidelity);
        is_bare(value, delta.as_ref())
    }

    /// Records a part that only the server can produce. Its position in the text is unknown, so the received
    /// text is still judged.
    fn note_unrequestable(&mut self, choice: u32) {
        if self.choice_at(choice).is_some_and(|choice| !choice.text.trim().is_empty()) {
            self.received.note_extra_content(choice);
        } else {
            self.received.note_unrequestable(choice);
        }
    }

    /// Reads a delta. Content of several kinds is read in the order in which models write it.
    fn read_pieces(
        &mut self,
        delta: &Fields<'_>,
        choice: u32,
        ends: bool,
        fidelity: &mut Fidelity,
        pieces: &mut Vec<ChoicePiece>,
    ) {
        let before = pieces.len();
        let mut push = |piece| pieces.push(ChoicePiece { choice, piece });
        if let Some(reasoning) = message_reasoning(delta) {
            push(Piece::Reasoning(reasoning));
        }
        let content = delta.get("content").and_then(|content| {
            let piece = self.received.decode(choice, None, content);
            piece.map_or_else(|| content_text(content), |piece| Some(piece.into()))
        });
        if let Some(content) = content {
            *fidelity = (*fidelity).max(Fidelity::from_exactness(content.is_exact));
            if !content.text.is_empty() {
                push(Piece::Text(content.text));
            }
        }
        if let Some(refusal) = non_empty_text(delta, "refusal") {
            push(Piece::Refusal(refusal));
        }
        self.received.add_pieces(choice, pieces.get(before..).unwrap_or_default(), false);
        for call in CallView::message_calls(delta) {
            if call.is_readable {
                pieces.push(self.read_call(&call, choice, ends, fidelity));
            } else {
                self.received.note_unrequestable(choice);
            }
        }
    }

    /// Reads a piece of a call. Another piece in the same delta may begin the next call.
    fn read_call(
        &mut self,
        call: &CallView<'_>,
        choice: u32,
        ends: bool,
        fidelity: &mut Fidelity,
    ) -> ChoicePiece {
        let owner = piece_owner(call, choice, &self.received, ends, self.names_calls_once);
        let index = owner.call;
        self.names_calls_once |= call.index.is_some() && call.id.is_none() && call.name.is_none();
        let piece = call.arguments.and_then(|piece| self.received.decode(choice, Some(index), piece));
        let piece = piece.map(|piece| (piece.text.into_owned(), piece.exact));
        let (arguments, exact) = piece.unwrap_or_else(|| call.arguments_text());
        *fidelity = (*fidelity).max(Fidelity::from_exactness(exact));
        let piece = Piece::ToolCall { index, id: call.id.clone(), name: call.name.clone(), arguments };
        let delta = ChoicePiece { choice, piece };
        self.received.add_pieces(choice, std::slice::from_ref(&delta), call.legacy);
        if owner.is_uncertain {
            // If it is uncertain which call a piece belongs to, the choice cannot be continued.
            self.received.note_extra_content(choice);
        }
        if call.free_text {
            self.received.note_free_text(choice, index);
        }
        if let Some(place) = owner.begins_at {
            self.received.note_piece_key(choice, index, place);
        }
        delta
    }
}

#[cfg(test)]
mod tests;
