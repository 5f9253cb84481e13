//! Endmark's own tool, which is offered to the model next to the client's tools. Endmark answers its calls before the
//! client sees them (CX-5).

use endmark_context::conversation::Content;

use crate::edit::Edits;
use crate::json::{Kind, Value};
use crate::reply::Received;
use crate::request::Request;
use crate::response::Response;
use crate::wire_format::WireFormat;

/// A tool that every format can describe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnTool<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it does.
    pub description: &'a str,
    /// The JSON Schema of its arguments, with only the keywords that all providers accept.
    pub schema: &'a str,
}

/// A turn of the model, as the items of a conversation, with its calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    items: Vec<String>,
    calls: Vec<ModelCall>,
}

/// A call in a turn of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelCall {
    /// The function's name.
    pub name: String,
    /// Its arguments as received. They are JSON only if they are complete.
    pub arguments: String,
    /// Whether its result can be a text.
    pub can_be_answered: bool,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallAnswer {
    /// The text for the model.
    pub text: String,
    /// Whether the text states why there is no result.
    pub is_error: bool,
}

impl Request {
    /// Returns the request with one more tool after the client's own. Everything else stays byte for byte.
    ///
    /// Returns `None` if the request offers no functions or already has a tool of this name. Also returns
    /// `None` if it asks for several choices, because their conversations would diverge.
    ///
    /// ```
    /// use endmark_wire::format::find;
    /// use endmark_wire::own_tool::OwnTool;
    /// use endmark_wire::request::Request;
    /// let found = find("/v1/messages", None).unwrap();
    /// let body = br#"{"max_tokens":9,"tools":[{"name":"ls","input_schema":{}}],"messages":[]}"#;
    /// let request = Request::parse(found.format, body, &found.address)?;
    /// let tool = OwnTool { name: "more", description: "Reads on.", schema: "{}" };
    /// let offering = request.with_tool(&tool).unwrap();
    /// assert_eq!(offering.tools().last().unwrap().name, "more");
    /// assert!(offering.with_tool(&tool).is_none());
    /// assert_eq!(offering.without_tool(&tool).body(), body);
    /// # Ok::<(), endmark_wire::error::RequestError>(())
    /// ```
    #[must_use]
    pub fn with_tool(&self, tool: &OwnTool<'_>) -> Option<Self> {
        if !self.may_offer(tool) {
            return None;
        }
        let list = self.format().function_list(self.root())?;
        let mut edits = Edits::for_document(self.root());
        edits.push_item(list, &self.format().tool_json(tool));
        Self::parse(self.format(), &edits.finish(), self.address()).ok()
    }

    /// Returns whether the tool can be offered next to the client's own.
    pub fn may_offer(&self, tool: &OwnTool<'_>) -> bool {
        let tools = self.tools();
        self.view().choices <= 1 && !tools.is_empty() && tools.iter().all(|own| own.name != tool.name)
    }

    /// Returns the request without the offered tool. A request that does not offer it is unchanged.
    #[must_use]
    pub fn without_tool(&self, tool: &OwnTool<'_>) -> Self {
        let written = self.format().tool_json(tool);
        let list = self.format().function_list(self.root());
        let is_it = |item: &Value<'_>| item.raw() == written;
        let at = list.and_then(|list| Some((list, list.items().position(|item| is_it(&item))?)));
        let Some((list, position)) = at else { return self.clone() };
        let mut edits = Edits::for_document(self.root());
        edits.remove_item(list, position);
        // Removing a tool cannot make the request invalid.
        Self::parse(self.format(), &edits.finish(), self.address()).unwrap_or_else(|_| self.clone())
    }

    /// Returns the model's turn in a stream, from the data of its events and the received reply; see
    /// [`Response::turn`].
    pub fn stream_turn(&self, events: &[String], received: &Received) -> Option<Turn> {
        let events: Vec<Value<'_>> = events.iter().filter_map(|data| Value::parse_str(data).ok()).collect();
        let choice = received.choices().first()?;
        Turn::from_items(self.format(), self.format().stream_items(&events, choice))
    }

    /// Returns the request that follows this turn of the model, with an answer to each of its calls. Returns
    /// `None` if the conversation is not a list, or an answer is missing.
    #[must_use]
    pub fn continue_turn(&self, turn: &Turn, answers: &[CallAnswer]) -> Option<Self> {
        let format = self.format();
        let list = self.root().field(format.facts().conversation_field);
        let list = list.filter(|list| list.kind() == Kind::Array)?;
        if turn.calls.len() != answers.len() {
            return None;
        }
        let mut edits = Edits::for_document(self.root());
        let (mut answers, mut results) = (answers.iter(), Vec::new());
        for item in &turn.items {
            edits.push_item(list, item);
            for call in item_calls(format, Value::parse_str(item).ok()?)? {
                let answer = answers.next()?;
                results.push(format.result(call.value, &answer.text, answer.is_error));
            }
        }
        for item in format.result_turns(results) {
            edits.push_item(list, &item);
        }
        let next = Self::parse(format, &edits.finish(), self.address()).ok()?;
        // Servers reject a call with cut arguments.
        Some(next.with_repaired_calls().map_or(next, |(repaired, _)| repaired))
    }
}

impl Response {
    /// Returns the model's turn in the form in which the next request contains it, or `None` if the response
    /// is empty.
    ///
    /// ```
    /// use endmark_wire::format::find;
    /// use endmark_wire::own_tool::CallAnswer;
    /// use endmark_wire::request::Request;
    /// let found = find("/v1/messages", None).unwrap();
    /// let request = Request::parse(found.format, br#"{"messages":[]}"#, &found.address)?;
    /// let said = br#"{"type":"message","role":"assistant","content":[{"type":"tool_use","id":"t","name":"more","input":{"page":2}}]}"#;
    /// let turn = request.response(said)?.turn().unwrap();
    /// assert_eq!((turn.calls()[0].name.as_str(), turn.calls()[0].arguments.as_str()), ("more", r#"{"page":2}"#));
    /// let next = request.continue_turn(&turn, &[CallAnswer { text: "The rest.".to_owned(), is_error: false }]).unwrap();
    /// assert!(String::from_utf8_lossy(next.body()).ends_with(
    ///     r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"The rest."}]}]}"#
    /// ));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn turn(&self) -> Option<Turn> {
        Turn::from_items(self.format(), self.format().response_items(self.root()))
    }
}

impl Turn {
    fn from_items(format: &dyn WireFormat, items: Vec<String>) -> Option<Self> {
        let mut calls = Vec::new();
        for item in &items {
            calls.extend(
                item_calls(format, Value::parse_str(item).ok()?)?.into_iter().map(|call| call.model_call),
            );
        }
        (!items.is_empty()).then_some(Self { items, calls })
    }

    /// Returns the calls of this turn, in the order of their answers.
    pub fn calls(&self) -> &[ModelCall] {
        &self.calls
    }
}

struct ItemCall<'a> {
    value: Value<'a>,
    model_call: ModelCall,
}

/// Returns the calls in an item, or `None` if the item is not a turn of a conversation.
fn item_calls<'a>(format: &dyn WireFormat, item: Value<'a>) -> Option<Vec<ItemCall<'a>>> {
    let (_, parts) = format.turn(item).ok()?;
    let calls = parts.into_iter().filter_map(|part| {
        let Content::Call(call) = part.content else { return None };
        let model_call = ModelCall {
            name: call.name.into_owned(),
            arguments: call.arguments.into_owned(),
            can_be_answered: call.can_be_answered,
        };
        Some(ItemCall { value: part.value, model_call })
    });
    Some(calls.collect())
}
