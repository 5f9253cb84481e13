//! The client's side of a streamed reply.

use super::error::error_body;
use super::format::finish_reason;
use super::template::{ChunkEdit, Template};
use crate::edit::Edits;
use crate::json::Value;
use crate::reply::{ChoicePiece, Event, Piece, ToolCall, Usage};
use crate::sse::{Frame, data_frame};
use crate::writer::{ChoiceEnd, HeldFrames, ReportedEnd, StreamEnd, StreamError, Writer};

/// Writes a streamed reply.
#[derive(Debug)]
pub(super) struct ChatWriter {
    template: Option<Template>,
    fallback_template: Template,
    model: String,
    include_usage: bool,
    held: HeldFrames,
    /// The choices for which Endmark wrote content.
    written_choices: Vec<WrittenChoice>,
    /// The choices that call a function in the legacy form.
    legacy_choices: Vec<u32>,
}

/// The kinds of content that Endmark wrote for a choice.
#[derive(Debug)]
struct WrittenChoice {
    choice: u32,
    text: bool,
    calls: bool,
}

impl WrittenChoice {
    /// Returns whether the written content replaces this piece.
    fn replaces(&self, piece: &Piece) -> bool {
        match piece {
            Piece::Text(_) => self.text,
            Piece::ToolCall { .. } => self.calls,
            Piece::Reasoning(_) | Piece::Refusal(_) => false,
        }
    }
}

impl ChatWriter {
    pub(super) fn new(model: &str, include_usage: bool) -> Self {
        Self {
            template: None,
            fallback_template: Template::new(model),
            model: model.to_owned(),
            include_usage,
            held: HeldFrames::default(),
            written_choices: Vec::new(),
            legacy_choices: Vec::new(),
        }
    }

    fn template(&self) -> &Template {
        self.template.as_ref().unwrap_or(&self.fallback_template)
    }

    fn note(&mut self, frame: &Frame, event: &Event) {
        if self.template.is_none() && !event.has_no_choices && !event.is_done {
            let root = frame.data.as_deref().and_then(|data| Value::parse_str(data).ok());
            self.template = root.filter(|root| root.field("choices").is_some()).map(Template::read);
        }
        let begins = |delta: &&ChoicePiece| matches!(delta.piece, Piece::ToolCall { name: Some(_), .. });
        for delta in event.pieces.iter().filter(begins) {
            let data = frame.data.as_deref().unwrap_or_default();
            if data.contains("\"function_call\"") && !data.contains("\"tool_calls\"") {
                self.legacy_choices.push(delta.choice);
            }
        }
    }

    fn find_written_choice(&self, choice: u32) -> Option<&WrittenChoice> {
        self.written_choices.iter().find(|wrote| wrote.choice == choice)
    }

    fn written_choice(&mut self, choice: u32) -> &mut WrittenChoice {
        let known = self.written_choices.iter().position(|wrote| wrote.choice == choice);
        let position = known.unwrap_or_else(|| {
            self.written_choices.push(WrittenChoice { choice, text: false, calls: false });
            self.written_choices.len() - 1
        });
        &mut self.written_choices[position]
    }

    fn note_written_call(&mut self, choice: u32, call: &ToolCall) {
        self.written_choice(choice).calls = true;
        if call.legacy {
            self.legacy_choices.push(choice);
        }
    }

