//! Edits of a conversation by turn and part, and the changes that several edits make together.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::{Content, Conversation, Part, PartPosition, ResultTurns, Role, ToolResult, Turn};

/// One edit. Its indexes refer to the conversation before all edits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// Drops a turn.
    DropTurn(usize),
    /// Drops a part. A turn without any parts left is dropped, too.
    DropPart(PartPosition),
    /// Replaces a text, or the text of a tool result.
    SetText {
        /// The part.
        place: PartPosition,
        /// The new text.
        text: String,
    },
    /// Inserts a message before the turn at this index, or at the end.
    Insert {
        /// The index of the turn. The number of turns means the end.
        before: usize,
        /// The message.
        message: InsertedMessage,
    },
    /// Replaces turns by a message.
    Replace {
        /// The range of turns. It must not be empty.
        turns: Range<usize>,
        /// The message.
        message: InsertedMessage,
    },
}

/// A message to insert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InsertedMessage {
    /// A text of the user.
    User(String),
    /// Tool results, at least one. The format decides how many messages they need.
    Results(Vec<NewResult>),
}

/// A tool result in an inserted message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewResult {
    /// An existing result that is moved into the message.
    Moved(PartPosition),
    /// A placeholder for a missing result.
    Absent {
        /// The call without a result.
        call: PartPosition,
        /// Text of the placeholder.
        text: String,
    },
}

/// Error of an edit that does not fit the conversation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The turn or the part does not exist.
    #[error("there is no part {} in turn {} of {turns}", place.part, place.turn)]
    NoSuchPart {
        /// The position in the edit.
        place: PartPosition,
        /// The number of turns in the conversation.
        turns: usize,
    },
    /// The edit cannot be applied to a part of this kind.
    #[error("part {} of turn {} is of another kind than this edit needs", place.part, place.turn)]
    WrongKind {
        /// The position in the edit.
        place: PartPosition,
    },
    /// The conversation is a single text instead of a list of turns.
    #[error("the conversation is a single text, and no list of turns")]
    NotAList,
}

/// The changes that several edits make together: dropped turns and parts, new texts, and inserted messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConversationChanges {
    dropped_turns: BTreeSet<usize>,
    dropped_parts: BTreeSet<PartPosition>,
    texts: BTreeMap<PartPosition, String>,
    insertions: BTreeMap<usize, Vec<InsertedMessage>>,
}

impl ConversationChanges {
    /// Checks and combines edits of this conversation.
    ///
    /// If several edits set the text of the same part, the last one applies.
    pub fn new(conversation: &Conversation<'_>, edits: &[Edit]) -> Result<Self, EditError> {
        let mut changes = Self::default();
        for edit in edits {
            changes.add(conversation, edit)?;
        }
        for (position, turn) in conversation.turns.iter().enumerate() {
            let is_dropped = |part| changes.dropped_parts.contains(&PartPosition { turn: position, part });
            if !turn.parts.is_empty() && (0..turn.parts.len()).all(is_dropped) {
                changes.dropped_turns.insert(position);
            }
        }
        Ok(changes)
    }

    fn add(&mut self, conversation: &Conversation<'_>, edit: &Edit) -> Result<(), EditError> {
        match edit {
            Edit::DropTurn(turn) => {
                turn_at(conversation, *turn)?;
                self.dropped_turns.insert(*turn);
            }
            Edit::DropPart(place) => {
                part_at(conversation, *place)?;
                self.dropped_parts.insert(*place);
            }
            Edit::SetText { place, text } => {
                match &part_at(conversation, *place)?.content {
                    Content::Text(_) => {}
                    Content::Result(result) if !result.is_fixed => {}
                    _ => return Err(EditError::WrongKind { place: *place }),
                }
                self.texts.insert(*place, text.clone());
            }
            Edit::Insert { before, message } => self.add_insertion(conversation, *before, message)?,
            Edit::Replace { turns, message } => {
                turn_at(conversation, turns.start)?;
                turn_at(conversation, turns.end.saturating_sub(1).max(turns.start))?;
                self.dropped_turns.extend(turns.clone());
                self.add_insertion(conversation, turns.start, message)?;
            }
        }
        Ok(())
    }

    fn add_insertion(
        &mut self,
        conversation: &Conversation<'_>,
        before: usize,
        message: &InsertedMessage,
    ) -> Result<(), EditError> {
        if before > conversation.turns.len() {
            turn_at(conversation, before)?;
        }
        if let InsertedMessage::Results(results) = message {
            for result in results {
                match result {
                    NewResult::Moved(place) => {
                        part_at(conversation, *place)?
                            .result()
                            .ok_or(EditError::WrongKind { place: *place })?;
                        self.dropped_parts.insert(*place);
                    }
                    NewResult::Absent { call, .. } => {
                        let called = part_at(conversation, *call)?.call();
                        called
                            .filter(|call| call.can_be_answered)
                            .ok_or(EditError::WrongKind { place: *call })?;
                    }
                }
            }
        }
        self.insertions.entry(before).or_default().push(message.clone());
        Ok(())
    }

