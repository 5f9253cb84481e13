//! A model that reads the request. It knows a document, finds the part of it that the request shows, and
//! answers accordingly.

mod behaviour;
mod document;
mod question;

use std::collections::HashMap;
use std::sync::Mutex;

use serde_json::Value;

use crate::answer::Answer;
use crate::chat::{ChatFrames, chat_reply};
use crate::model::{PrefillBehaviour, prompt_tokens};
use crate::script::Respond;
use crate::tokens::tokens;
use crate::upstream::ReceivedRequest;
pub use behaviour::{ContinuationStart, ContinuationStyle, ModelBehaviour, SeamDeviation};
use document::Document;
use question::ModelRequest;

/// The reply to a repetition of the first request with a larger limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepeatedReply {
    /// The complete document.
    Whole,
    /// The document up to this byte, so that the reply is cut again.
    Cut(usize),
    /// This text, which is not part of the document.
    FixedText(&'static str),
}

/// Number of repetitions that a looping model writes before its limit ends the reply.
const LOOP_REPETITIONS: usize = 300;

/// The kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RequestKind {
    /// The first request for the document.
    First,
    /// A repetition of the first request.
    Repetition,
    /// A request that ends with an unfinished assistant message.
    Prefill,
    /// A request in words, with a part of the document in its messages.
    Prompt,
}

/// A request that was answered, with its cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnsweredRequest {
    /// The kind of the request.
    pub request_kind: RequestKind,
    /// Tokens of the request's messages.
    pub prompt_tokens: usize,
    /// Tokens of the reply.
    pub output_tokens: usize,
}

/// A model that knows one document. Its first reply is cut. Later replies depend on the part of the document
/// that a request shows.
///
/// The model ignores the wording of the prompt. It searches the messages for the shown part of the document,
/// and finds the anchor in the text that the prompt quotes. It supports Chat Completions;
/// [`ModelFormatAdapter`](crate::ModelFormatAdapter) adds the other formats.
///
/// ```
/// use testkit::{ContinuationStart, ContinuationStyle, ModelBehaviour, ReadingModel, Request, Upstream};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let style = ContinuationStyle { start: ContinuationStart::Anchor, ..ContinuationStyle::default() };
/// let behaviour = ModelBehaviour::Continues(style);
/// let model = ReadingModel::new("First line.\nSecond line.\nThird line.\n", 19, behaviour);
/// let upstream = Upstream::start(model).await;
/// let ask = async |messages: serde_json::Value| {
///     let body = serde_json::json!({ "messages": messages });
///     let reply = Request::post(upstream.address(), "/v1/chat/completions").json(&body).send().await.read().await;
///     reply.json()["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
/// };
/// let first = ask(serde_json::json!([{ "role": "user", "content": "Write." }])).await;
/// assert_eq!(first, "First line.\nSecond ");
/// let rest = ask(serde_json::json!([
///     { "role": "user", "content": "Write." },
///     { "role": "assistant", "content": "First line.\n" },
///     { "role": "user", "content": "Go on behind “First line.”" },
/// ]));
/// assert_eq!(rest.await, "First line.\nSecond line.\nThird line.\n");
/// # }
/// ```
pub struct ReadingModel {
    document: Document,
    manner: ModelBehaviour,
    repeated_reply: RepeatedReply,
    prefill: PrefillBehaviour,
    memory: Mutex<Memory>,
}

/// What the model remembers of earlier requests.
#[derive(Default)]
struct Memory {
    has_written_first_reply: bool,
    /// The limit of the first request.
    first_limit: Option<u64>,
    /// How many bytes of the document the model has written.
    reached_bytes: usize,
    continuations: usize,
    calls: Vec<AnsweredRequest>,
}

/// The text of a reply, and whether it is cut.
struct ReplyText {
    text: String,
    cut: bool,
}

impl ReadingModel {
    /// Creates a model with this document. Its first reply is cut at the byte `cut`, which must be a
    /// character boundary. It rejects prefills.
    pub fn new(document: &str, cut: usize, manner: ModelBehaviour) -> Self {
        assert!(document.is_char_boundary(cut), "a reply is cut between characters");
        Self {
            document: Document::new(document, cut),
            manner,
            repeated_reply: RepeatedReply::Whole,
            prefill: PrefillBehaviour::Rejects,
            memory: Mutex::default(),
        }
    }

    /// Sets the reply to a repetition of the first request with a larger limit.
    #[must_use]
    pub fn with_repeated_reply(mut self, again: RepeatedReply) -> Self {
        self.repeated_reply = again;
        self
    }

    /// Sets how the model handles a prefill.
    #[must_use]
    pub fn prefill(mut self, prefill: PrefillBehaviour) -> Self {
        self.prefill = prefill;
        self
    }

    /// Returns the texts that count as correct: the document, and if the model rewrites the word at the cut,
    /// also the document with the other word.
    pub fn intended_texts(&self) -> Vec<String> {
        let rewrites = matches!(
            &self.manner,
            ModelBehaviour::Continues(ContinuationStyle { seam: SeamDeviation::OtherWord, .. })
        );
        let rewritten = rewrites.then(|| self.document.with_another_word());
        [self.document.text.clone()].into_iter().chain(rewritten).collect()
    }

    /// Returns all requests that were answered.
    pub fn calls(&self) -> Vec<AnsweredRequest> {
        self.memory.lock().unwrap().calls.clone()
    }

