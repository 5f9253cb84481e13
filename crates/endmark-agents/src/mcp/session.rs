//! Tracks the messages between an MCP client and its server, and finds those that Endmark handles.
//!
//! Each message is one line of JSON-RPC. Requests are recognised by their method, and responses by the id of
//! their request. This module does not change messages.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use jsonschema::Validator;

use endmark_wire::json::{Kind, Value};

use super::read_tool;

/// The client's open requests, the schemas of tools, and whether the client knows the read tool.
#[derive(Debug, Default)]
pub(super) struct McpSession {
    /// Open requests by the value of their id. A server may write the same id in another way.
    open_requests: HashMap<RequestId, OpenRequest>,
    /// Schemas that tools declare for their structured results, by tool name.
    schemas: HashMap<String, Arc<Validator>>,
    offers_read_tool: bool,
}

/// The id of a request, compared by value: 3, 3.0 and 3e0 are the same number, and "a" and "\u0061" the same
/// string.
#[derive(Debug, PartialEq, Eq, Hash)]
enum RequestId {
    /// Digits without leading and trailing zeros, and an exponent of ten.
    Number {
        is_negative: bool,
        digits: String,
        exponent: i64,
    },
    Text(String),
    Null,
}

impl RequestId {
    /// Parses an id. Returns `None` if the value cannot be an id.
    fn parse(value: Value<'_>) -> Option<Self> {
        match value.kind() {
            Kind::Number => Self::number(value.raw()),
            Kind::String => value.text().map(|text| Self::Text(text.into_owned())),
            Kind::Null => Some(Self::Null),
            _ => None,
        }
    }

    fn number(raw: &str) -> Option<Self> {
        let (mantissa, exponent) = raw.split_once(['e', 'E']).unwrap_or((raw, "0"));
        let mut exponent: i64 = exponent.parse().ok()?;
        let digits = mantissa.strip_prefix('-').unwrap_or(mantissa);
        let fraction = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        let digits = digits.replace('.', "");
        let significant = digits.trim_end_matches('0');
        exponent = exponent.checked_sub(i64::try_from(fraction).ok()?)?;
        exponent = exponent.checked_add(i64::try_from(digits.len() - significant.len()).ok()?)?;
        let digits = significant.trim_start_matches('0').to_owned();
        if digits.is_empty() {
            return Some(Self::Number { is_negative: false, digits, exponent: 0 });
        }
        Some(Self::Number { is_negative: mantissa.starts_with('-'), digits, exponent })
    }
}

/// A request that has no response yet.
#[derive(Debug)]
pub(super) struct OpenRequest {
    /// The id as the client wrote it.
    pub(super) id: String,
    /// Whether the request is for a page of the tool list.
    pub(super) is_for_tools: bool,
    /// The name of the called tool. `None` for other requests.
    pub(super) tool: Option<String>,
}

/// Who handles a message of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MessageDestination {
    /// The server.
    Pass,
    /// Endmark, because the message calls its read tool.
    Read {
        /// The id of the request as it is written.
        id: String,
        /// The arguments as JSON. `None` if the call has no arguments.
        arguments: Option<String>,
    },
}

impl McpSession {
    /// Records a message of the client, and returns who handles it.
    pub(super) fn handle_client_message(&mut self, line: &[u8]) -> MessageDestination {
        let Ok(message) = Value::parse_body(line) else { return MessageDestination::Pass };
        if message.kind() == Kind::Array {
            // In a batch, a call of the read tool is forwarded to the server, which rejects it.
            for message in message.items() {
                self.note_request(message);
            }
            return MessageDestination::Pass;
        }
        let call = message.field("method").and_then(Value::text).is_some_and(|method| method == "tools/call");
        let name = message.at("params.name").and_then(Value::text);
        if let Some(id) = message.field("id").filter(|_| call && self.offers_read_tool)
            && name.as_deref() == Some(read_tool::NAME)
        {
            let arguments = message.at("params.arguments").map(|arguments| arguments.raw().to_owned());
            return MessageDestination::Read { id: id.raw().to_owned(), arguments };
        }
        self.note_request(message);
        MessageDestination::Pass
    }

    /// Records a new request, or removes one that the client has cancelled.
    fn note_request(&mut self, message: Value<'_>) {
        let Some(method) = message.field("method").and_then(Value::text) else { return };
        if method == "notifications/cancelled" {
            self.take_request(message.at("params.requestId"));
        } else if let Some(id) = message.field("id")
            && let Some(key) = RequestId::parse(id)
        {
            let is_for_tools = method == "tools/list";
            let name = || message.at("params.name").and_then(Value::text).map(Cow::into_owned);
            let tool = (method == "tools/call").then(|| name().unwrap_or_default());
            self.open_requests.insert(key, OpenRequest { id: id.raw().to_owned(), is_for_tools, tool });
        }
    }

