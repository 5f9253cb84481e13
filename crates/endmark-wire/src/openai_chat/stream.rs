//! A streamed reply, chunk by chunk.

use endmark_core::Ending;

use super::choice::{Choice, index_of, reasoning_of, said};
use super::content::text_of;
use super::error::read_error_field;
use super::finish::read_finish;
use super::tool_call::{CallView, ToolCall};
use super::{ChatRequest, Finish, ProviderError, Template, Usage};
use crate::json::{JsonError, Kind, Value};
use crate::sse::Frame;

/// What a call costs of the limit on what is kept, besides its text.
const ENTRY_BYTES: usize = 64;

/// A chunk has some of these, however it was broken.
const JSON_MARKS: [char; 5] = ['{', '}', '[', ']', '"'];

/// More choices than a request can ask for; of others nothing is kept.
const MAX_CHOICES: usize = 128;

/// A frame of a stream that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChunkError {
    /// The data is no JSON.
    #[error("a chunk of the stream is no JSON: {0}")]
    NotJson(#[source] JsonError),
    /// The data is JSON, but no object.
    #[error("a chunk of the stream is no object")]
    NoObject,
    /// The frame holds bytes that are no UTF-8.
    #[error("a chunk of the stream is not UTF-8")]
    NotUtf8,
    /// The data has nothing of JSON in it, as the `ping` of some servers.
    #[error("an event of the stream is no chunk")]
    NoChunk,
}

impl ChunkError {
    /// Whether it may have been a chunk, and a part of the reply is lost with it.
    pub fn is_broken_chunk(&self) -> bool {
        match self {
            Self::NotJson(_) | Self::NoObject | Self::NotUtf8 => true,
            Self::NoChunk => false,
        }
    }
}

/// What one frame of a stream says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chunk {
    /// What came of the choices, in order.
    pub pieces: Vec<Delta>,
    /// The choices that ended.
    pub finishes: Vec<Finish>,
    /// Tokens of the whole reply, if the chunk counts them.
    pub usage: Option<Usage>,
    /// The error that ended the reply.
    pub error: Option<ProviderError>,
    /// The stream's own end: `[DONE]`.
    pub done: bool,
    /// The chunk has no choices, as the one at the end that only counts tokens.
    pub no_choices: bool,
}

/// A piece of a choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delta {
    /// Which choice it is of.
    pub choice: u32,
    /// What came.
    pub piece: Piece,
}

/// What came of a choice. Texts are never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Text.
    Text(String),
    /// Reasoning, which is no part of the text.
    Reasoning(String),
    /// The words of a refusal.
    Refusal(String),
    /// The beginning or the next piece of a tool call.
    ToolCall {
        /// Its number among the choice's calls.
        index: u32,
        /// Its id, where it is given.
        id: Option<String>,
        /// The function's name, where it is given.
        name: Option<String>,
        /// The next characters of the arguments.
        arguments: String,
    },
}

/// Reads a stream, and keeps what has come of it (PC-9).
///
/// At most `keep_bytes` of texts, names and arguments are kept: past that everything kept is dropped and no
/// choice is [mendable](Choice::mendable) any more, while the chunks are read as before.
///
/// ```
/// use endmark_wire::openai_chat::{ChatRequest, ChatStream};
/// let request = ChatRequest::parse(br#"{"messages":[],"stream":true}"#)?;
/// let mut stream = ChatStream::new(&request, 1 << 20);
/// stream.chunk(r#"{"id":"c1","choices":[{"index":0,"delta":{"role":"assistant","content":null}}]}"#)?;
/// stream.chunk(r#"{"id":"c1","choices":[{"index":0,"delta":{"content":"Hello"}}]}"#)?;
/// let chunk = stream.chunk(r#"{"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"length"}]}"#)?;
/// assert_eq!(chunk.finishes[0].word, "length");
/// assert_eq!(stream.choices()[0].text, "Hello");
/// let rest = r#"{"id":"c1","choices":[{"index":0,"delta":{"content":", world"},"finish_reason":null}]}"#;
/// assert_eq!(stream.template().text_chunk(0, ", world"), rest.as_bytes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct ChatStream {
    has_stop: bool,
    choices: Vec<Choice>,
    /// How many bytes may still be kept; none once they were used up, or were given up.
    room: Option<usize>,
    usage: Option<Usage>,
    output_tokens: Option<u64>,
    state: State,
    template: Option<Template>,
    fallback: Template,
    done: bool,
}

/// What the stream says of itself, besides its chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Well,
    /// The upstream reported an error.
    Failed,
    /// A chunk could not be read.
    Broken,
}

