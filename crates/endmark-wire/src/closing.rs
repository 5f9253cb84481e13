//! Builds the last request of a session with an exhausted budget: the client's own request without tools,
//! with a low limit and a last message that asks for a summary (CX-7).

use crate::conversation::{ConversationError, Dialogue};
use crate::edit::Edits;
use crate::error::RequestError;
use crate::json::{Kind, Value};
use crate::request::Request;

/// Fields that offer tools or choose among them, in all formats.
const TOOL_FIELDS: [&str; 7] = [
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "functions",
    "function_call",
    "toolConfig",
    "tool_config",
];
/// Fields that request more than one reply, or tokens beyond the reply.
const EXTRA_FIELDS: [&str; 5] = ["n", "n_cmpl", "best_of", "n_predict", "thinking"];
const CANDIDATE_FIELDS: [&str; 2] = ["candidateCount", "candidate_count"];

/// The location of the output limit in a format's requests.
#[derive(Debug, Clone, Copy)]
pub struct LimitLocation {
    /// The possible names of the object that contains the limit. Empty if the limit is in the request itself.
    pub container_names: &'static [&'static str],
    /// The possible names of the limit. A request without a limit gets the first name.
    pub names: &'static [&'static str],
}

/// Error of a request that cannot become a session's last request.
#[derive(Debug, thiserror::Error)]
pub enum ClosingError {
    /// The request has no conversation.
    #[error(transparent)]
    NoConversation(#[from] ConversationError),
    /// The edited body is not a request.
    #[error("{}", .0.message)]
    InvalidRequest(RequestError),
}

impl Request {
    /// Returns the request as the last one of its session: without tools, with at most `limit` tokens of
    /// output, and with `instruction` as the last user message. Everything else stays byte for byte.
    ///
    /// ```
    /// use endmark_wire::format::find;
    /// use endmark_wire::request::Request;
    /// let found = find("/v1/chat/completions", None).unwrap();
    /// let body = br#"{"model":"m","tools":[],"messages":[{"role":"user","content":"Hi"}]}"#;
    /// let request = Request::parse(found.format, body, &found.address)?;
    /// let closing = request.closing_request("Summarise.", 1024)?;
    /// let expected = r#"{"model":"m","messages":[{"role":"user","content":"Hi"},{"role":"user","content":"Summarise."}],"max_completion_tokens":1024}"#;
    /// assert_eq!(closing.body(), expected.as_bytes());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ClosingError`] if the request has no conversation to which a message could be added.
    pub fn closing_request(&self, instruction: &str, limit: u64) -> Result<Self, ClosingError> {
        let (root, format) = (self.root(), self.format());
        let mut edits = Edits::for_document(root);
        let field = format.facts().conversation_field;
        let no_list = || ConversationError::NoConversation { title: format.title(), field };
        let conversation = root.field(field).ok_or_else(no_list)?;
        let last_turn = format.user_turn(instruction);
        match conversation.kind() {
            Kind::Array => edits.push_item(conversation, &last_turn),
            Kind::String if format.is_single_turn(conversation) => {
                let both_turns =
                    format!("[{{\"role\":\"user\",\"content\":{}}},{last_turn}]", conversation.raw());
                edits.replace(conversation, &both_turns);
            }
            _ => return Err(no_list().into()),
        }
        if format.facts().calls_need_tools && self.has_called_tools()? {
            // This provider refuses a conversation with calls of tools that are not offered. So the tools
            // stay, and calling them is forbidden.
            edits.set_field(root, "tool_choice", "{\"type\":\"none\"}");
        } else {
            for name in TOOL_FIELDS {
                edits.remove_field(root, name);
            }
        }
        for name in EXTRA_FIELDS {
            edits.remove_field(root, name);
        }
        set_limit(&mut edits, root, format.facts().limit_location, limit);
        Self::parse(format, &edits.finish(), self.address()).map_err(ClosingError::InvalidRequest)
    }

