//! A response that is not streamed, in any format: viewed, and edited in place.

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::ops::Range;

use serde_json::value::RawValue;

use crate::error::ResponseError;
use crate::json::Value;
use crate::reply::{Choice, StoredItem, ToolCall, Usage};
use crate::request::Request;
use crate::wire_format::WireFormat;
use crate::writer::End;

/// What a response says, whatever its format.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    /// The response's id.
    pub id: Option<String>,
    /// The model's name; empty where the response names none.
    pub model: String,
    /// The choices, in the order of the response.
    pub choices: Vec<Choice>,
    /// Tokens, as the server counts them.
    pub usage: Option<Usage>,
    /// The tier that it was served in, as `flex`; `None` where the response names none.
    pub tier: Option<String>,
}

impl Reply {
    /// The bytes that its choices and calls take besides their texts.
    pub fn entry_bytes(&self) -> usize {
        let calls: usize = self.choices.iter().map(|choice| choice.tool_calls.len()).sum();
        self.choices.len() * size_of::<Choice>() + calls * size_of::<ToolCall>()
    }
}

/// A response as its server sent it (PC-9): what it says, and the bytes themselves.
#[derive(Debug, Clone)]
pub struct Response {
    format: &'static dyn WireFormat,
    body: String,
    root: Range<usize>,
    reply: Reply,
}

impl Response {
    /// Reads the response to this request, on which the meaning of its words depends.
    pub fn parse(request: &Request, body: &[u8]) -> Result<Self, ResponseError> {
        let root = Value::parse_body(body).map_err(ResponseError::NotJson)?;
        let reply = request.format().reply(root, request.view())?;
        let (body, root) = (root.document().to_owned(), root.span());
        Ok(Self { format: request.format(), body, root, reply })
    }

    /// What it says.
    pub fn reply(&self) -> &Reply {
        &self.reply
    }

    /// The response as its server sent it, byte for byte.
    pub fn body(&self) -> &[u8] {
        self.body.as_bytes()
    }

    /// Begins to change the response in place.
    pub fn edit(&self) -> Box<dyn ReplyEdit + '_> {
        self.format.edit(self.root())
    }

    pub(crate) fn format(&self) -> &'static dyn WireFormat {
        self.format
    }

    pub(crate) fn root(&self) -> Value<'_> {
        Value::checked_before(&self.body, self.root.clone())
    }
}

impl Response {
    /// The items of a changed response that its provider stored otherwise, or not at all: later requests may refer to them
    /// by id alone.
    pub fn changed_items(&self, changed: &[u8]) -> Vec<StoredItem> {
        let before: HashSet<&str> =
            self.format.stored_items(self.root()).into_iter().map(Value::raw).collect();
        let Ok(root) = Value::parse_body(changed) else { return Vec::new() };
        let items = self.format.stored_items(root).into_iter().map(Value::raw);
        items.filter(|item| !before.contains(item)).filter_map(StoredItem::whole).collect()
    }
}

/// Changes to a response. What is not changed stays byte for byte; a choice or call that the response does
/// not have is not changed.
pub trait ReplyEdit: fmt::Debug + Send + Sync {
    /// Sets a choice's text.
    fn set_text(&mut self, choice: u32, text: &str);

    /// Sets the arguments of one of a choice's calls, by its [`ToolCall::index`]. Where the format has an
    /// object for them, arguments that are none are not written.
    fn set_arguments(&mut self, choice: u32, call: u32, arguments: &str);

    /// Says what the provider signed one of a choice's calls with, where clients send that back: a signature is of no other call
    /// than it came with.
    fn sign_call(&mut self, _choice: u32, _call: u32, _signature: Option<&str>) {}

    /// Sets what the provider signed the rest of a choice's text with, where clients send that back.
    fn set_signature(&mut self, _choice: u32, _signature: &str) {}

    /// Says which of the client's stop sequences a choice ends at, in formats that have a field for it.
    fn set_stop_sequence(&mut self, _choice: u32, _sequence: &str) {}

    /// Adds calls after those the choice has.
    fn add_calls(&mut self, choice: u32, calls: &[ToolCall]);

    /// Notes which calls stay cut, before how their choice ended is set. They are taken out where the format has no way to
    /// show one: arguments are an object there, and another one than the model was about to write would be taken for the
    /// model's.
    fn leave_cut(&mut self, _choice: u32, _calls: &BTreeSet<u32>) {}

    /// Whether a call that is cut stands in a reply as far as it came.
    fn shows_cut_calls(&self) -> bool {
        true
    }

    /// Sets how a choice ended.
    fn set_end(&mut self, choice: u32, end: End);

    /// Sets the response's id, where the client goes on from one.
    fn set_id(&mut self, _id: &str) {}

    /// Sets the counts of tokens; other details of them stay.
    fn set_usage(&mut self, usage: &Usage);

    /// Sets the `endmark` object next to the provider's own fields.
    fn set_endmark(&mut self, endmark: &RawValue);

    /// The response with its changes.
    fn finish(self: Box<Self>) -> Vec<u8>;
}
