//! A streamed reply, assembled from the pieces that were received.

use endmark_context::count::TextTally;
use endmark_recovery::Ending;

use super::growth::append;
use super::places::Places;
use crate::json::{Decoded, Value};

use super::event::ENTRY_BYTES;
use super::{
    CallProgress, Choice, Continuation, Delta, Event, EventError, Finish, Piece, PieceKey, ToolCall, Usage,
};

/// More choices than a request can ask for. Further choices are not kept.
const MAX_CHOICES: usize = 128;

/// More than providers sign with. A longer signature is not kept.
const MAX_SIGNATURE_BYTES: usize = 1024 * 1024;

/// The state of the stream, apart from its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Readable,
    /// The upstream reported an error.
    Failed,
    /// An event could not be read.
    Broken,
}

/// How completely the pieces of an event represent the received data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fidelity {
    /// All of it, character for character.
    Exact,
    /// Completely, except that half a surrogate pair becomes U+FFFD.
    HalfCharacter,
    /// Incompletely.
    Partial,
}

impl Fidelity {
    /// Returns the fidelity of a string.
    pub(crate) fn from_exactness(is_exact: bool) -> Self {
        if is_exact { Self::Exact } else { Self::HalfCharacter }
    }

    /// Returns `Partial` if more was received than pieces can represent.
    pub(crate) fn partial_if(is_more: bool) -> Self {
        if is_more { Self::Partial } else { Self::Exact }
    }
}

/// Assembles a streamed reply from the pieces that its format's reader finds (PC-9).
///
/// It stores at most `keep_bytes` of texts, names and arguments. Above that limit it drops everything stored, and no
/// choice is [mendable](Choice::mendable). Counting continues.
///
/// ```
/// use endmark_recovery::Ending;
/// use endmark_wire::reply::Received;
/// let received = Received::new(1 << 20);
/// assert_eq!((received.choices(), received.ending(0)), (&[][..], Ending::Dropped));
/// ```
#[derive(Debug, Clone)]
pub struct Received {
    choices: Vec<Choice>,
    places: Places,
    /// Number of bytes that may still be stored. `None` after the limit was reached.
    room: Option<usize>,
    usage: Option<Usage>,
    /// Whether nothing arrived after the last token count.
    is_counted: bool,
    output_tokens: Option<u64>,
    state: State,
    is_done: bool,
    model: Option<String>,
    tier: Option<String>,
    id: Option<String>,
    /// First halves of characters that wait for their second halves, by choice and call.
    halves: Vec<((u32, Option<u32>), u32)>,
}

impl Received {
    /// Creates an empty reply.
    pub fn new(keep_bytes: usize) -> Self {
        Self {
            choices: Vec::new(),
            places: Places::default(),
            room: Some(keep_bytes),
            usage: None,
            is_counted: false,
            output_tokens: None,
            state: State::Readable,
            is_done: false,
            model: None,
            tier: None,
            id: None,
            halves: Vec::new(),
        }
    }

    /// Returns the choices, in the order in which they began.
    pub fn choices(&self) -> &[Choice] {
        &self.choices
    }

    /// Returns the choice with this number, if any part of it arrived.
    pub fn choice_at(&self, index: u32) -> Option<&Choice> {
        self.choices.iter().find(|choice| choice.index == index)
    }

    /// Returns the call with this number of a choice, as received.
    pub fn call_at(&self, choice: u32, call: u32) -> Option<&ToolCall> {
        self.choice_at(choice)?.tool_calls.get(self.places.own_position(choice, call)?)
    }

    /// Returns the position of a call among the calls of its choice.
    pub fn call_position(&self, choice: u32, call: u32) -> Option<usize> {
        self.places.own_position(choice, call)
    }

    /// Returns the last call of a choice whose pieces are sent with this number.
    pub(crate) fn call_sent_as(&self, choice: u32, number: u32) -> Option<&ToolCall> {
        let call = self.choice_at(choice)?.tool_calls.get(self.places.sent_position(choice, number)?)?;
        (call.sent_index().unwrap_or(call.index) == number).then_some(call)
    }

    /// Returns the first number after all calls of a choice.
    pub(crate) fn next_call(&self, choice: u32) -> u32 {
        self.places.next(choice)
    }