    fn reported_reason(&self, choice: u32, end: ReportedEnd) -> &'static str {
        let is_legacy = end == ReportedEnd::ToolCalls && self.legacy_choices.contains(&choice);
        if is_legacy { "function_call" } else { finish_reason(end) }
    }

    /// Returns a held chunk of choices with these ends instead of its own. Returns `None` if nothing of the
    /// chunk is left.
    fn edit_chunk(
        &self,
        frame: &Frame,
        event: &Event,
        ends: &[ChoiceEnd<'_>],
        usage: Option<&Usage>,
    ) -> Option<Vec<u8>> {
        let is_left = |choice, piece: Option<&Piece>| match (self.find_written_choice(choice), piece) {
            (None, _) => true,
            (Some(wrote), Some(piece)) => !wrote.replaces(piece),
            // The end of a continued choice is written after the written content.
            (Some(_), None) => false,
        };
        let pieces = event.pieces.iter().any(|delta| is_left(delta.choice, Some(&delta.piece)));
        if !pieces && !event.finishes.iter().any(|finish| is_left(finish.choice, None)) {
            return None;
        }
        let mut edit = ChunkEdit::new(frame.data.as_deref()?).ok()?;
        for wrote in &self.written_choices {
            edit.remove_end(wrote.choice, wrote.text, wrote.calls);
        }
        for end in ends.iter().filter(|end| self.find_written_choice(end.choice).is_none()) {
            if !event.finishes.iter().any(|finish| finish.choice == end.choice) {
                continue;
            }
            if let Some(word) = end.end {
                edit.set_finish(end.choice, Some(self.reported_reason(end.choice, word)));
            }
            if let Some(endmark) = end.endmark {
                edit.set_endmark(endmark);
            }
        }
        if let Some(usage) = usage.filter(|_| event.usage.is_some()) {
            edit.set_usage(usage);
        }
        Some(frame.with_data(&edit.finish()))
    }

    /// Returns the chunk that ends a choice whose own end is missing, or arrived before everything was
    /// written. It keeps the parts of the choice's own end that no other chunk contains.
    fn end_chunk(
        &self,
        end: &ChoiceEnd<'_>,
        finish_reason: Option<&str>,
        own: Option<&(Frame, Event)>,
        usage: Option<&Usage>,
    ) -> Vec<u8> {
        let Some(word) = end.end.map(|word| self.reported_reason(end.choice, word)).or(finish_reason) else {
            return Vec::new();
        };
        let own = own.and_then(|(frame, event)| self.reduce_to_end(frame, event, end, word, usage));
        own.unwrap_or_else(|| data_frame(&self.template().finish_chunk(end.choice, word, end.endmark)))
    }

    /// Returns a held chunk that ends this choice, reduced to that end. Returns `None` if the chunk also
    /// contains other choices.
    fn reduce_to_end(
        &self,
        frame: &Frame,
        event: &Event,
        end: &ChoiceEnd<'_>,
        word: &str,
        usage: Option<&Usage>,
    ) -> Option<Vec<u8>> {
        let data = frame.data.as_deref()?;
        let choices = Value::parse_str(data).ok()?.field("choices")?;
        if choices.items().count() != 1 {
            return None;
        }
        let mut edit = ChunkEdit::new(data).ok()?;
        edit.reduce_to_end(end.choice, word);
        if let Some(endmark) = end.endmark {
            edit.set_endmark(endmark);
        }
        match usage.filter(|_| event.usage.is_some()) {
            // A separate chunk reports the usage.
            Some(_) if self.include_usage => edit.remove_usage(),
            Some(usage) => edit.set_usage(usage),
            None => {}
        }
        Some(frame.with_data(&edit.finish()))
    }

    /// Returns the held chunks of choices, with these ends instead of their own.
    fn write_choices(
        &mut self,
        held: &[(Frame, Event)],
        ends: &[ChoiceEnd<'_>],
        usage: Option<&Usage>,
    ) -> Vec<u8> {
        for end in ends.iter().filter(|end| end.is_rewritten) {
            self.written_choice(end.choice).text = true;
        }
        let mut bytes = Vec::new();
        let mut ended: Vec<u32> = Vec::new();
        let mut unwritten = Vec::new();
        for own in held {
            let (frame, event) = own;
            if event.is_done || event.error.is_some() || event.has_no_choices {
                continue;
            }
            if let Some(chunk) = self.edit_chunk(frame, event, ends, usage) {
                let own = event.finishes.iter().map(|finish| finish.choice);
                ended.extend(own.filter(|choice| self.find_written_choice(*choice).is_none()));
                bytes.extend(chunk);
            } else {
                unwritten.push(own);
            }
        }
        for end in ends.iter().filter(|end| !ended.contains(&end.choice)) {
            let finish = |(_, event): &(Frame, Event)| {
                event
                    .finishes
                    .iter()
                    .find(|finish| finish.choice == end.choice)
                    .map(|finish| finish.reason.clone())
            };
            let finish_reason = held.iter().find_map(finish);
            let own = unwritten.iter().find(|own| finish(own).is_some()).copied();
            bytes.extend(self.end_chunk(end, finish_reason.as_deref(), own, usage));
        }
        bytes
    }
}

impl Writer for ChatWriter {
    fn pass(&mut self, frame: &Frame, event: &Event, client: &mut Vec<u8>) {
        // If the end of one choice is held back, other choices still continue.
        self.note(frame, event);
        client.extend_from_slice(&frame.raw);
    }

    fn hold(&mut self, frame: Frame, event: &Event) {
        self.note(&frame, event);
        self.held.push(frame, event);
    }

    fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    fn release(&mut self) -> Vec<u8> {
        self.held.take().into_iter().flat_map(|(frame, _)| frame.raw).collect()
    }

    fn write_text(&mut self, choice: u32, text: &str) -> Vec<u8> {
        self.written_choice(choice).text = true;
        data_frame(&self.template().text_chunk(choice, text))
    }

    fn write_arguments(&mut self, choice: u32, call: &ToolCall, arguments: &str) -> Option<Vec<u8>> {
        self.note_written_call(choice, call);
        Some(data_frame(&self.template().tool_arguments_chunk(choice, call, arguments)))
    }

    fn can_continue(&self, _choice: u32, _call: &ToolCall) -> bool {
        true
    }

    fn write_tool_call(&mut self, choice: u32, call: &ToolCall) -> Vec<u8> {
        self.note_written_call(choice, call);
        data_frame(&self.template().tool_call_chunk(choice, call))
    }

    fn set_response_id(&mut self, id: &str) {
        self.fallback_template = Template::with_id(id, &self.model);
    }

    fn close(&mut self, closing: &StreamEnd<'_>) -> Vec<u8> {
        if closing.choices.is_empty() && self.written_choices.is_empty() {
            let was_said = self.held.events().any(|event| event.is_done);
            let mut bytes = self.release();
            if closing.is_end_lost && !was_said {
                bytes.extend(data_frame(b"[DONE]"));
            }
            return bytes;
        }
        let held = self.held.take();
        let mut bytes = self.write_choices(&held, closing.choices, closing.usage.as_ref());
        // Frames that are neither part of a choice nor an end, such as counts that are not replaced.
        let is_other = |event: &Event| event.has_no_choices && !event.is_done && event.error.is_none();
        for (frame, event) in held.iter().filter(|(_, event)| is_other(event)) {
            if closing.usage.is_none() || event.usage.is_none() {
                bytes.extend_from_slice(&frame.raw);
            }
        }
        if let Some(usage) = closing.usage.as_ref().filter(|_| self.include_usage) {
            bytes.extend(data_frame(&self.template().usage_chunk(usage)));
        }
        match held.iter().find(|(_, event)| event.is_done) {
            Some((done, _)) => bytes.extend_from_slice(&done.raw),
            None => bytes.extend(data_frame(b"[DONE]")),
        }
        bytes
    }

    fn write_error(&mut self, error: &StreamError<'_>) -> Vec<u8> {
        let own = self.held.upstream_error().cloned();
        let held = self.held.take();
        let mut bytes = self.write_choices(&held, error.choices, None);
        let with_endmark = |json: &str| {
            let root = Value::parse_str(json).ok()?;
            let mut edits = Edits::for_document(root);
            if let Some(endmark) = error.endmark {
                edits.set_field(root, "endmark", endmark.get());
            }
            Some(edits.finish())
        };
        let disclosed = own.and_then(|frame| Some(frame.with_data(&with_endmark(frame.data.as_deref()?)?)));
        bytes.extend(disclosed.unwrap_or_else(|| {
            let body = error_body(error.message, error.kind, None, None);
            let json = std::str::from_utf8(&body).ok().and_then(with_endmark);
            data_frame(&json.unwrap_or(body))
        }));
        bytes
    }
}
