//! A conversation as data, independent of its wire format (CX-3): turns, their parts, and edits by turn.
//!
//! The reader of each format builds a [`Conversation`]. Spans locate each part in the request body. An
//! [`Edit`] refers to turns and parts by index, so it does not depend on the body.

mod edit;
mod pairs;

use std::borrow::Cow;
use std::ops::Range;

pub use edit::{ConversationChanges, Edit, EditError, InsertedMessage, NewResult};
pub use pairs::{CallPairs, PartPosition};

/// A conversation: its turns, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conversation<'a> {
    /// The turns.
    pub turns: Vec<Turn<'a>>,
    /// The provider's requirements for the order of turns.
    pub order: TurnOrder,
}

/// A provider's requirements for the order of turns. The default has no requirements: only ids connect calls
/// and results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TurnOrder {
    /// Whether the results of a turn's calls must directly follow the turn.
    pub results_follow_calls: bool,
    /// How results are distributed over turns.
    pub turns_of_results: ResultTurns,
    /// Whether the first turn after the system turns must be a user turn.
    pub begins_with_user: bool,
}

/// How the results of a turn's calls are distributed over turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ResultTurns {
    /// Each result is a separate turn.
    OnePerResult,
    /// A turn may contain several results, and also other parts.
    #[default]
    Shared,
    /// One turn contains all results and nothing else.
    SingleTurn,
}

/// A message of a conversation, or an item of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn<'a> {
    /// The author of the turn.
    pub role: Role,
    /// Byte range of the turn in the request body. Empty for an inserted turn.
    pub span: Range<usize>,
    /// The parts of the turn.
    pub parts: Vec<Part<'a>>,
}

/// The author of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The operator of the agent, who writes system and developer messages.
    System,
    /// The user, or an agent with this role. In some formats, user turns also contain tool results.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
    /// An unknown role.
    Other,
}

/// A part of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part<'a> {
    /// Byte range of the part in the request body. Ranges of parts do not overlap. Empty for an inserted
    /// part.
    pub span: Range<usize>,
    /// The content of the part.
    pub content: Content<'a>,
}

/// Content of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content<'a> {
    /// Text for people or the model.
    Text(Cow<'a, str>),
    /// A call of a tool that the client executes.
    Call(Call<'a>),
    /// The result of a tool call.
    Result(ToolResult<'a>),
    /// The model's reasoning.
    Reasoning {
        /// Its readable text.
        text: Cow<'a, str>,
        /// Whether it is signed or encrypted. Sealed reasoning can only be kept unchanged or dropped
        /// completely.
        sealed: bool,
    },
    /// An image, an audio recording or a file.
    Media(Media<'a>),
    /// An opaque item of the provider, such as a compaction item or a search by its server.
    Server {
        /// The provider's name for it.
        kind: Cow<'a, str>,
        /// The id of the item that this item belongs to, such as the call that an approval refers to.
        follows: Option<Cow<'a, str>>,
    },
    /// A reference by id to an item that the provider stored, such as a call, reasoning or a message.
    Reference {
        /// The item's id.
        id: Cow<'a, str>,
    },
    /// A part of an unknown kind.
    Unknown {
        /// The kind's name. Empty if it has no name.
        kind: Cow<'a, str>,
    },
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call<'a> {
    /// The call's id. `None` in formats without ids.
    pub id: Option<Cow<'a, str>>,
    /// The tool's name.
    pub name: Cow<'a, str>,
    /// The arguments. They are JSON unless the model wrote something else.
    pub arguments: Cow<'a, str>,
    /// Whether a text can be the result of the call.
    pub can_be_answered: bool,
}

/// The result of a tool call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolResult<'a> {
    /// The id of the call. `None` in formats without ids.
    pub call_id: Option<Cow<'a, str>>,
    /// The tool's name. `None` if the result does not contain it.
    pub name: Option<Cow<'a, str>>,
    /// The text of the result, or its JSON if it is an object.
    pub text: Cow<'a, str>,
    /// Whether the result is marked as a failure of the call.
    pub is_error: bool,
    /// Images and files in the result.
    pub media: Vec<Media<'a>>,
    /// Whether the text cannot be replaced, because the format has no field for a replacement.
    pub is_fixed: bool,
}

/// An image, an audio recording or a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Media<'a> {
    /// The media type. If it is unknown, the format's name for the kind of media.
    pub kind: Cow<'a, str>,
    /// The readable name or the address. `None` if there is neither.
    pub name: Option<Cow<'a, str>>,
}

impl<'a> Turn<'a> {
    /// Whether the turn has content of the user other than tool results.
    pub fn is_from_user(&self) -> bool {
        self.role == Role::User && self.parts.iter().any(|part| part.result().is_none())
    }

    /// Returns the texts of the turn, without reasoning and tool results.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match &part.content {
            Content::Text(text) => Some(text.as_ref()),
            _ => None,
        })
    }

    /// Returns the calls of the turn, in order.
    pub fn calls(&self) -> impl Iterator<Item = &Call<'a>> {
        self.parts.iter().filter_map(Part::call)
    }
}

impl<'a> Part<'a> {
    /// Returns the call. `None` if the part is not a call.
    pub fn call(&self) -> Option<&Call<'a>> {
        if let Content::Call(call) = &self.content { Some(call) } else { None }
    }

    /// Returns the result. `None` if the part is not a result.
    pub fn result(&self) -> Option<&ToolResult<'a>> {
        if let Content::Result(result) = &self.content { Some(result) } else { None }
    }
}