    /// Returns the bytes that the calls need in addition to their texts.
    pub fn entry_bytes(&self) -> usize {
        self.places.count() * ENTRY_BYTES
    }

    /// Returns the tokens of the reply as last counted; see [`is_counted`](Self::is_counted).
    pub fn usage(&self) -> Option<&Usage> {
        self.usage.as_ref()
    }

    /// Returns whether the counts cover the whole reply, because it ended and nothing arrived after them. Servers
    /// also send counts in the middle of a reply, and Messages begins with a count without meaning.
    pub fn is_counted(&self) -> bool {
        let ended = self.is_done
            || self.state == State::Failed
            || (!self.choices.is_empty() && self.choices.iter().all(|choice| choice.finish.is_some()));
        self.is_counted && ended
    }

    /// Records that the counts so far do not cover a whole reply.
    pub(crate) fn note_uncounted(&mut self) {
        self.is_counted = false;
    }

    /// Returns the number of generated tokens, from the usage or from anything else that a server reports. If a reply
    /// has several choices, llama.cpp counts only one.
    pub fn output_tokens(&self) -> Option<u64> {
        self.output_tokens
    }

    /// Returns how a choice ended if the stream's bytes end here. A finish reason or the stream's own end is a clean
    /// end. Otherwise it ended with an error that the server reported, or was dropped.
    pub fn ending(&self, choice: u32) -> Ending {
        let finish = self.choice_at(choice).and_then(|choice| choice.finish.as_ref());
        match finish.map(|finish| finish.stop) {
            Some(Some(_)) => Ending::Clean,
            Some(None) => Ending::UpstreamError,
            None if self.state != State::Readable => Ending::UpstreamError,
            None if self.is_done => Ending::Clean,
            None => Ending::Dropped,
        }
    }

    /// Returns whether the stream's own end arrived.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Returns the model that the reply names, or `None` if the stream names none.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Returns the service tier of the reply, or `None` if the stream names none.
    pub fn tier(&self) -> Option<&str> {
        self.tier.as_deref()
    }

    /// Records the service tier of the reply. The last one counts, because the first may be the requested one.
    pub(crate) fn note_tier(&mut self, tier: Option<String>) {
        self.tier = tier.or(self.tier.take());
    }

    /// Updates the number of web searches of a choice, given the number so far.
    pub(crate) fn update_searches(&mut self, index: u32, count: impl FnOnce(u64) -> u64) {
        if let Some(choice) = self.choices.iter_mut().find(|choice| choice.index == index) {
            choice.web_searches = count(choice.web_searches);
        }
    }

    /// Returns the reply's id, as the stream first gives it.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Records the model and the id of the reply. The first values count.
    pub(crate) fn note_identity(&mut self, model: Option<String>, id: Option<String>) {
        self.model = self.model.take().or(model);
        self.id = self.id.take().or(id);
    }

    /// Records that another event follows. After an event that could not be read, the stored content is not reliable.
    pub(crate) fn next_event(&mut self) {
        if self.state == State::Broken {
            self.drop_kept();
        }
    }

    /// Records an event that cannot be read, and returns its error.
    pub(crate) fn note_unreadable(&mut self, error: EventError) -> EventError {
        if error.is_broken_chunk() {
            self.state = State::Broken;
        } else {
            self.drop_kept();
        }
        error
    }

    /// Records the content of an event apart from its choices.
    pub(crate) fn note_event(&mut self, event: &Event, output_tokens: Option<u64>) {
        if event.error.is_some() {
            self.state = State::Failed;
        }
        self.is_done |= event.is_done;
        // Zeros after counts state nothing: some proxies send an empty usage last.
        let usage = event.usage.as_ref().filter(|usage| self.usage.is_none() || !usage.is_zero());
        if let Some(usage) = usage {
            self.usage = Some(usage.clone());
        }
        self.is_counted = usage.is_some() || (self.is_counted && event.pieces.is_empty());
        let counted = usage.map(|usage| usage.completion);
        self.output_tokens = counted.or(output_tokens).or(self.output_tokens);
    }

