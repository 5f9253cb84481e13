//! What passes between an MCP client and its server, and which of it concerns Endmark.
//!
//! Every message is one line of JSON-RPC. Nothing is changed here: messages are only recognised, requests by their method and
//! answers by the id of their request.

use std::collections::HashMap;

use endmark_wire::json::{Kind, Value};

use super::read_tool;

/// Requests of the client that are not answered yet, and whether it was offered the tool.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// By the id as it is written: a server echoes it so.
    awaited: HashMap<String, Awaited>,
    offers_read: bool,
}

/// What the answer to a request will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Awaited {
    /// A page of the list of tools.
    Tools,
    /// The result of a tool.
    Result,
    /// Anything else.
    Other,
}

/// What a message of the client is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FromClient {
    /// For the server.
    Pass,
    /// For Endmark: a call of its own tool.
    Read {
        /// The id of the request, as it is written.
        id: String,
        /// The arguments as JSON; none where there are none.
        arguments: Option<String>,
    },
}

impl Session {
    /// Takes a message of the client.
    pub(super) fn asked(&mut self, line: &[u8]) -> FromClient {
        let Ok(message) = Value::parse(line) else { return FromClient::Pass };
        let Some(method) = message.field("method").and_then(Value::text) else { return FromClient::Pass };
        if method == "notifications/cancelled" {
            if let Some(id) = message.at("params.requestId") {
                self.awaited.remove(id.raw());
            }
            return FromClient::Pass;
        }
        let Some(id) = message.field("id") else { return FromClient::Pass };
        let id = id.raw().to_owned();
        let awaited = match method.as_ref() {
            "tools/list" => Awaited::Tools,
            "tools/call" => {
                let name = message.at("params.name").and_then(Value::text);
                if self.offers_read && name.as_deref() == Some(read_tool::NAME) {
                    let arguments =
                        message.at("params.arguments").map(|arguments| arguments.raw().to_owned());
                    return FromClient::Read { id, arguments };
                }
                Awaited::Result
            }
            // The result of a call that was made as a task.
            "tasks/result" => Awaited::Result,
            _ => Awaited::Other,
        };
        self.awaited.insert(id, awaited);
        FromClient::Pass
    }

    /// Takes a message of the server: which request it answers, if it is the result of one.
    pub(super) fn answered(&mut self, line: &[u8]) -> Option<Awaited> {
        let message = Value::parse(line).ok()?;
        if message.kind() != Kind::Object || message.field("method").is_some() {
            return None;
        }
        let awaited = self.awaited.remove(message.field("id")?.raw())?;
        message.field("result").map(|_| awaited)
    }

    /// Notes that the client knows the tool.
    pub(super) fn offered(&mut self) {
        self.offers_read = true;
    }

    /// The ids of all requests that nobody will answer any more.
    pub(super) fn unanswered(&mut self) -> Vec<String> {
        self.awaited.drain().map(|(id, _)| id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_known_by_the_id_of_its_request() {
        let mut session = Session::default();
        for request in [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ls"}}"#,
            r#"{"jsonrpc":"2.0","id":"1","method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"ls"}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"roots":[]}}"#,
        ] {
            assert_eq!(session.asked(request.as_bytes()), FromClient::Pass);
        }
        let mut answered = |line: &str| session.answered(line.as_bytes());
        assert_eq!(answered(r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#), None);
        assert_eq!(answered(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), Some(Awaited::Result));
        assert_eq!(answered(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), None);
        assert_eq!(answered(r#"{"jsonrpc":"2.0","id":"1","result":{}}"#), Some(Awaited::Tools));
        assert_eq!(answered(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#), None);
        assert_eq!(answered(r#"{"jsonrpc":"2.0","id":2,"error":{}}"#), None);
        assert_eq!(answered("no message"), None);
        assert!(session.unanswered().is_empty());
    }

    #[test]
    fn the_tool_is_answered_here_only_where_it_was_offered() {
        let call =
            br#"{"id":5,"method":"tools/call","params":{"name":"endmark_read","arguments":{"handle":"h"}}}"#;
        let mut session = Session::default();
        assert_eq!(session.asked(call), FromClient::Pass);
        session.offered();
        let arguments = Some(r#"{"handle":"h"}"#.to_owned());
        assert_eq!(session.asked(call), FromClient::Read { id: "5".to_owned(), arguments });
        assert_eq!(session.unanswered(), ["5"]);
    }
}
