//! A model that writes a given text and handles limits, prefills and prompts like real servers.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde_json::{Map, Value, json};

use crate::answer::{Answer, Fault};
use crate::chat::{ChatFrames, chat_reply, chat_tool_reply};
use crate::script::Respond;
use crate::tokens::tokens;
use crate::upstream::ReceivedRequest;

/// How the server handles an unfinished assistant message at the end of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrefillBehaviour {
    /// Continues the message, and returns only the new part.
    Continues,
    /// Continues the message, but first repeats it in the reply (llama.cpp).
    Echoes,
    /// Repeats the message in a complete reply, but not in a stream (llama.cpp from b10500).
    EchoesWhole,
    /// Rejects the request with 400.
    Rejects,
    /// Treats the message as finished, and writes a new one from the beginning.
    Restarts,
}

/// How the model answers a user message that asks it to continue its previous reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptBehaviour {
    /// It returns exactly the missing part.
    Exact,
    /// It repeats this many tokens before the missing part.
    Repeats(usize),
    /// It returns the text from the beginning of the cut JSON token: from right after the last `{`, `[`, `,`
    /// or `:`.
    FromToken,
    /// It returns exactly the missing part, in a code fence with this language.
    Fenced(&'static str),
    /// It returns exactly the missing part, after this remark and an empty line.
    Preamble(&'static str),
    /// It returns the complete text from its beginning.
    Restarts,
    /// It returns an empty reply.
    Silent,
}

/// A model that always writes the same text, or calls a tool with the text as arguments, until it reaches its
/// limit.
///
/// [`tokens`] defines the tokens. The limit is the smaller of `max_completion_tokens` and `max_tokens`. A cut
/// reply has the finish reason `length`. A stream has one token in each frame. The model reports its usage.
///
/// ```
/// use testkit::{PrefillBehaviour, Request, ScriptedModel, Upstream};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let model = ScriptedModel::new("one two three four").prefill(PrefillBehaviour::Echoes);
/// let upstream = Upstream::start(model).await;
/// let body = serde_json::json!({ "max_tokens": 2, "messages": [{ "role": "user", "content": "Count." }] });
/// let reply = Request::post(upstream.address(), "/v1/chat/completions").json(&body).send().await.read().await;
/// assert_eq!(reply.json()["choices"][0]["message"]["content"], "one two");
/// assert_eq!(reply.json()["choices"][0]["finish_reason"], "length");
/// # }
/// ```
pub struct ScriptedModel {
    text: String,
    tool: Option<String>,
    reasoning: String,
    prefill: PrefillBehaviour,
    prefill_flag: Option<&'static str>,
    prompt_behaviour: PromptBehaviour,
    own_limit: Option<u64>,
    faults: BTreeMap<usize, (usize, Fault)>,
    answer_count: Mutex<usize>,
}

/// The planned reply to one request.
struct PlannedReply<'a> {
    /// The part of the request that the reply repeats without cost in tokens.
    echo: &'a str,
    text: String,
    as_tool: bool,
    has_reasoning: bool,
}