    /// Whether there are no changes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the whole turn is dropped.
    pub fn drops_turn(&self, turn: usize) -> bool {
        self.dropped_turns.contains(&turn)
    }

    /// Whether this part is dropped, either alone or with its turn.
    pub fn drops_part(&self, place: PartPosition) -> bool {
        self.drops_turn(place.turn) || self.dropped_parts.contains(&place)
    }

    /// Returns the parts that are dropped from kept turns, in order.
    pub fn dropped_parts(&self) -> impl Iterator<Item = PartPosition> {
        self.dropped_parts.iter().copied().filter(|place| !self.drops_turn(place.turn))
    }

    /// Returns the indexes of the dropped turns, in order.
    pub fn dropped_turns(&self) -> impl Iterator<Item = usize> {
        self.dropped_turns.iter().copied()
    }

    /// Returns the new text of a part. Returns `None` if the text does not change.
    pub fn text(&self, place: PartPosition) -> Option<&str> {
        self.texts.get(&place).map(String::as_str)
    }

    /// Returns the parts with a new text, in order.
    pub fn texts(&self) -> impl Iterator<Item = (PartPosition, &str)> {
        self.texts.iter().map(|(place, text)| (*place, text.as_str()))
    }

    /// Returns the messages that are inserted before this turn, in order.
    pub fn inserted_messages(&self, before: usize) -> &[InsertedMessage] {
        self.insertions.get(&before).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the indexes of the turns before which messages are inserted, in order.
    pub fn insertion_positions(&self) -> impl Iterator<Item = usize> {
        self.insertions.keys().copied()
    }

    /// Returns the changed conversation. Inserted parts have empty spans.
    pub fn apply<'a>(&self, conversation: &Conversation<'a>) -> Conversation<'a> {
        let mut turns = Vec::with_capacity(conversation.turns.len());
        for position in 0..=conversation.turns.len() {
            for message in self.inserted_messages(position) {
                turns.extend(self.message_turns(conversation, message));
            }
            let Some(turn) = conversation.turns.get(position) else { break };
            if self.drops_turn(position) {
                continue;
            }
            let places = (0..turn.parts.len()).map(|part| PartPosition { turn: position, part });
            let kept = places.filter(|place| !self.drops_part(*place));
            let parts = kept.filter_map(|place| self.edited_part(conversation, place)).collect();
            turns.push(Turn { role: turn.role, span: turn.span.clone(), parts });
        }
        Conversation { turns, order: conversation.order }
    }

    fn edited_part<'a>(&self, conversation: &Conversation<'a>, place: PartPosition) -> Option<Part<'a>> {
        let mut part = conversation.turns.get(place.turn)?.parts.get(place.part)?.clone();
        if let Some(new) = self.text(place) {
            match &mut part.content {
                Content::Text(text) => *text = Cow::Owned(new.to_owned()),
                Content::Result(result) => {
                    result.text = Cow::Owned(new.to_owned());
                    result.media.clear();
                }
                _ => {}
            }
        }
        Some(part)
    }

    fn message_turns<'a>(&self, conversation: &Conversation<'a>, message: &InsertedMessage) -> Vec<Turn<'a>> {
        let turn = |role, parts| Turn { role, span: 0..0, parts };
        let results = match message {
            InsertedMessage::User(text) => {
                let content = Content::Text(Cow::Owned(text.clone()));
                return vec![turn(Role::User, vec![Part { span: 0..0, content }])];
            }
            InsertedMessage::Results(results) => results,
        };
        let parts = results.iter().filter_map(|result| match result {
            NewResult::Moved(place) => {
                let moved = self.edited_part(conversation, *place)?;
                Some(Part { span: 0..0, content: moved.content })
            }
            NewResult::Absent { call, text } => {
                let call = conversation.turns.get(call.turn)?.parts.get(call.part)?.call()?;
                let (call_id, name) = (call.id.clone(), Some(call.name.clone()));
                let text = Cow::Owned(text.clone());
                let content = Content::Result(ToolResult { call_id, name, text, ..ToolResult::default() });
                Some(Part { span: 0..0, content })
            }
        });
        if conversation.order.turns_of_results == ResultTurns::OnePerResult {
            return parts.map(|part| turn(Role::Tool, vec![part])).collect();
        }
        vec![turn(Role::Tool, parts.collect())]
    }
}

fn turn_at<'c, 'a>(conversation: &'c Conversation<'a>, turn: usize) -> Result<&'c Turn<'a>, EditError> {
    let turns = conversation.turns.len();
    conversation.turns.get(turn).ok_or(EditError::NoSuchPart { place: PartPosition { turn, part: 0 }, turns })
}

fn part_at<'c, 'a>(
    conversation: &'c Conversation<'a>,
    place: PartPosition,
) -> Result<&'c Part<'a>, EditError> {
    let turns = conversation.turns.len();
    turn_at(conversation, place.turn)?.parts.get(place.part).ok_or(EditError::NoSuchPart { place, turns })
}