    /// Returns whether the conversation contains a tool call.
    fn has_called_tools(&self) -> Result<bool, ConversationError> {
        let dialogue = Dialogue::new(self.format(), self.root())?;
        Ok(dialogue.conversation().turns.iter().any(|turn| turn.calls().next().is_some()))
    }
}

/// Lowers the limit of the reply, or sets one.
fn set_limit<'a>(edits: &mut Edits<'a>, root: Value<'a>, place: LimitLocation, limit: u64) {
    let first = place.names.first().copied().unwrap_or_default();
    let holder = match place.container_names {
        [] => Some(root),
        names => names.iter().find_map(|name| root.field(name)).filter(|value| value.kind() == Kind::Object),
    };
    let Some(holder) = holder else {
        let within = place.container_names.first().copied().unwrap_or_default();
        edits.set_field(root, within, &format!("{{\"{first}\":{limit}}}"));
        return;
    };
    for name in CANDIDATE_FIELDS {
        edits.remove_field(holder, name);
    }
    let own: Vec<&str> = place
        .names
        .iter()
        .copied()
        .filter(|name| holder.field(name).is_some_and(|own| !own.is_null()))
        .collect();
    if own.is_empty() {
        edits.set_field(holder, first, &limit.to_string());
    }
    for name in own {
        let lower = holder.field(name).and_then(Value::as_u64).map_or(limit, |own| own.min(limit));
        edits.set_field(holder, name, &lower.to_string());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::format::find;
    use crate::request::Request;

    fn close(path: &str, body: &Value) -> Value {
        let found = find(path, None).unwrap();
        let request = Request::parse(found.format, body.to_string().as_bytes(), &found.address).unwrap();
        serde_json::from_slice(request.closing_request("Sum up.", 1_024).unwrap().body()).unwrap()
    }

    #[test]
    fn a_closing_request_has_a_limit_an_instruction_and_no_tools() {
        let tool = json!([{"type": "function", "function": {"name": "f"}}]);
        let chat = json!({"model": "m", "n": 3, "tools": tool, "tool_choice": "auto", "max_tokens": 4_000,
            "messages": [{"role": "user", "content": "Hi"}]});
        let closed_chat = close("/v1/chat/completions", &chat);
        assert_eq!(
            closed_chat,
            json!({"model": "m", "max_tokens": 1_024, "messages": [
                {"role": "user", "content": "Hi"}, {"role": "user", "content": "Sum up."}]})
        );
        let responses = close("/v1/responses", &json!({"model": "m", "tools": tool, "input": "Hi"}));
        assert_eq!(responses["max_output_tokens"], 1_024);
        assert_eq!(responses["input"][0], json!({"role": "user", "content": "Hi"}));
        assert_eq!(responses["input"][1]["content"][0]["text"], "Sum up.");
        assert!(responses.get("tools").is_none());
        let messages = json!({"model": "m", "max_tokens": 300, "tools": [{"name": "f"}],
            "thinking": {"type": "enabled", "budget_tokens": 2_000}, "messages": [{"role": "user", "content": "Hi"}]});
        let messages = close("/v1/messages", &messages);
        assert_eq!(messages["max_tokens"], 300, "a lower limit stays");
        assert!(messages.get("tools").is_none() && messages.get("thinking").is_none());
        assert_eq!(messages["messages"][1]["content"][0]["text"], "Sum up.");
        let gemini = json!({"tools": [{}], "toolConfig": {}, "contents": [{"role": "user", "parts": [{"text": "Hi"}]}]});
        let gemini = close("/v1beta/models/m:generateContent", &gemini);
        assert_eq!(gemini["generationConfig"], json!({"maxOutputTokens": 1_024}));
        assert!(gemini.get("tools").is_none() && gemini.get("toolConfig").is_none());
        assert_eq!(gemini["contents"][1]["parts"][0]["text"], "Sum up.");
        let gemini =
            json!({"generation_config": {"max_output_tokens": 9_000, "candidateCount": 4}, "contents": []});
        let gemini = close("/v1beta/models/m:generateContent", &gemini);
        assert_eq!(gemini["generation_config"], json!({"max_output_tokens": 1_024}));
    }

    #[test]
    fn called_tools_stay_declared_if_the_provider_requires_them() {
        let body = json!({"model": "m", "max_tokens": 5_000, "tools": [{"name": "f"}], "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "done"}]}]});
        let closed = close("/v1/messages", &body);
        assert_eq!((&closed["tools"], &closed["tool_choice"]), (&body["tools"], &json!({"type": "none"})));
    }

    #[test]
    fn a_request_without_a_conversation_has_no_closing_request() {
        let found = find("/v1/chat/completions", None).unwrap();
        let request = Request::parse(found.format, br#"{"model":"m"}"#, &found.address).unwrap();
        assert!(request.closing_request("Sum up.", 1_024).is_err());
    }
}
