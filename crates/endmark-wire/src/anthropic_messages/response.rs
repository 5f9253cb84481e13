//! A non-streamed message: read, and edited in place.

use std::collections::BTreeSet;

use endmark_recovery::Stop;
use serde_json::value::RawValue;

use super::Messages;
use super::content::{call_blocks, is_cited, last_call_at, last_part, read_text, text_blocks};
use super::stream::MessageReader;
use super::usage::{self, UsageCounts};
use super::writer::MessageWriter;
use super::{error, stop};
use crate::edit::Edits;
use crate::error::{ProviderError, ResponseError};
use crate::json::{Kind, Value, quote};
use crate::reply::{Choice, ToolCall, Usage};
use crate::request::{Request, RequestView};
use crate::response::{Reply, ReplyEdit};
use crate::sse::event_frame;
use crate::stream::Reader;
use crate::wire_format::WireReply;
use crate::writer::{ReportedEnd, Writer};

impl WireReply for Messages {
    fn recognises(&self, root: Value<'_>) -> bool {
        root.has_text("type", "message") && root.has_text("role", "assistant")
    }

    fn reply(&self, root: Value<'_>, _request: &RequestView) -> Result<Reply, ResponseError> {
        let content = root.field("content").and_then(|content| content.as_kind(Kind::Array));
        let content = content.ok_or(ResponseError::MissingField("content"))?;
        Ok(Reply {
            id: root.non_empty_text("id"),
            model: root.non_empty_text("model").unwrap_or_default(),
            choices: vec![choice(root, content)],
            usage: root.field("usage").and_then(|usage| UsageCounts::read(usage).usage()),
            tier: root.field("usage").and_then(usage::tier),
        })
    }

    fn edit<'a>(&self, root: Value<'a>) -> Box<dyn ReplyEdit + 'a> {
        Box::new(MessageEdit::new(root))
    }

    fn reader(&self, _request: &Request, keep_bytes: usize) -> Box<dyn Reader> {
        Box::new(MessageReader::new(keep_bytes))
    }

    fn writer(&self, request: &Request, _keep_bytes: usize) -> Box<dyn Writer> {
        Box::new(MessageWriter::new(&request.view().model))
    }

    fn read_error(&self, root: Value<'_>) -> Option<ProviderError> {
        error::read(root)
    }

    fn error_body(&self, _status: u16, kind: &str, message: &str) -> Vec<u8> {
        format!("{{{}}}", error::fields(kind, message)).into_bytes()
    }

    fn error_event(&self, status: u16, kind: &str, message: &str) -> Vec<u8> {
        event_frame("error", &self.error_body(status, kind, message))
    }
}

fn choice(root: Value<'_>, content: Value<'_>) -> Choice {
    let finish = stop::read(root);
    let at_limit = finish.as_ref().is_some_and(|finish| finish.stop == Some(Stop::Limit));
    let (text, exact) = read_text(content);
    let last = content.items().last().filter(|block| block.has_text("type", "tool_use"));
    let (last_part, last_call_at) = (last_part(content), last_call_at(content));
    let mut choice = Choice { text, last_part_start: last_part, last_call_at, exact, ..Choice::new(0) };
    for (index, block) in (0..).zip(call_blocks(content)) {
        let input = block.field("input").and_then(|input| input.as_kind(Kind::Object));
        // For a cut call, a server reports an input that is not the beginning of the arguments. So treat the
        // arguments as not received.
        let is_cut = at_limit && last == Some(block);
        choice.tool_calls.push(ToolCall {
            index,
            id: block.non_empty_text("id"),
            name: block.non_empty_text("name").unwrap_or_default(),
            arguments: input.filter(|_| !is_cut).map(Value::raw).unwrap_or_default().to_owned(),
            signature: None,
            ..ToolCall::default()
        });
    }
    let is_thought =
        |block: Value<'_>| block.has_text("type", "thinking") || block.has_text("type", "redacted_thinking");
    let is_reply_content =
        |block: Value<'_>| block.has_text("type", "text") || block.has_text("type", "tool_use");
    // No request can contain this content, such as the results of a server tool, so a continuation would not
    // fit it.
    choice.has_unrequestable_part =
        !content.items().all(|block| is_reply_content(block) || is_thought(block));
    choice.has_reasoning = content.items().any(is_thought);
    let thoughts = content.items().filter_map(|block| block.non_empty_text("thinking"));
    thoughts.for_each(|text| choice.written.add(&text));
    let is_behind =
        choice.has_unrequestable_part || !choice.text.trim().is_empty() || !choice.tool_calls.is_empty();
    choice.ends_in_unshown_part =
        is_behind && content.items().last().is_some_and(|block| !is_reply_content(block));
    choice.note_written();
    choice.end(finish);
    choice
}

/// Changes to a message.
#[derive(Debug)]
pub(super) struct MessageEdit<'a> {
    edits: Edits<'a>,
}

impl<'a> MessageEdit<'a> {
    pub(super) fn new(root: Value<'a>) -> Self {
        Self { edits: Edits::for_document(root) }
    }

    fn content(&self, choice: u32) -> Option<Value<'a>> {
        let content = self.edits.original().field("content").filter(|_| choice == 0)?;
        content.as_kind(Kind::Array)
    }
}