impl ChatStream {
    /// A stream that answers this request.
    pub fn new(request: &ChatRequest, keep_bytes: usize) -> Self {
        Self {
            has_stop: request.has_stop,
            choices: Vec::new(),
            room: Some(keep_bytes),
            usage: None,
            output_tokens: None,
            state: State::Well,
            template: None,
            fallback: Template::new(&request.model),
            done: false,
        }
    }

    /// Reads a frame; a comment says nothing.
    ///
    /// A broken chunk ends what can be said of the reply: what came before it is kept, but what it held is
    /// missing in all that follows. Once more is read, no choice is mendable.
    pub fn frame(&mut self, frame: &Frame) -> Result<Chunk, ChunkError> {
        match &frame.data {
            Some(_) if frame.damaged => Err(self.broken(ChunkError::NotUtf8)),
            Some(data) => self.chunk(data),
            None => Ok(Chunk::default()),
        }
    }

    /// Reads the data of a frame; see [`ChatStream::frame`].
    pub fn chunk(&mut self, data: &str) -> Result<Chunk, ChunkError> {
        if self.state == State::Broken {
            self.give_up();
        }
        match data.trim() {
            "" => return Ok(Chunk::default()),
            "[DONE]" => {
                self.done = true;
                return Ok(Chunk { done: true, ..Chunk::default() });
            }
            _ => {}
        }
        let root = match Value::parse_str(data) {
            Ok(root) if root.kind() == Kind::Object => root,
            Ok(_) => return Err(self.broken(ChunkError::NoObject)),
            Err(_) if !data.contains(JSON_MARKS) => {
                self.give_up();
                return Err(ChunkError::NoChunk);
            }
            Err(error) => return Err(self.broken(ChunkError::NotJson(error))),
        };
        let mut chunk = Chunk { no_choices: true, error: read_error_field(root), ..Chunk::default() };
        for (position, choice) in (0..).zip(root.field("choices").into_iter().flat_map(Value::items)) {
            chunk.no_choices = false;
            self.choice(choice, index_of(choice).unwrap_or(position), &mut chunk);
        }
        if !chunk.no_choices && self.template.is_none() {
            self.template = Some(Template::read(root));
        }
        if chunk.error.is_some() {
            self.state = State::Failed;
        }
        chunk.usage = root.field("usage").and_then(Usage::read);
        self.usage = chunk.usage.or(self.usage);
        // llama.cpp counts here where usage was not asked for.
        let predicted = root.at("timings.predicted_n").and_then(Value::as_u64);
        self.output_tokens = chunk.usage.map(|usage| usage.completion).or(predicted).or(self.output_tokens);
        Ok(chunk)
    }

    /// The choices, in the order in which they began.
    pub fn choices(&self) -> &[Choice] {
        &self.choices
    }

    /// The choice with this number, if anything came of it.
    pub fn choice_at(&self, index: u32) -> Option<&Choice> {
        self.choices.iter().find(|choice| choice.index == index)
    }

    /// Tokens of the whole reply, once they were counted.
    pub fn usage(&self) -> Option<Usage> {
        self.usage
    }

    /// Tokens that were generated, by the usage or by what else a server says. Of a reply with several choices
    /// llama.cpp counts one.
    pub fn output_tokens(&self) -> Option<u64> {
        self.output_tokens
    }

    /// How a choice has ended if the stream's bytes end here: cleanly with its finish reason or with the
    /// stream's own end; else by an error the server reported; else it was dropped.
    pub fn ending(&self, choice: u32) -> Ending {
        let finish = self.choice_at(choice).and_then(|choice| choice.finish.as_ref());
        match finish.map(|finish| finish.stop) {
            Some(Some(_)) => Ending::Clean,
            Some(None) => Ending::UpstreamError,
            None if self.state != State::Well => Ending::UpstreamError,
            None if self.done => Ending::Clean,
            None => Ending::Dropped,
        }
    }

    /// Whether the stream's own end was seen.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// What chunks of this stream look like, for making more of them.
    pub fn template(&self) -> &Template {
        self.template.as_ref().unwrap_or(&self.fallback)
    }

    /// Drops what is kept: from now on no choice is mendable, while chunks are read as before.
    fn give_up(&mut self) {
        self.room = None;
        self.keep_nothing();
    }

    fn broken(&mut self, error: ChunkError) -> ChunkError {
        self.state = State::Broken;
        error
    }

    fn keep_nothing(&mut self) {
        for choice in &mut self.choices {
            choice.mendable = false;
            choice.text = String::new();
            choice.tool_calls = Vec::new();
        }
    }

