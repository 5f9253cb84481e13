//! A streamed reply, assembled from its received pieces.

use endmark_context::count::TextTally;
use endmark_recovery::Ending;

use super::growth::append;
use super::places::CallPositions;
use crate::json::{DecodedString, Value};

use super::event::ENTRY_BYTES;
use super::{
    CallProgress, Choice, ChoicePiece, Continuation, Event, EventError, Finish, Piece, PieceKey, ToolCall,
    Usage,
};

/// No request can ask for more choices than this. Further choices are not kept.
const MAX_CHOICES: usize = 128;

/// Maximum length of a signature in bytes. No provider sends longer ones, and longer ones are not kept.
const MAX_SIGNATURE_BYTES: usize = 1024 * 1024;

/// Whether the stream can still be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamState {
    Readable,
    /// The upstream reported an error.
    Failed,
    /// An event could not be read.
    Broken,
}

/// How completely the pieces of an event represent the received data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fidelity {
    /// Completely, character for character.
    Exact,
    /// Completely, except that half a surrogate pair becomes U+FFFD.
    HalfCharacter,
    /// Incompletely.
    Partial,
}

impl Fidelity {
    /// Returns the fidelity of a decoded string.
    pub(crate) fn from_exactness(is_exact: bool) -> Self {
        if is_exact { Self::Exact } else { Self::HalfCharacter }
    }

    /// Returns `Partial` if more was received than the pieces represent, or else `Exact`.
    pub(crate) fn partial_if(is_more: bool) -> Self {
        if is_more { Self::Partial } else { Self::Exact }
    }
}

/// Assembles a streamed reply from the pieces that its format's reader finds (PC-9).
///
/// It stores at most `keep_bytes` of texts, names and arguments. Beyond that limit it drops everything
/// stored, and no choice is [mendable](Choice::is_mendable). Counting continues.
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
    places: CallPositions,
    /// The number of bytes that may still be stored. `None` after the limit was exceeded.
    bytes_left: Option<usize>,
    usage: Option<Usage>,
    /// Whether no content arrived after the last token count.
    is_counted: bool,
    output_tokens: Option<u64>,
    state: StreamState,
    is_done: bool,
    model: Option<String>,
    tier: Option<String>,
    id: Option<String>,
    /// First halves of surrogate pairs that wait for their second halves, by choice and call.
    half_characters: Vec<((u32, Option<u32>), u32)>,
}

