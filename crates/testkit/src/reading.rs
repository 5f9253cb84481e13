//! A model that reads the question: it knows a document, finds which part of it a request shows, and answers.

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

/// The reply when the model's first request is sent again with a larger limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// The whole document.
    Whole,
    /// The document up to this byte, where it is cut again.
    Cut(usize),
    /// These words, which are not from the document.
    Says(&'static str),
}

/// How often a looping model repeats itself before its limit ends it.
const LOOPS: usize = 300;

/// How a request asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Asks {
    /// It asks for the document for the first time.
    First,
    /// It repeats the first request.
    Again,
    /// It ends with an unfinished message of the assistant.
    Prefill,
    /// It asks in words, with a part of the document in the messages.
    InWords,
}

/// A request that the model answered, and its cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// How it was asked.
    pub asks: Asks,
    /// Tokens of the request's messages.
    pub prompt_tokens: usize,
    /// Tokens of the reply.
    pub output_tokens: usize,
}

/// A model that knows one document. Its first reply is cut; its further replies depend on what a request shows.
///
/// It does not know how the question is worded. It finds the shown part by matching the document in the messages, and
/// the anchor by what the question quotes of it. It supports Chat Completions; [`Speaking`](crate::Speaking) adds the
/// other formats.
///
/// ```
/// use testkit::{Begins, Manner, ReadingModel, Request, Style, Upstream};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let manner = Manner::Continues(Style { begins: Begins::Anchor, ..Style::default() });
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
    again: Again,
    prefill: Prefill,
    memory: Mutex<Memory>,
}

/// State of the model.
#[derive(Default)]
struct Memory {
    has_begun: bool,
    /// The limit of the first request.
    first_limit: Option<u64>,
    /// How far it has come in the document, in bytes.
    reached: usize,
    continuations: usize,
    calls: Vec<Call>,
}

/// The text of a reply, and whether it is cut.
struct Saying {
    text: String,
    cut: bool,
}

impl ReadingModel {
    /// Creates a model that knows this text and is cut at this byte of it, which must be the beginning of a
    /// character. It rejects prefills.
    pub fn new(document: &str, cut: usize, manner: Manner) -> Self {
        assert!(document.is_char_boundary(cut), "a reply is cut between characters");
        Self {
            document: Document::new(document, cut),
            manner,
            again: Again::Whole,
            prefill: Prefill::Rejects,
            memory: Mutex::default(),
        }
    }

    /// Sets the reply when the first request is repeated with a larger limit.
    #[must_use]
    pub fn again(mut self, again: Again) -> Self {
        self.again = again;
        self
    }

    /// Sets how it handles a prefill.
    #[must_use]
    pub fn prefill(mut self, prefill: Prefill) -> Self {
        self.prefill = prefill;
        self
    }

    /// Returns the texts that the model may have meant: the document, and, if it rewrites the word at the cut, the
    /// document with another word there.
    pub fn meant(&self) -> Vec<String> {
        let rewrites = matches!(&self.manner, Manner::Continues(Style { seam: Seam::WordRewritten, .. }));
        let rewritten = rewrites.then(|| self.document.with_another_word());
        [self.document.text.clone()].into_iter().chain(rewritten).collect()
    }

    /// Returns every request so far.
    pub fn calls(&self) -> Vec<Call> {
        self.memory.lock().unwrap().calls.clone()
    }

    /// Returns the reply to this request. An error is the reason for a rejection.
    fn say(&self, request: &Value) -> Result<(Asks, Saying), &'static str> {
        let question = Question::read(request, &self.document.text)?;
        let mut memory = self.memory.lock().unwrap();
        let said = match question {
            Question::Anew { limit } => {
                let is_more = memory.first_limit.is_none_or(|first| limit.is_none_or(|limit| limit > first));
                if memory.has_begun && is_more {
                    (Asks::Again, self.say_again())
                } else {
                    // The same limit gives the same reply.
                    (memory.has_begun, memory.first_limit, memory.reached) = (true, limit, self.document.cut);
                    (Asks::First, self.up_to(self.document.cut))
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
                (Asks::Prefill, Saying { text, cut: false })
            }
            // The demanded grammar permits only a new document.
            Question::InWords { forced: true, .. } => (Asks::InWords, self.say_again()),
            Question::InWords { shown, anchor, forced: false } => {
                (Asks::InWords, self.go_on(shown, anchor, &mut memory))
            }
        };
        memory.calls.push(Call {
            asks: said.0,
            prompt_tokens: usize::try_from(prompt_tokens(request)).unwrap(),
            output_tokens: tokens(&said.1.text).len(),
        });
        Ok(said)
    }

    fn up_to(&self, cut: usize) -> Saying {
        Saying { text: self.document.text[..cut].to_owned(), cut: cut < self.document.text.len() }
    }

    fn say_again(&self) -> Saying {
        match self.again {
            Again::Whole => self.up_to(self.document.text.len()),
            Again::Cut(cut) => self.up_to(cut),
            Again::Says(words) => Saying { text: words.to_owned(), cut: false },
        }
    }

    fn go_on(&self, shown: usize, anchor: usize, memory: &mut Memory) -> Saying {
        let style = match &self.manner {
            Manner::Says(words) => return Saying { text: (*words).to_owned(), cut: false },
            Manner::Loops(words) => return Saying { text: words.repeat(LOOPS), cut: true },
            Manner::Continues(style) => style,
        };
        memory.continuations += 1;
        let stops = style.stops_after.filter(|_| memory.continuations == 1);
        let answer = self.document.go_on(style, (anchor, shown, memory.reached));
        let cut = stops.and_then(|stops| {
            let (at, _) = answer.char_indices().nth(stops)?;
            (at > 0).then_some(at)
        });
        match cut {
            None => Saying { text: answer, cut: false },
            Some(at) => {
                // Text before the document's text in the reply is not part of the document.
                let left = answer[at..].len().saturating_sub(style.behind.len());
                memory.reached = self.document.before_the_last(left);
                Saying { text: answer[..at].to_owned(), cut: true }
            }
        }
    }
}

impl Respond for ReadingModel {
    fn respond(&self, request: &Received) -> Answer {
        let request = request.json();
        let saying = match self.say(&request) {
            Ok((_, saying)) => saying,
            Err(reason) => return Answer::error(400, "invalid_request_error", None, reason),
        };
        let said = tokens(&saying.text);
        let finish = if saying.cut { "length" } else { "stop" };
        let usage = (prompt_tokens(&request), said.len() as u64);
        if request["stream"] != true {
            return Answer::json(200, &chat_reply(&saying.text, finish, usage));
        }
        let mut frames = said.into_iter().fold(ChatFrames::new(), ChatFrames::text).finish(finish);
        if request["stream_options"]["include_usage"] == true {
            frames = frames.usage(usage);
        }
        Answer::sse(frames.done())
    }
}

/// Several such models at one address. The user's first message selects the document.
#[derive(Default)]
pub struct Library {
    models: HashMap<String, ReadingModel>,
}

impl Library {
    /// Adds a model, which answers requests that begin with this message.
    #[must_use]
    pub fn with(mut self, first_message: &str, model: ReadingModel) -> Self {
        self.models.insert(first_message.to_owned(), model);
        self
    }

    /// Returns the model that answers requests with this message.
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