    /// Removes and returns the request that a message of the server answers.
    pub(super) fn take_answered(&mut self, message: Value<'_>) -> Option<OpenRequest> {
        if message.field("method").is_some() {
            return None;
        }
        self.take_request(message.field("id"))
    }

    /// Removes the requests that an unreadable message may answer: the one with its id, or all if the id is
    /// unknown. Returns their ids.
    pub(super) fn take_unanswerable(&mut self, id: Option<&str>) -> Vec<String> {
        match id {
            Some(id) => {
                self.take_request(Value::parse_str(id).ok()).map(|awaited| awaited.id).into_iter().collect()
            }
            None => self.take_open(),
        }
    }

    fn take_request(&mut self, id: Option<Value<'_>>) -> Option<OpenRequest> {
        self.open_requests.remove(&RequestId::parse(id?)?)
    }

    /// Records the schemas of the tools in a page of the tool list. An invalid schema is ignored.
    pub(super) fn note_tools(&mut self, result: Value<'_>) {
        for tool in result.field("tools").into_iter().flat_map(Value::items) {
            let Some(name) = tool.field("name").and_then(Value::text) else { continue };
            let schema =
                tool.field("outputSchema").and_then(|schema| serde_json::from_str(schema.raw()).ok());
            match schema.and_then(|schema| jsonschema::validator_for(&schema).ok()) {
                Some(schema) => self.schemas.insert(name.into_owned(), Arc::new(schema)),
                None => self.schemas.remove(&*name),
            };
        }
    }

    /// Returns the schema that a tool declares for its structured results. Returns `None` if it declares no
    /// schema.
    pub(super) fn schema(&self, tool: &str) -> Option<Arc<Validator>> {
        self.schemas.get(tool).cloned()
    }

    /// Records that the client's tool list contains the read tool.
    pub(super) fn note_read_tool_offered(&mut self) {
        self.offers_read_tool = true;
    }

    /// Removes all open requests and returns their ids. They will get no response.
    pub(super) fn take_open(&mut self) -> Vec<String> {
        self.open_requests.drain().map(|(_, awaited)| awaited.id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_matched_by_its_request_id() {
        let mut session = McpSession::default();
        for request in [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ls"}}"#,
            r#"[{"jsonrpc":"2.0","id":"1","method":"tools/list"},{"jsonrpc":"2.0","id":2,"method":"ping"}]"#,
            r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"ls"}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3.0}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"roots":[]}}"#,
        ] {
            assert_eq!(session.handle_client_message(request.as_bytes()), MessageDestination::Pass);
        }
        let mut answered = |line: &str| {
            session
                .take_answered(Value::parse_str(line).unwrap())
                .map(|awaited| (awaited.id, awaited.is_for_tools))
        };
        assert_eq!(answered(r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#), None);
        assert_eq!(answered(r#"{"jsonrpc":"2.0","id":10.0e-1,"result":{}}"#), Some(("1".to_owned(), false)));
        assert_eq!(answered(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), None);
        assert_eq!(
            answered(r#"{"jsonrpc":"2.0","id":"\u0031","result":{}}"#),
            Some((r#""1""#.to_owned(), true))
        );
        assert_eq!(answered(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#), None);
        assert_eq!(answered(r#"{"jsonrpc":"2.0","id":2.0,"error":{}}"#), Some(("2".to_owned(), false)));
        assert!(session.take_open().is_empty());
    }

    #[test]
    fn ids_are_compared_by_value() {
        let id = |text: &str| RequestId::parse(Value::parse_str(text).unwrap());
        for same in [["3", "3.0"], ["3", "3e0"], ["30", "0.3E+2"], ["0", "-0.00e7"], ["\"a\"", "\"\\u0061\""]]
        {
            assert_eq!(id(same[0]), id(same[1]), "{same:?}");
        }
        for other in [
            ["3", "30"],
            ["3", "-3"],
            ["3", "\"3\""],
            ["9007199254740993", "9007199254740992"],
            ["null", "0"],
        ] {
            assert_ne!(id(other[0]), id(other[1]), "{other:?}");
        }
        assert_eq!((id("[1]"), id("1e99999999999999999999")), (None, None));
    }

    #[test]
    fn the_tool_is_answered_only_if_it_was_offered() {
        let call =
            br#"{"id":5,"method":"tools/call","params":{"name":"endmark_read","arguments":{"handle":"h"}}}"#;
        let mut session = McpSession::default();
        assert_eq!(session.handle_client_message(call), MessageDestination::Pass);
        session.note_read_tool_offered();
        let arguments = Some(r#"{"handle":"h"}"#.to_owned());
        assert_eq!(
            session.handle_client_message(call),
            MessageDestination::Read { id: "5".to_owned(), arguments }
        );
        assert_eq!(session.take_open(), ["5"]);
    }
}