impl Received {
    /// Creates an empty reply.
    pub fn new(keep_bytes: usize) -> Self {
        Self {
            choices: Vec::new(),
            places: CallPositions::default(),
            bytes_left: Some(keep_bytes),
            usage: None,
            is_counted: false,
            output_tokens: None,
            state: StreamState::Readable,
            is_done: false,
            model: None,
            tier: None,
            id: None,
            half_characters: Vec::new(),
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

    /// Returns the last call of a choice whose pieces have this number.
    pub(crate) fn call_sent_as(&self, choice: u32, number: u32) -> Option<&ToolCall> {
        let call = self.choice_at(choice)?.tool_calls.get(self.places.sent_position(choice, number)?)?;
        (call.sent_index().unwrap_or(call.index) == number).then_some(call)
    }

    /// Returns the first unused call number of a choice.
    pub(crate) fn next_call(&self, choice: u32) -> u32 {
        self.places.next(choice)
    }

    /// Returns the bytes of memory that the calls need in addition to their texts.
    pub fn entry_bytes(&self) -> usize {
        self.places.count() * ENTRY_BYTES
    }

    /// Returns the tokens of the reply as last counted; see [`is_counted`](Self::is_counted).
    pub fn usage(&self) -> Option<&Usage> {
        self.usage.as_ref()
    }

    /// Returns whether the counts cover the whole reply, because it ended and no content arrived after them.
    /// Servers also send counts in the middle of a reply, and the count at the beginning of a Messages stream
    /// is meaningless.
    pub fn is_counted(&self) -> bool {
        let ended = self.is_done
            || self.state == StreamState::Failed
            || (!self.choices.is_empty() && self.choices.iter().all(|choice| choice.finish.is_some()));
        self.is_counted && ended
    }

    /// Records that the counts so far do not cover a whole reply.
    pub(crate) fn note_uncounted(&mut self) {
        self.is_counted = false;
    }

    /// Returns the number of generated tokens, from the usage or from another report of the server. If a
    /// reply has several choices, llama.cpp counts only one.
    pub fn output_tokens(&self) -> Option<u64> {
        self.output_tokens
    }

    /// Returns how a choice ended if the stream's bytes end here. It ended cleanly if a finish reason or the
    /// stream's own end arrived. Otherwise the server reported an error, or the connection was dropped.
    pub fn ending(&self, choice: u32) -> Ending {
        let finish = self.choice_at(choice).and_then(|choice| choice.finish.as_ref());
        match finish.map(|finish| finish.stop) {
            Some(Some(_)) => Ending::Clean,
            Some(None) => Ending::UpstreamError,
            None if self.state != StreamState::Readable => Ending::UpstreamError,
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

    /// Records the service tier of the reply. The last value counts, because the first may be the requested
    /// tier.
    pub(crate) fn note_tier(&mut self, tier: Option<String>) {
        self.tier = tier.or(self.tier.take());
    }

    /// Updates the number of web searches of a choice. `count` gets the number so far.
    pub(crate) fn update_searches(&mut self, index: u32, count: impl FnOnce(u64) -> u64) {
        if let Some(choice) = self.choices.iter_mut().find(|choice| choice.index == index) {
            choice.web_searches = count(choice.web_searches);
        }
    }

    /// Returns the reply's id: the first one that the stream contained.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Records the model and the id of the reply. The first values count.
    pub(crate) fn note_identity(&mut self, model: Option<String>, id: Option<String>) {
        self.model = self.model.take().or(model);
        self.id = self.id.take().or(id);
    }

    /// Records that another event follows. After an unreadable event, the stored content is then no longer
    /// reliable.
    pub(crate) fn next_event(&mut self) {
        if self.state == StreamState::Broken {
            self.drop_stored_content();
        }
    }

    /// Records an unreadable event and returns its error.
    pub(crate) fn note_unreadable(&mut self, error: EventError) -> EventError {
        if error.is_broken_chunk() {
            self.state = StreamState::Broken;
        } else {
            self.drop_stored_content();
        }
        error
    }

    /// Records the content of an event outside its choices.
    pub(crate) fn note_event(&mut self, event: &Event, output_tokens: Option<u64>) {
        if event.error.is_some() {
            self.state = StreamState::Failed;
        }
        self.is_done |= event.is_done;
        // Ignore zeros after counts, because some proxies send an empty usage last.
        let usage = event.usage.as_ref().filter(|usage| self.usage.is_none() || !usage.is_zero());
        if let Some(usage) = usage {
            self.usage = Some(usage.clone());
        }
        self.is_counted = usage.is_some() || (self.is_counted && event.pieces.is_empty());
        let counted = usage.map(|usage| usage.completion);
        self.output_tokens = counted.or(output_tokens).or(self.output_tokens);
    }

    /// Decodes the next characters of a choice's text or, if `call` is given, of the arguments of that call.
    /// Joins halves of a character that arrive in two pieces.
    pub(crate) fn decode<'a>(
        &mut self,
        choice: u32,
        call: Option<u32>,
        piece: Value<'a>,
    ) -> Option<DecodedString<'a>> {
        let known = self.half_characters.iter().position(|(of, _)| *of == (choice, call));
        let half = known.map(|known| self.half_characters[known].1);
        let (mut decoded, waits) = piece.decode_after(half)?;
        if let Some(known) = known {
            self.half_characters.swap_remove(known);
        }
        match waits {
            Some(half) if self.half_characters.len() < MAX_CHOICES => {
                self.half_characters.push(((choice, call), half));
            }
            Some(_) => {
                decoded.text.to_mut().push(char::REPLACEMENT_CHARACTER);
                decoded.exact = false;
            }
            None => {}
        }
        Some(decoded)
    }

    /// Adds pieces of one choice. `legacy` is whether their tool call is a legacy `function_call`.
    pub(crate) fn add_pieces(&mut self, index: u32, pieces: &[ChoicePiece], legacy: bool) {
        let is_known = |call| self.places.own_position(index, call).is_some();
        let cost: usize = pieces.iter().map(|delta| delta.piece.stored_bytes(is_known)).sum();
        if self.choice_at(index).is_none() && self.choices.len() < MAX_CHOICES {
            self.choices.push(Choice { is_mendable: self.bytes_left.is_some(), ..Choice::new(index) });
        }
        self.bytes_left = self.bytes_left.and_then(|room| room.checked_sub(cost));
        if self.bytes_left.is_none() {
            self.stop_storing();
        }
        let keep = self.bytes_left.is_some();
        if let Some(choice) = self.choices.iter_mut().find(|choice| choice.index == index) {
            for delta in pieces {
                choice.add(&delta.piece, legacy, keep.then_some(&mut self.places));
            }
        }
    }

    /// Records how a choice ended, if it did, and how completely its pieces represent what was sent.
    pub(crate) fn end(&mut self, index: u32, finish: Option<Finish>, fidelity: Fidelity) {
        let half_open = self.half_characters.iter().any(|((choice, _), _)| *choice == index);
        if let Some(choice) = self.choices.iter_mut().find(|choice| choice.index == index) {
            choice.half_open = half_open;
            choice.is_mendable &= fidelity != Fidelity::Partial;
            choice.exact &= fidelity != Fidelity::HalfCharacter;
            choice.end(finish);
        }
    }

    /// Records the position in the text at which the last independent part begins.
    pub(crate) fn note_part_begin(&mut self, index: u32, at: usize) {
        if let Some(choice) = self.choices.iter_mut().find(|choice| choice.index == index) {
            choice.last_part_start = at.min(choice.text.len());
        }
    }

    /// Returns the tally of what the model wrote in a choice, to add parts that are not pieces.
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

    /// Records that a choice has a part that no request can contain. Unlike after
    /// [`note_unrequestable`](Self::note_unrequestable), the choice need not end in that part.
    pub(crate) fn note_extra_content(&mut self, index: u32) {
        self.add_pieces(index, &[], false);
        if let Some(choice) = self.choices.iter_mut().find(|choice| choice.index == index) {
            choice.has_unrequestable_part = true;
        }
    }

    /// Records that the model reasoned without returning the reasoning.
    pub(crate) fn note_hidden_reasoning(&mut self, index: u32) {
        if let Some(choice) = self.choices.iter_mut().find(|choice| choice.index == index) {
            choice.note_thought();
        }
    }

    /// Records whether more of a choice's call will follow.
    pub(crate) fn set_unfinished(&mut self, index: u32, is_unfinished: bool) {
        if let Some(choice) = self.choices.iter_mut().find(|choice| choice.index == index) {
            choice.is_unfinished = is_unfinished;
        }
    }

    /// Records that the server could not parse the arguments of a choice's last call, although it sent an
    /// object.
    pub(crate) fn note_unparsed_arguments(&mut self, index: u32) {
        let choice = self.choices.iter_mut().find(|choice| choice.index == index);
        if let Some(call) = choice.and_then(|choice| choice.tool_calls.last_mut()) {
            call.arguments = String::new();
        }
    }

    /// Records the provider's token that continues a choice from its current end.
    pub(crate) fn set_continuation(&mut self, index: u32, token: Option<String>) {
        if let Some(choice) = self.choices.iter_mut().find(|choice| choice.index == index)
            && let Some(token) = token
        {
            choice.continuation = Some(Continuation { token, text: choice.text.len() });
        }
    }

    /// Records how the stream's pieces identify the call with this number.
    pub(crate) fn note_piece_key(&mut self, index: u32, call: u32, place: PieceKey) {
        let Some(position) = self.places.own_position(index, call) else { return };
        let choice = self.choices.iter_mut().find(|choice| choice.index == index);
        if let Some(call) = choice.and_then(|choice| choice.tool_calls.get_mut(position)) {
            call.piece_key = place;
            self.places.note_sent_number(index, call.sent_index().unwrap_or(call.index), position);
        }
    }

    /// Records that the tool of the call with this number accepts free text.
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
        let choice = self.choices.iter_mut().find(|choice| choice.index == index && choice.is_mendable);
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

    /// Drops all stored content. No choice is mendable from now on.
    fn drop_stored_content(&mut self) {
        self.bytes_left = None;
        self.stop_storing();
    }

    fn stop_storing(&mut self) {
        self.places = CallPositions::default();
        for choice in &mut self.choices {
            choice.is_mendable = false;
            choice.text = String::new();
            choice.last_part_start = 0;
            choice.last_call_at = 0;
            choice.tool_calls = Vec::new();
        }
    }
}

impl Choice {
    /// Adds a piece. Stores its content only if `kept` is given.
    fn add(&mut self, piece: &Piece, legacy: bool, kept: Option<&mut CallPositions>) {
        match piece {
            Piece::Text(text) => {
                self.received_bytes += text.len();
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
                self.received_bytes += arguments.len();
                self.written.add(arguments);
                if let Some(places) = kept {
                    self.last_call_at = self.text.len();
                    let call = self.call_or_new(*index, legacy, places);
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
    fn call_or_new(&mut self, index: u32, legacy: bool, places: &mut CallPositions) -> &mut ToolCall {
        let position = places.own_position(self.index, index).unwrap_or_else(|| {
            places.note_begin(self.index, index, self.tool_calls.len());
            self.tool_calls.push(ToolCall { index, legacy, ..ToolCall::default() });
            self.tool_calls.len() - 1
        });
        &mut self.tool_calls[position]
    }
}
