//! The client's side of a streamed reply.

use super::error::error_body;
use super::format::word_of;
use super::template::{ChunkEdit, Template};
use crate::edit::Edits;
use crate::json::Value;
use crate::reply::{Event, ToolCall};
use crate::sse::{Frame, data_frame};
use crate::writer::{ChoiceEnd, Closing, End, Held, StreamError, Writer};

/// Writes a streamed reply.
#[derive(Debug)]
pub(super) struct ChatWriter {
    template: Option<Template>,
    fallback: Template,
    include_usage: bool,
    held: Held,
    /// The choices of which something was written that did not come.
    wrote: Vec<u32>,
    /// Those of them whose call has the legacy form.
    legacy: Vec<u32>,
}

impl ChatWriter {
    pub(super) fn new(model: &str, include_usage: bool) -> Self {
        Self {
            template: None,
            fallback: Template::new(model),
            include_usage,
            held: Held::default(),
            wrote: Vec::new(),
            legacy: Vec::new(),
        }
    }

    fn template(&self) -> &Template {
        self.template.as_ref().unwrap_or(&self.fallback)
    }

    fn note(&mut self, frame: &Frame, event: &Event) {
        if self.template.is_none() && !event.no_choices && !event.done {
            let root = frame.data.as_deref().and_then(|data| Value::parse_str(data).ok());
            self.template = root.filter(|root| root.field("choices").is_some()).map(Template::read);
        }
    }

    fn writes(&mut self, choice: u32, call: Option<&ToolCall>) {
        for (noted, holds) in
            [(&mut self.wrote, true), (&mut self.legacy, call.is_some_and(|call| call.legacy))]
        {
            if holds && !noted.contains(&choice) {
                noted.push(choice);
            }
        }
    }

    fn word(&self, choice: u32, end: End) -> &'static str {
        let is_legacy = end == End::ToolCalls && self.legacy.contains(&choice);
        if is_legacy { "function_call" } else { word_of(end) }
    }

    /// A held chunk of choices, for a client that gets other ends than its own; none where nothing of it is left.
    fn edited(&self, frame: &Frame, event: &Event, closing: &Closing<'_>) -> Option<Vec<u8>> {
        let of = event.pieces.iter().map(|delta| delta.choice);
        let of: Vec<u32> = of.chain(event.finishes.iter().map(|finish| finish.choice)).collect();
        if of.iter().all(|choice| self.wrote.contains(choice)) {
            return None;
        }
        let mut edit = ChunkEdit::new(frame.data.as_deref()?).ok()?;
        for choice in of.iter().filter(|choice| self.wrote.contains(choice)) {
            edit.take_out(*choice);
        }
        for end in closing.choices.iter().filter(|end| !self.wrote.contains(&end.choice)) {
            if !event.finishes.iter().any(|finish| finish.choice == end.choice) {
                continue;
            }
            if let Some(word) = end.end.map(|word| self.word(end.choice, word)) {
                edit.set_finish(end.choice, Some(word));
            }
            if let Some(endmark) = end.endmark {
                edit.set_endmark(endmark);
            }
        }
        if event.usage.is_some()
            && let Some(usage) = &closing.usage
        {
            edit.set_usage(usage);
        }
        Some(frame.with_data(&edit.finish()))
    }

    /// The chunk that ends a choice whose own end did not come, or says too little.
    fn end(&self, end: &ChoiceEnd<'_>, own: Option<&str>) -> Vec<u8> {
        let word = end.end.map(|word| self.word(end.choice, word)).or(own);
        word.map(|word| data_frame(&self.template().finish_chunk(end.choice, word, end.endmark)))
            .unwrap_or_default()
    }
}

impl Writer for ChatWriter {
    fn pass(&mut self, frame: &Frame, event: &Event) -> Vec<u8> {
        if event.idle {
            return frame.raw.clone();
        }
        self.note(frame, event);
        let mut bytes = self.release();
        bytes.extend_from_slice(&frame.raw);
        bytes
    }

    fn hold(&mut self, frame: Frame, event: &Event) {
        self.note(&frame, event);
        self.held.push(frame, event);
    }

    fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    fn release(&mut self) -> Vec<u8> {
        self.held.take().into_iter().flat_map(|(frame, _)| frame.raw).collect()
    }

    fn text(&mut self, choice: u32, text: &str) -> Vec<u8> {
        self.writes(choice, None);
        data_frame(&self.template().text_chunk(choice, text))
    }

    fn arguments(&mut self, choice: u32, call: &ToolCall, arguments: &str) -> Option<Vec<u8>> {
        self.writes(choice, Some(call));
        Some(data_frame(&self.template().tool_arguments_chunk(choice, call, arguments)))
    }

    fn tool_call(&mut self, choice: u32, call: &ToolCall) -> Vec<u8> {
        self.writes(choice, Some(call));
        data_frame(&self.template().tool_call_chunk(choice, call))
    }

    fn close(&mut self, closing: &Closing<'_>) -> Vec<u8> {
        if closing.choices.is_empty() && self.wrote.is_empty() {
            return self.release();
        }
        let held = self.held.take();
        let mut bytes = Vec::new();
        let mut counted = Vec::new();
        let mut done = None;
        let mut ended: Vec<u32> = Vec::new();
        for (frame, event) in &held {
            if event.done {
                done = Some(frame);
            } else if event.no_choices {
                counted.extend_from_slice(&frame.raw);
            } else if let Some(chunk) = self.edited(frame, event, closing) {
                let own = event.finishes.iter().map(|finish| finish.choice);
                ended.extend(own.filter(|choice| !self.wrote.contains(choice)));
                bytes.extend(chunk);
            }
        }
        for end in closing.choices.iter().filter(|end| !ended.contains(&end.choice)) {
            let mut finishes = held.iter().flat_map(|(_, event)| &event.finishes);
            let own = finishes.find(|finish| finish.choice == end.choice).map(|finish| finish.word.as_str());
            bytes.extend(self.end(end, own));
        }
        match &closing.usage {
            None => bytes.extend(counted),
            Some(usage) if self.include_usage => {
                bytes.extend(data_frame(&self.template().usage_chunk(usage)));
            }
            Some(_) => {}
        }
        match done {
            Some(done) => bytes.extend_from_slice(&done.raw),
            None => bytes.extend(data_frame(b"[DONE]")),
        }
        bytes
    }

    fn error(&mut self, error: &StreamError<'_>) -> Vec<u8> {
        let own = self.held.error().cloned();
        self.held.take();
        let with_endmark = |json: &str| {
            let root = Value::parse_str(json).ok()?;
            let mut edits = Edits::of(root);
            if let Some(endmark) = error.endmark {
                edits.set_field(root, "endmark", endmark.get());
            }
            Some(edits.finish())
        };
        let told = own.and_then(|frame| Some(frame.with_data(&with_endmark(frame.data.as_deref()?)?)));
        told.unwrap_or_else(|| {
            let body = error_body(error.message, error.kind, None, None);
            let json = std::str::from_utf8(&body).ok().and_then(with_endmark);
            data_frame(&json.unwrap_or(body))
        })
    }
}