    /// Decodes the next characters of a choice's text, or of the arguments of this call. Joins halves of a character
    /// that arrive in two pieces.
    pub(crate) fn decode<'a>(
        &mut self,
        choice: u32,
        call: Option<u32>,
        piece: Value<'a>,
    ) -> Option<Decoded<'a>> {
        let known = self.halves.iter().position(|(of, _)| *of == (choice, call));
        let half = known.map(|known| self.halves[known].1);
        let (mut decoded, waits) = piece.decode_after(half)?;
        if let Some(known) = known {
            self.halves.swap_remove(known);
        }
        match waits {
            Some(half) if self.halves.len() < MAX_CHOICES => self.halves.push(((choice, call), half)),
            Some(_) => {
                decoded.text.to_mut().push(char::REPLACEMENT_CHARACTER);
                decoded.exact = false;
            }
            None => {}
        }
        Some(decoded)
    }

    /// Adds pieces of one choice. `legacy` is the form of a tool call among them.
    pub(crate) fn add_pieces(&mut self, index: u32, pieces: &[Delta], legacy: bool) {
        let is_known = |call| self.places.own_position(index, call).is_some();
        let cost: usize = pieces.iter().map(|delta| delta.piece.cost(is_known)).sum();
        if self.choice_at(index).is_none() && self.choices.len() < MAX_CHOICES {
            self.choices.push(Choice { mendable: self.room.is_some(), ..Choice::new(index) });
        }
        self.room = self.room.and_then(|room| room.checked_sub(cost));
        if self.room.is_none() {
            self.stop_keeping();
        }
        let keep = self.room.is_some();
        if let Some(choice) = self.choices.iter_mut().find(|choice| choice.index == index) {
            for delta in pieces {
                choice.add(&delta.piece, legacy, keep.then_some(&mut self.places));
            }
        }
    }

    /// Records how a choice ended, if it did, and how completely its pieces represent what was sent.
    pub(crate) fn end(&mut self, index: u32, finish: Option<Finish>, fidelity: Fidelity) {
        let half_open = self.halves.iter().any(|((choice, _), _)| *choice == index);
        if let Some(choice) = self.choices.iter_mut().find(|choice| choice.index == index) {
            choice.half_open = half_open;
            choice.mendable &= fidelity != Fidelity::Partial;
            choice.exact &= fidelity != Fidelity::HalfCharacter;
            choice.end(finish);
        }
    }

    /// Records where the last self-contained part of the text begins.
    pub(crate) fn note_part_begin(&mut self, index: u32, at: usize) {
        if let Some(choice) = self.choices.iter_mut().find(|choice| choice.index == index) {
            choice.last_part = at.min(choice.text.len());
        }
    }

    /// Returns the tally of what the model wrote in a choice. Parts without pieces add to it.
    pub(crate) fn written_tally(&mut self, index: u32) -> Option<&mut TextTally> {
        self.choices.iter_mut().find(|choice| choice.index == index).map(|choice| &mut choice.written)
    }

    /// Records that a choice has a part that no request can contain; see [`Choice::has_unrequestable_part`].
    pub(crate) fn note_unrequestable(&mut self, index: u32) {
        self.add_pieces(index, &[], false);
        if let Some(choice) = self.choices.iter_mut().find(|choice| choice.index == index) {
            choice.note_unshowable();
        }
    }

    /// Records that a choice has more than a request can contain, although that did not arrive last.
    pub(crate) fn note_extra_content(&mut self, index: u32) {
        self.add_pieces(index, &[], false);
        if let Some(choice) = self.choices.iter_mut().find(|choice| choice.index == index) {
            choice.has_unrequestable_part = true;
        }
    }

    /// Records that the model reasoned without showing any of it.
    pub(crate) fn note_hidden_reasoning(&mut self, index: u32) {
        if let Some(choice) = self.choices.iter_mut().find(|choice| choice.index == index) {
            choice.note_thought();
        }
    }

    /// Records whether more of a choice's call will follow.
    pub(crate) fn set_unfinished(&mut self, index: u32, will: bool) {
        if let Some(choice) = self.choices.iter_mut().find(|choice| choice.index == index) {
            choice.unfinished = will;
        }
    }

    /// Records that the server could not parse the arguments of a choice's last call, although it sent an object for
    /// them.
    pub(crate) fn note_unread_call(&mut self, index: u32) {
        let choice = self.choices.iter_mut().find(|choice| choice.index == index);
        if let Some(call) = choice.and_then(|choice| choice.tool_calls.last_mut()) {
            call.arguments = String::new();
        }
    }

    /// Records the token by which the provider continues a choice from its current end.
    pub(crate) fn set_continuation(&mut self, index: u32, token: Option<String>) {
        if let Some(choice) = self.choices.iter_mut().find(|choice| choice.index == index)
            && let Some(token) = token
        {
            choice.continuation = Some(Continuation { token, text: choice.text.len() });
        }
    }

    /// Records how a stream's pieces identify the call with this number.
    pub(crate) fn note_piece_key(&mut self, index: u32, call: u32, place: PieceKey) {
        let Some(position) = self.places.own_position(index, call) else { return };
        let choice = self.choices.iter_mut().find(|choice| choice.index == index);
        if let Some(call) = choice.and_then(|choice| choice.tool_calls.get_mut(position)) {
            call.place = place;
            self.places.note_sent(index, call.sent_index().unwrap_or(call.index), position);
        }
    }

    /// Records that the call with this number takes free text.
    pub(crate) fn note_free_text(&mut self, index: u32, call: u32) {
        if let Some(call) = self.call_mut(index, call) {
            call.free_text = true;
        }
    }

    /// Records whether the server reports the call with this number as complete.
    pub(crate) fn note_progress(&mut self, index: u32, call: u32, progress: CallProgress) {
        if let Some(call) = self.call_mut(index, call) {
            call.progress = progress;
        }
    }

    fn call_mut(&mut self, index: u32, call: u32) -> Option<&mut ToolCall> {
        let position = self.places.own_position(index, call)?;
        self.choices.iter_mut().find(|choice| choice.index == index)?.tool_calls.get_mut(position)
    }

    /// Records the provider's signature of a choice's text, or of the call with this number.
    pub(crate) fn note_signature(&mut self, index: u32, call: Option<u32>, signature: String) {
        if signature.len() > MAX_SIGNATURE_BYTES {
            return;
        }
        let position = call.and_then(|call| self.places.own_position(index, call));
        let choice = self.choices.iter_mut().find(|choice| choice.index == index && choice.mendable);
        let Some(choice) = choice else { return };
        match call {
            None => choice.signature = Some(signature),
            Some(_) => {
                if let Some(call) = position.and_then(|position| choice.tool_calls.get_mut(position)) {
                    call.signature = Some(signature);
                }
            }
        }
    }

    /// Drops everything kept. No choice is mendable from now on.
    fn drop_kept(&mut self) {
        self.room = None;
        self.stop_keeping();
    }

    fn stop_keeping(&mut self) {
        self.places = Places::default();
        for choice in &mut self.choices {
            choice.mendable = false;
            choice.text = String::new();
            choice.last_part = 0;
            choice.last_call_at = 0;
            choice.tool_calls = Vec::new();
        }
    }
}

