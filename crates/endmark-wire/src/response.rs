//! A non-streamed response in any format: read, and edited in place.

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::ops::Range;

use serde_json::value::RawValue;

use crate::error::ResponseError;
use crate::json::Value;
use crate::reply::{Choice, StoredItem, ToolCall, Usage};
use crate::request::Request;
use crate::wire_format::WireFormat;
use crate::writer::ReportedEnd;

/// The content of a response, in any format.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    /// The response's id.
    pub id: Option<String>,
    /// The model's name. Empty if the response names no model.
    pub model: String,
    /// The choices, in the order of the response.
    pub choices: Vec<Choice>,
    /// Token counts by the server.
    pub usage: Option<Usage>,
    /// The service tier, such as `flex`. `None` if the response names none.
    pub tier: Option<String>,
}

impl Reply {
    /// Returns the bytes of memory that its choices and calls need in addition to their texts.
    pub fn entry_bytes(&self) -> usize {
        let calls: usize = self.choices.iter().map(|choice| choice.tool_calls.len()).sum();
        self.choices.len() * size_of::<Choice>() + calls * size_of::<ToolCall>()
    }
}

/// A response as its server sent it (PC-9): its content, and the bytes themselves.
#[derive(Debug, Clone)]
pub struct Response {
    format: &'static dyn WireFormat,
    body: String,
    root: Range<usize>,
    reply: Reply,
}

impl Response {
    /// Reads the response to this request, which determines the meaning of its fields.
    pub fn parse(request: &Request, body: &[u8]) -> Result<Self, ResponseError> {
        let root = Value::parse_body(body).map_err(ResponseError::NotJson)?;
        let reply = request.format().reply(root, request.view())?;
        let (body, root) = (root.document().to_owned(), root.span());
        Ok(Self { format: request.format(), body, root, reply })
    }

    /// Returns its content.
    pub fn reply(&self) -> &Reply {
        &self.reply
    }

    /// Returns the response as its server sent it, byte for byte.
    pub fn body(&self) -> &[u8] {
        self.body.as_bytes()
    }

    /// Returns an editor that changes the response in place.
    pub fn edit(&self) -> Box<dyn ReplyEdit + '_> {
        self.format.edit(self.root())
    }

    pub(crate) fn format(&self) -> &'static dyn WireFormat {
        self.format
    }

    pub(crate) fn root(&self) -> Value<'_> {
        Value::from_checked(&self.body, self.root.clone())
    }
}

impl Response {
    /// Returns the items of a changed response that its provider stores in another form or not at all. Later
    /// requests may refer to them by id alone.
    pub fn changed_items(&self, changed: &[u8]) -> Vec<StoredItem> {
        let before: HashSet<&str> =
            self.format.stored_items(self.root()).into_iter().map(Value::raw).collect();
        let Ok(root) = Value::parse_body(changed) else { return Vec::new() };
        let items = self.format.stored_items(root).into_iter().map(Value::raw);
        items.filter(|item| !before.contains(item)).filter_map(StoredItem::parse).collect()
    }
}

/// Changes to a response. Everything else stays byte for byte. Changes to a choice or call that the response
/// lacks are ignored.
pub trait ReplyEdit: fmt::Debug + Send + Sync {
    /// Sets a choice's text.
    fn set_text(&mut self, choice: u32, text: &str);

    /// Sets the arguments of one of a choice's calls, by its [`ToolCall::index`]. If the format represents
    /// them as an object, arguments that are not an object are ignored.
    fn set_arguments(&mut self, choice: u32, call: u32, arguments: &str);

    /// Sets or removes the provider's signature of one of a choice's calls, if clients send signatures back. A
    /// signature is valid only for the call that it arrived with.
    fn sign_call(&mut self, _choice: u32, _call: u32, _signature: Option<&str>) {}

    /// Sets the provider's signature of the continued part of a choice's text, if clients send signatures
    /// back.
    fn set_signature(&mut self, _choice: u32, _signature: &str) {}

    /// Sets the client's stop sequence that ended a choice, in formats with a field for it.
    fn set_stop_sequence(&mut self, _choice: u32, _sequence: &str) {}

    /// Adds calls after the existing calls of a choice.
    fn add_calls(&mut self, choice: u32, calls: &[ToolCall]);

    /// Records which calls remain cut, before the end of their choice is set.
    ///
    /// The calls are removed if the format cannot show a cut call. In such a format arguments are an object,
    /// and an incomplete object would look complete.
    fn note_cut_calls(&mut self, _choice: u32, _calls: &BTreeSet<u32>) {}

    /// Returns whether a response in this format can show the received part of a cut call.
    fn shows_cut_calls(&self) -> bool {
        true
    }

    /// Sets how a choice ended.
    fn set_end(&mut self, choice: u32, end: ReportedEnd);

    /// Sets the response's id, if clients continue from a response by its id.
    fn set_id(&mut self, _id: &str) {}

    /// Sets the token counts. Other details of the usage stay.
    fn set_usage(&mut self, usage: &Usage);

    /// Sets the `endmark` object next to the provider's own fields.
    fn set_endmark(&mut self, endmark: &RawValue);

    /// Returns the response with its changes.
    fn finish(self: Box<Self>) -> Vec<u8>;
}