impl ReplyEdit for MessageEdit<'_> {
    /// If the text blocks before the last one are unchanged, only the last one changes. Otherwise the first
    /// block gets the whole text. Text after a cited block gets its own block. A changed text loses its
    /// citations.
    fn set_text(&mut self, choice: u32, text: &str) {
        let Some(content) = self.content(choice) else { return };
        if text.is_empty() {
            // Remove empty blocks, because servers refuse them if a client sends the message back.
            for (position, block) in content.items().enumerate() {
                if block.has_text("type", "text") {
                    self.edits.remove_item(content, position);
                }
            }
            return;
        }
        let positions: Vec<usize> = content
            .items()
            .enumerate()
            .filter(|(_, block)| block.has_text("type", "text") && block.field("text").is_some())
            .map(|(position, _)| position)
            .collect();
        let cited = text_blocks(content).last().filter(|block| is_cited(*block));
        let blocks: Vec<Value<'_>> = text_blocks(content).filter_map(|block| block.field("text")).collect();
        let Some((last, before)) = blocks.split_last() else {
            self.edits.push_item(content, &text_block(text));
            return;
        };
        let earlier: String = before.iter().filter_map(|block| block.text()).collect();
        let held = last.text().unwrap_or_default();
        match (text.strip_prefix(earlier.as_str()), positions.last()) {
            (Some(""), Some(position)) => self.edits.remove_item(content, *position),
            (Some(own), _) => match own.strip_prefix(held.as_ref()) {
                Some("") => {}
                Some(rest) if cited.is_some() => self.edits.push_item(content, &text_block(rest)),
                Some(rest) => self.edits.append_text(*last, rest),
                None => {
                    self.edits.set_text(*last, own);
                    if let Some(block) = cited {
                        self.edits.set_field(block, "citations", "null");
                    }
                }
            },
            (None, _) => {
                for block in text_blocks(content).filter(|block| is_cited(*block)) {
                    self.edits.set_field(block, "citations", "null");
                }
                for (position, block) in blocks.iter().enumerate() {
                    self.edits.set_text(*block, if position == 0 { text } else { "" });
                }
            }
        }
    }

    fn set_arguments(&mut self, choice: u32, call: u32, arguments: &str) {
        let block = self.content(choice).and_then(|content| {
            (0..).zip(call_blocks(content)).find(|(index, _)| *index == call).map(|(_, block)| block)
        });
        if let (Some(block), Some(input)) = (block, arguments_object(arguments)) {
            self.edits.set_field(block, "input", input);
        }
    }

    fn note_cut_calls(&mut self, choice: u32, cut: &BTreeSet<u32>) {
        let Some(content) = self.content(choice) else { return };
        let calls = content.items().enumerate().filter(|(_, block)| block.has_text("type", "tool_use"));
        for (_, (position, _)) in (0..).zip(calls).filter(|(index, _)| cut.contains(index)) {
            self.edits.remove_item(content, position);
        }
    }

    fn shows_cut_calls(&self) -> bool {
        false
    }

    fn add_calls(&mut self, choice: u32, calls: &[ToolCall]) {
        let Some(content) = self.content(choice) else { return };
        for call in calls {
            if let Some(input) = arguments_object(&call.arguments) {
                let block = format!("{{{},\"input\":{input}}}", call_fields(call));
                self.edits.push_item(content, &block);
            }
        }
    }

    fn set_end(&mut self, choice: u32, end: ReportedEnd) {
        if choice == 0 {
            self.edits.set_field(self.edits.original(), "stop_reason", &quote(stop::stop_reason(end, None)));
        }
    }

    fn set_usage(&mut self, counts: &Usage) {
        let root = self.edits.original();
        usage::write(&mut self.edits, root, counts);
    }

    fn set_stop_sequence(&mut self, choice: u32, sequence: &str) {
        if choice == 0 {
            let root = self.edits.original();
            self.edits.set_field(
                root,
                "stop_reason",
                &quote(stop::stop_reason(ReportedEnd::Turn, Some(sequence))),
            );
            self.edits.set_field(root, "stop_sequence", &quote(sequence));
        }
    }

    fn set_endmark(&mut self, endmark: &RawValue) {
        self.edits.set_field(self.edits.original(), "endmark", endmark.get());
    }

    fn finish(self: Box<Self>) -> Vec<u8> {
        self.edits.finish()
    }
}

/// Returns the arguments if they are a JSON object, which is the only valid input of a call.
pub(super) fn arguments_object(arguments: &str) -> Option<&str> {
    let value = Value::parse_str(arguments).ok()?;
    (value.kind() == Kind::Object).then(|| value.raw())
}

/// Returns a block with this text.
fn text_block(text: &str) -> String {
    format!("{{\"type\":\"text\",\"text\":{}}}", quote(text))
}

/// Returns the fields of a `tool_use` block except for its input.
pub(super) fn call_fields(call: &ToolCall) -> String {
    // The tool's result must refer to an id.
    let id = call.id.clone().unwrap_or_else(|| format!("toolu_endmark_{}", call.index));
    format!("\"type\":\"tool_use\",\"id\":{},\"name\":{}", quote(&id), quote(&call.name))
}