    fn choice(&mut self, value: Value<'_>, index: u32, chunk: &mut Chunk) {
        let pieces_before = chunk.pieces.len();
        let mut exact = true;
        if let Some(delta) = value.field("delta") {
            self.pieces(delta, index, &mut exact, &mut chunk.pieces);
        }
        let pieces = chunk.pieces.get(pieces_before..).unwrap_or_default();
        let legacy = value.at("delta.function_call").is_some_and(|call| !call.is_null());
        self.keep(index, pieces, legacy);
        let refused = self.choice_at(index).is_some_and(|choice| choice.refused);
        let finish = read_finish(value, index, self.has_stop, refused);
        chunk.finishes.extend(finish.clone());
        if let Some(choice) = self.choices.iter_mut().find(|choice| choice.index == index) {
            choice.mendable &= exact;
            choice.end(finish);
        }
    }

    /// What a delta holds. Content of several kinds comes in the order in which a model writes it.
    fn pieces(&self, delta: Value<'_>, choice: u32, exact: &mut bool, pieces: &mut Vec<Delta>) {
        let mut push = |piece| pieces.push(Delta { choice, piece });
        if let Some(reasoning) = reasoning_of(delta) {
            push(Piece::Reasoning(reasoning));
        }
        if let Some(content) =
            delta.field("content").and_then(text_of).filter(|content| !content.text.is_empty())
        {
            *exact &= content.exact;
            push(Piece::Text(content.text));
        }
        if let Some(refusal) = said(delta, "refusal") {
            push(Piece::Refusal(refusal));
        }
        let known = self.choice_at(choice).map(|choice| choice.tool_calls.as_slice()).unwrap_or_default();
        let mut last = known.last().map(|call| call.index);
        for call in CallView::all(delta) {
            let (arguments, arguments_exact) = call.arguments_text();
            *exact &= arguments_exact && call.of_function;
            // Without an index, an id or a name begins the next call, and anything else goes on with the last.
            let begins = call.id.is_some() || call.name.is_some();
            let next = || last.map_or(0, |last| if begins { last.saturating_add(1) } else { last });
            let index = call.index.unwrap_or_else(next);
            last = Some(index);
            push(Piece::ToolCall { index, id: call.id, name: call.name, arguments });
        }
    }

    /// Adds pieces to what is kept of a choice.
    fn keep(&mut self, index: u32, pieces: &[Delta], legacy: bool) {
        let known = self.choice_at(index);
        let calls = known.map(|choice| choice.tool_calls.as_slice()).unwrap_or_default();
        let cost: usize = pieces.iter().map(|delta| delta.piece.cost(calls)).sum();
        if known.is_none() && self.choices.len() < MAX_CHOICES {
            self.choices.push(Choice { mendable: self.room.is_some(), ..Choice::new(index) });
        }
        self.room = self.room.and_then(|room| room.checked_sub(cost));
        if self.room.is_none() {
            self.keep_nothing();
        }
        let keep = self.room.is_some();
        if let Some(choice) = self.choices.iter_mut().find(|choice| choice.index == index) {
            for delta in pieces {
                choice.add(&delta.piece, legacy, keep);
            }
        }
    }
}

impl Piece {
    /// How many bytes it takes to keep this, next to these calls.
    fn cost(&self, calls: &[ToolCall]) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Reasoning(_) | Self::Refusal(_) => 0,
            Self::ToolCall { index, id, name, arguments } => {
                let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
                let is_new = !calls.iter().any(|call| call.index == *index);
                arguments.len() + length(id) + length(name) + if is_new { ENTRY_BYTES } else { 0 }
            }
        }
    }
}

impl Choice {
    /// Adds a piece; its text only if it is to be kept.
    fn add(&mut self, piece: &Piece, legacy: bool, keep: bool) {
        match piece {
            Piece::Text(text) => {
                self.received += text.len();
                self.text.push_str(if keep { text } else { "" });
            }
            Piece::Reasoning(_) => self.reasoned = true,
            Piece::Refusal(_) => self.refused = true,
            Piece::ToolCall { index, id, name, arguments } => {
                self.received += arguments.len();
                if keep {
                    let call = self.call(*index, legacy);
                    call.id = call.id.take().or_else(|| id.clone());
                    if let Some(name) = name.as_ref().filter(|_| call.name.is_empty()) {
                        call.name.clone_from(name);
                    }
                    call.arguments.push_str(arguments);
                }
            }
        }
    }

    /// The call with this number; a new one if there is none.
    fn call(&mut self, index: u32, legacy: bool) -> &mut ToolCall {
        let known = self.tool_calls.iter().position(|call| call.index == index);
        let position = known.unwrap_or_else(|| {
            self.tool_calls.push(ToolCall { index, legacy, ..ToolCall::default() });
            self.tool_calls.len() - 1
        });
        &mut self.tool_calls[position]
    }
}

#[cfg(test)]
mod tests;