impl Choice {
    /// Adds a piece. Its text, or its call with its position, is stored only if `kept` is given.
    fn add(&mut self, piece: &Piece, legacy: bool, kept: Option<&mut Places>) {
        match piece {
            Piece::Text(text) => {
                self.received += text.len();
                self.written.add(text);
                append(&mut self.text, if kept.is_some() { text } else { "" });
                self.ends_in_unshown_part &= text.is_empty();
            }
            Piece::Reasoning(text) => {
                self.written.add(text);
                self.note_thought();
            }
            Piece::Refusal(text) => {
                self.written.add(text);
                self.is_refused = true;
            }
            Piece::ToolCall { index, id, name, arguments } => {
                self.ends_in_unshown_part = false;
                self.received += arguments.len();
                self.written.add(arguments);
                if let Some(places) = kept {
                    self.last_call_at = self.text.len();
                    let call = self.call(*index, legacy, places);
                    call.id = call.id.take().or_else(|| id.clone());
                    if let Some(name) = name.as_ref().filter(|_| call.name.is_empty()) {
                        call.name.clone_from(name);
                    }
                    append(&mut call.arguments, arguments);
                }
            }
        }
    }

    /// Returns the call with this number, or creates it.
    fn call(&mut self, index: u32, legacy: bool, places: &mut Places) -> &mut ToolCall {
        let position = places.own_position(self.index, index).unwrap_or_else(|| {
            places.note_begin(self.index, index, self.tool_calls.len());
            self.tool_calls.push(ToolCall { index, legacy, ..ToolCall::default() });
            self.tool_calls.len() - 1
        });
        &mut self.tool_calls[position]
    }
}
