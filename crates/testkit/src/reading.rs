//! A model that reads the request: it knows a document, finds the part that the request shows, and answers accordingly.

mod document;
mod manner;
mod question;

use std::collections::HashMap;
use std::sync::Mutex;

use serde_json::Value;

use crate::answer::Answer;
use crate::chat::{ChatFrames, chat_reply};
use crate::model::{Prefill, prompt_tokens};
use crate::script::Respond;
use crate::tokens::tokens;
use crate::upstream::Received;
use document::Document;
pub use manner::{Begins, Manner, Seam, Style};
use question::Question;

/// The reply when the first request is repeated with a larger limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepeatedReply {
    /// The complete document.
    Whole,
    /// The document up to this byte, again cut.
    Cut(usize),
    /// These words, which are not from the document.
    Says(&'static str),
}

/// Number of repetitions of a looping model before its limit ends the reply.
const LOOPS: usize = 300;

/// The kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Asks {
    /// The first request for the document.
    First,
    /// A repetition of the first request.
    Again,
    /// A request that ends with an unfinished assistant message.
    Prefill,
    /// A request in words, with a part of the document in its messages.
    Prompt,
}

/// An answered request, and its cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// The kind of the request.
    pub request_kind: Asks,
    /// Tokens of the request's messages.
    pub prompt_tokens: usize,
    /// Tokens of the reply.
    pub output_tokens: usize,
}

/// A model that knows one document. Its first reply is cut; later replies depend on what a request shows.
///
/// It does not depend on the wording of the question. It finds the shown part by matching the document in the
/// messages, and the anchor by the question's quotations. It supports Chat Completions;
/// [`Speaking`](crate::DialectAdapter) adds the other formats.
///
/// ```
/// use testkit::{Begins, Manner, ReadingModel, Request, Style, Upstream};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let manner = Manner::Continues(Style { start: Begins::Anchor, ..Style::default() });
/// let model = ReadingModel::new("First line.\nSecond line.\nThird line.\n", 19, manner);
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
    manner: Manner,
    again: RepeatedReply,
    prefill: Prefill,
    memory: Mutex<Memory>,
}

/// The state of the model.
#[derive(Default)]
struct Memory {
    has_begun: bool,
    /// The limit of the first request.
    first_limit: Option<u64>,
    /// How much of the document it has written, in bytes.
    reached_bytes: usize,
    continuations: usize,
    calls: Vec<Call>,
}

/// The text of a reply, and whether it is cut.
struct ReplyText {
    text: String,
    cut: bool,
}

impl ReadingModel {
    /// Creates a model with this text, whose first reply is cut at this byte, a character boundary. It rejects
    /// prefills.
    pub fn new(document: &str, cut: usize, manner: Manner) -> Self {
        assert!(document.is_char_boundary(cut), "a reply is cut between characters");
        Self {
            document: Document::new(document, cut),
            manner,
            again: RepeatedReply::Whole,
            prefill: Prefill::Rejects,
            memory: Mutex::default(),
        }
    }

    /// Sets the reply when the first request is repeated with a larger limit.
    #[must_use]
    pub fn repeat_with(mut self, again: RepeatedReply) -> Self {
        self.again = again;
        self
    }

    /// Sets how the model handles a prefill.
    #[must_use]
    pub fn prefill(mut self, prefill: Prefill) -> Self {
        self.prefill = prefill;
        self
    }

    /// Returns the texts that count as correct: the document, and if the model rewrites the word at the cut, the
    /// document with the other word.
    pub fn intended_texts(&self) -> Vec<String> {
        let rewrites = matches!(&self.manner, Manner::Continues(Style { seam: Seam::WordRewritten, .. }));
        let rewritten = rewrites.then(|| self.document.with_another_word());
        [self.document.text.clone()].into_iter().chain(rewritten).collect()
    }

    /// Returns every request so far.
    pub fn calls(&self) -> Vec<Call> {
        self.memory.lock().unwrap().calls.clone()
    }

    /// Returns the reply to this request. An error is the reason for a rejection.
    fn say(&self, request: &Value) -> Result<(Asks, ReplyText), &'static str> {
        let question = Question::read(request, &self.document.text)?;
        let mut memory = self.memory.lock().unwrap();
        let asked_text = match question {
            Question::Anew { limit } => {
                let is_more = memory.first_limit.is_none_or(|first| limit.is_none_or(|limit| limit > first));
                if memory.has_begun && is_more {
                    (Asks::Again, self.repeat_reply())
                } else {
                    // A repetition with the same limit gives the same reply.
                    (memory.has_begun, memory.first_limit, memory.reached_bytes) =
                        (true, limit, self.document.cut);
                    (Asks::First, self.text_up_to(self.document.cut))
                }
            }
            Question::Prefill { shown, so_far } => {
                let rest = |echo: &str| format!("{echo}{}", &self.document.text[shown..]);
                let text = match self.prefill {
                    Prefill::Rejects => return Err("the last message must not be from the assistant"),
                    Prefill::Restarts => self.document.text.clone(),
                    Prefill::Continues => rest(""),
                    Prefill::Echoes | Prefill::EchoesWhole => rest(so_far),
                };
                (Asks::Prefill, ReplyText { text, cut: false })
            }
            // A demanded grammar allows only a new document.
            Question::Prompt { forced: true, .. } => (Asks::Prompt, self.repeat_reply()),
            Question::Prompt { shown, anchor, forced: false } => {
                (Asks::Prompt, self.continue_reply(shown, anchor, &mut memory))
            }
        };
        memory.calls.push(Call {
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
        match self.again {
            RepeatedReply::Whole => self.text_up_to(self.document.text.len()),
            RepeatedReply::Cut(cut) => self.text_up_to(cut),
            RepeatedReply::Says(words) => ReplyText { text: words.to_owned(), cut: false },
        }
    }

    fn continue_reply(&self, shown: usize, anchor: usize, memory: &mut Memory) -> ReplyText {
        let style = match &self.manner {
            Manner::Says(words) => return ReplyText { text: (*words).to_owned(), cut: false },
            Manner::Loops(words) => return ReplyText { text: words.repeat(LOOPS), cut: true },
            Manner::Continues(style) => style,
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
                // The text around the document's part is not part of the document.
                let left = answer[at..].len().saturating_sub(style.suffix.len());
                memory.reached_bytes = self.document.start_of_last(left);
                ReplyText { text: answer[..at].to_owned(), cut: true }
            }
        }
    }
}

impl Respond for ReadingModel {
    fn respond(&self, request: &Received) -> Answer {
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

/// Several such models at one address. The first user message selects the document.
#[derive(Default)]
pub struct Library {
    models: HashMap<String, ReadingModel>,
}

impl Library {
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

impl Respond for Library {
    fn respond(&self, request: &Received) -> Answer {
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