impl ScriptedModel {
    /// Creates a model with this text. It continues prefills without repetition, and answers prompts with the
    /// missing part.
    pub fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            tool: None,
            reasoning: String::new(),
            prefill: PrefillBehaviour::Continues,
            prefill_flag: None,
            prompt_behaviour: PromptBehaviour::Exact,
            own_limit: None,
            faults: BTreeMap::new(),
            answer_count: Mutex::new(0),
        }
    }

    /// Makes the model return its text as the arguments of a call of this tool, if the request has tools.
    #[must_use]
    pub fn calls(mut self, tool: &str) -> Self {
        self.tool = Some(tool.to_owned());
        self
    }

    /// Adds reasoning before each new message. It counts towards the limit.
    #[must_use]
    pub fn reasoning(mut self, reasoning: &str) -> Self {
        reasoning.clone_into(&mut self.reasoning);
        self
    }

    /// Sets how the model handles a prefill.
    #[must_use]
    pub fn prefill(mut self, prefill: PrefillBehaviour) -> Self {
        self.prefill = prefill;
        self
    }

    /// Treats the last message as a prefill only if this field of the request (`continue_final_message`) or
    /// of the message (`prefix`, `partial`) is true. Otherwise the model starts again from the beginning.
    #[must_use]
    pub fn prefill_flag(mut self, field: &'static str) -> Self {
        self.prefill_flag = Some(field);
        self
    }

    /// Sets how the model answers a prompt.
    #[must_use]
    pub fn with_prompt_behaviour(mut self, prompted: PromptBehaviour) -> Self {
        self.prompt_behaviour = prompted;
        self
    }

    /// Sets a token limit that the server itself applies.
    #[must_use]
    pub fn own_limit(mut self, tokens: u64) -> Self {
        self.own_limit = Some(tokens);
        self
    }

    /// Adds a fault to the response to a request, after this many bytes of the body. Requests are counted
    /// from 0.
    #[must_use]
    pub fn fault(mut self, request: usize, after: usize, fault: Fault) -> Self {
        self.faults.insert(request, (after, fault));
        self
    }

    /// Returns the reply to this request. The error is the reason why the model rejects it.
    fn turn<'a>(&self, request: &'a Value) -> Result<PlannedReply<'a>, &'static str> {
        let messages = request["messages"].as_array().ok_or("messages: this field is required")?;
        let last = messages.last().ok_or("messages: at least one message is required")?;
        let whole = |text: &str| {
            let as_tool = self.tool.is_some() && request.get("tools").is_some();
            PlannedReply { echo: "", text: text.to_owned(), as_tool, has_reasoning: true }
        };
        if last["role"] == "assistant" {
            let asked = self.prefill_flag.is_none_or(|flag| request[flag] == true || last[flag] == true);
            let prefill = if asked { self.prefill } else { PrefillBehaviour::Restarts };
            let so_far = last["content"].as_str().ok_or("a tool call cannot be continued")?;
            // A model can only continue text that it wrote itself.
            let rest = self.text.strip_prefix(so_far);
            return match (prefill, rest) {
                (PrefillBehaviour::Rejects, _) => Err("the last message must not be from the assistant"),
                (PrefillBehaviour::Restarts, _) | (_, None) => Ok(whole(&self.text)),
                (
                    PrefillBehaviour::Continues | PrefillBehaviour::Echoes | PrefillBehaviour::EchoesWhole,
                    Some(rest),
                ) => {
                    let repeats = match prefill {
                        PrefillBehaviour::Echoes => true,
                        PrefillBehaviour::EchoesWhole => request["stream"] != true,
                        _ => false,
                    };
                    let echo = if repeats { so_far } else { "" };
                    Ok(PlannedReply { echo, text: rest.to_owned(), as_tool: false, has_reasoning: false })
                }
            };
        }
        let earlier = messages.iter().rev().find(|message| message["role"] == "assistant");
        let so_far = earlier.and_then(|message| message["content"].as_str());
        match so_far.map(|quoted| self.quoted_length(quoted)) {
            Some(spoken) if spoken > 0 => {
                let text = self.text_after_prompt(spoken);
                Ok(PlannedReply { echo: "", text, as_tool: false, has_reasoning: true })
            }
            _ => Ok(whole(&self.text)),
        }
    }

    /// Returns the length in bytes of the longest prefix of the text that occurs in `quoted`.
    fn quoted_length(&self, quoted: &str) -> usize {
        let common = |start: usize| {
            let pairs = self.text.chars().zip(quoted[start..].chars());
            pairs.take_while(|(own, theirs)| own == theirs).map(|(own, _)| own.len_utf8()).sum()
        };
        quoted.char_indices().map(|(start, _)| common(start)).max().unwrap_or(0)
    }

    fn text_after_prompt(&self, spoken: usize) -> String {
        let (so_far, rest) = self.text.split_at(spoken);
        match self.prompt_behaviour {
            PromptBehaviour::Exact => rest.to_owned(),
            PromptBehaviour::Repeats(count) => {
                let spoken = tokens(so_far);
                spoken[spoken.len().saturating_sub(count)..].concat() + rest
            }
            PromptBehaviour::FromToken => {
                let token = so_far.rfind(['{', '[', ',', ':']).map_or(0, |at| at + 1);
                self.text[token..].to_owned()
            }
            PromptBehaviour::Fenced(language) => format!("```{language}\n{rest}\n```"),
            PromptBehaviour::Preamble(remark) => format!("{remark}\n\n{rest}"),
            PromptBehaviour::Restarts => self.text.clone(),
            PromptBehaviour::Silent => String::new(),
        }
    }

    fn limit(&self, request: &Value) -> usize {
        let asked = ["max_completion_tokens", "max_tokens"].map(|name| request[name].as_u64());
        let limit = asked.into_iter().flatten().chain(self.own_limit).min();
        limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
    }

    fn answer(&self, request: &Value) -> Answer {
        let turn = match self.turn(request) {
            Ok(turn) => turn,
            Err(reason) => return Answer::error(400, "invalid_request_error", None, reason),
        };
        let limit = self.limit(request);
        let mut thoughts = if turn.has_reasoning { tokens(&self.reasoning) } else { Vec::new() };
        let mut spoken = tokens(&turn.text);
        let cut = thoughts.len() + spoken.len() > limit;
        thoughts.truncate(limit);
        spoken.truncate(limit - thoughts.len());
        let finish = match (cut, turn.as_tool) {
            (true, _) => "length",
            (false, true) => "tool_calls",
            (false, false) => "stop",
        };
        let usage = (prompt_tokens(request), (thoughts.len() + spoken.len()) as u64);
        let tool = self.tool.as_deref().filter(|_| turn.as_tool && !spoken.is_empty());
        if request["stream"] == true {
            let mut frames = ChatFrames::new();
            frames = thoughts.iter().fold(frames, |frames, thought| frames.reasoning(thought));
            if let Some(tool) = tool {
                frames = frames.tool_call(0, "call_scripted", tool);
                frames = spoken.iter().fold(frames, |frames, token| frames.arguments(0, token));
            } else {
                let echo = (!turn.echo.is_empty()).then_some(turn.echo);
                let deltas = echo.into_iter().chain(spoken);
                frames = deltas.fold(frames, ChatFrames::text);
            }
            frames = frames.finish(finish);
            if request["stream_options"]["include_usage"] == true {
                frames = frames.usage(usage);
            }
            return Answer::sse(frames.done());
        }
        let text = spoken.concat();
        let mut reply = match tool {
            Some(tool) => chat_tool_reply(&[("call_scripted", tool, &text)], finish, usage),
            None => chat_reply(&(turn.echo.to_owned() + &text), finish, usage),
        };
        if !thoughts.is_empty() {
            reply["choices"][0]["message"]["reasoning_content"] = json!(thoughts.concat());
        }
        Answer::json(200, &reply)
    }
}

impl Respond for ScriptedModel {
    fn respond(&self, request: &ReceivedRequest) -> Answer {
        if request.method == "GET" {
            let model = json!({ "id": "scripted", "object": "model", "created": 0, "owned_by": "testkit" });
            return Answer::json(200, &json!({ "object": "list", "data": [model] }));
        }
        let number = {
            let mut answered = self.answer_count.lock().unwrap();
            *answered += 1;
            *answered - 1
        };
        let answer = match serde_json::from_slice::<Map<String, Value>>(&request.body) {
            Ok(body) => self.answer(&Value::Object(body)),
            Err(error) => Answer::error(400, "invalid_request_error", None, &error.to_string()),
        };
        match self.faults.get(&number) {
            Some((after, fault)) => answer.fault(*after, *fault),
            None => answer,
        }
    }
}

/// Counts the tokens of all texts in a request.
pub(crate) fn prompt_tokens(request: &Value) -> u64 {
    let messages = request["messages"].as_array().into_iter().flatten();
    messages.filter_map(|message| message["content"].as_str()).map(|text| tokens(text).len() as u64).sum()
}