    /// Returns the reply to this request. The error is the reason why the model rejects it.
    fn say(&self, request: &Value) -> Result<(RequestKind, ReplyText), &'static str> {
        let question = ModelRequest::parse(request, &self.document.text)?;
        let mut memory = self.memory.lock().unwrap();
        let asked_text = match question {
            ModelRequest::NothingShown { limit } => {
                let is_more = memory.first_limit.is_none_or(|first| limit.is_none_or(|limit| limit > first));
                if memory.has_written_first_reply && is_more {
                    (RequestKind::Repetition, self.repeat_reply())
                } else {
                    // A repetition with the same limit gets the same reply.
                    (memory.has_written_first_reply, memory.first_limit, memory.reached_bytes) =
                        (true, limit, self.document.cut);
                    (RequestKind::First, self.text_up_to(self.document.cut))
                }
            }
            ModelRequest::Prefill { shown, so_far } => {
                let rest = |echo: &str| format!("{echo}{}", &self.document.text[shown..]);
                let text = match self.prefill {
                    PrefillBehaviour::Rejects => {
                        return Err("the last message must not be from the assistant");
                    }
                    PrefillBehaviour::Restarts => self.document.text.clone(),
                    PrefillBehaviour::Continues => rest(""),
                    PrefillBehaviour::Echoes | PrefillBehaviour::EchoesWhole => rest(so_far),
                };
                (RequestKind::Prefill, ReplyText { text, cut: false })
            }
            // A required grammar permits only a new document.
            ModelRequest::Prompt { forced: true, .. } => (RequestKind::Prompt, self.repeat_reply()),
            ModelRequest::Prompt { shown, anchor, forced: false } => {
                (RequestKind::Prompt, self.continue_reply(shown, anchor, &mut memory))
            }
        };
        memory.calls.push(AnsweredRequest {
            request_kind: asked_text.0,
            prompt_tokens: usize::try_from(prompt_tokens(request)).unwrap(),
            output_tokens: tokens(&asked_text.1.text).len(),
        });
        Ok(asked_text)
    }

    fn text_up_to(&self, cut: usize) -> ReplyText {
        ReplyText { text: self.document.text[..cut].to_owned(), cut: cut < self.document.text.len() }
    }

    fn repeat_reply(&self) -> ReplyText {
        match self.repeated_reply {
            RepeatedReply::Whole => self.text_up_to(self.document.text.len()),
            RepeatedReply::Cut(cut) => self.text_up_to(cut),
            RepeatedReply::FixedText(words) => ReplyText { text: words.to_owned(), cut: false },
        }
    }

    fn continue_reply(&self, shown: usize, anchor: usize, memory: &mut Memory) -> ReplyText {
        let style = match &self.manner {
            ModelBehaviour::FixedText(words) => return ReplyText { text: (*words).to_owned(), cut: false },
            ModelBehaviour::Loops(words) => {
                return ReplyText { text: words.repeat(LOOP_REPETITIONS), cut: true };
            }
            ModelBehaviour::Continues(style) => style,
        };
        memory.continuations += 1;
        let stops = style.stops_after.filter(|_| memory.continuations == 1);
        let answer = self.document.continuation(style, (anchor, shown, memory.reached_bytes));
        let cut = stops.and_then(|stops| {
            let (at, _) = answer.char_indices().nth(stops)?;
            (at > 0).then_some(at)
        });
        match cut {
            None => ReplyText { text: answer, cut: false },
            Some(at) => {
                // The text around the rest of the document is not part of the document.
                let left = answer[at..].len().saturating_sub(style.suffix.len());
                memory.reached_bytes = self.document.tail_start(left);
                ReplyText { text: answer[..at].to_owned(), cut: true }
            }
        }
    }
}

impl Respond for ReadingModel {
    fn respond(&self, request: &ReceivedRequest) -> Answer {
        let request = request.json();
        let reply = match self.say(&request) {
            Ok((_, reply)) => reply,
            Err(reason) => return Answer::error(400, "invalid_request_error", None, reason),
        };
        let asked_text = tokens(&reply.text);
        let finish = if reply.cut { "length" } else { "stop" };
        let usage = (prompt_tokens(&request), asked_text.len() as u64);
        if request["stream"] != true {
            return Answer::json(200, &chat_reply(&reply.text, finish, usage));
        }
        let mut frames = asked_text.into_iter().fold(ChatFrames::new(), ChatFrames::text).finish(finish);
        if request["stream_options"]["include_usage"] == true {
            frames = frames.usage(usage);
        }
        Answer::sse(frames.done())
    }
}

/// Several reading models at one address. The first user message selects the model.
#[derive(Default)]
pub struct ReadingModels {
    models: HashMap<String, ReadingModel>,
}

impl ReadingModels {
    /// Adds a model for requests that begin with this message.
    #[must_use]
    pub fn with(mut self, first_message: &str, model: ReadingModel) -> Self {
        self.models.insert(first_message.to_owned(), model);
        self
    }

    /// Returns the model for requests that begin with this message.
    pub fn model(&self, first_message: &str) -> &ReadingModel {
        &self.models[first_message]
    }
}

impl Respond for ReadingModels {
    fn respond(&self, request: &ReceivedRequest) -> Answer {
        let body = request.json();
        let mut messages = body["messages"].as_array().into_iter().flatten();
        let first = messages.find(|message| message["role"] == "user");
        let model = first.and_then(|message| self.models.get(message["content"].as_str()?));
        match model {
            Some(model) => model.respond(request),
            None => Answer::error(404, "testkit", None, "no document is known by this name"),
        }
    }
}
