//! A conversation as data, independent of its format (CX-3): turns, their parts, and edits by turn.
//!
//! The reader of each format builds a [`Conversation`]. Spans locate each part in the request body. An [`Edit`] names
//! turns and parts by position, so it does not depend on the body.

mod edit;
mod pairs;

use std::borrow::Cow;
use std::ops::Range;

pub use edit::{Changes, Edit, EditError, Message, NewResult};
pub use pairs::{Pairs, Place};

/// The turns of a conversation, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conversation<'a> {
    /// The turns.
    pub turns: Vec<Turn<'a>>,
    /// The provider's requirements for the order of turns.
    pub order: Order,
}

/// A provider's requirements for the order of turns. Without requirements, only ids pair calls and results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Order {
    /// The results of a turn's calls must follow the turn directly.
    pub results_behind_calls: bool,
    /// Which turns contain the results.
    pub turns_of_results: ResultTurns,
    /// The first turn after the system turns must be a user turn.
    pub user_first: bool,
}

/// How the results of a turn's calls are distributed over turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ResultTurns {
    /// Each result is a separate turn.
    OnePerResult,
    /// A turn may hold several results, and other parts.
    #[default]
    Shared,
    /// One turn holds all results, and nothing else.
    SingleTurn,
}

/// A message of a conversation, or an item of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn<'a> {
    /// The author of the turn.
    pub role: Role,
    /// The bytes of the turn in the body. Empty for an inserted turn.
    pub span: Range<usize>,
    /// The parts of the turn.
    pub parts: Vec<Part<'a>>,
}

/// The author of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The operator of the agent: system and developer messages.
    System,
    /// The user, or an agent in this role. In some formats also tool results.
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
    /// The bytes of the part in the body, separate from those of other parts. Empty for an inserted part.
    pub span: Range<usize>,
    /// The content of the part.
    pub content: Content<'a>,
}

/// Content of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content<'a> {
    /// Text for people or the model.
    Text(Cow<'a, str>),
    /// A call of one of the client's tools.
    Call(Call<'a>),
    /// The result of such a call.
    Result(ToolResult<'a>),
    /// The model's reasoning.
    Reasoning {
        /// Its readable text.
        text: Cow<'a, str>,
        /// Whether it is signed or encrypted. Then it can only be kept unchanged or dropped as a whole.
        sealed: bool,
    },
    /// An image, an audio recording or a file.
    Media(Media<'a>),
    /// An opaque item of the provider, such as a compaction item or a search by its server.
    Server {
        /// The provider's name for it.
        kind: Cow<'a, str>,
        /// The id of the item that it belongs to, such as the approval of a call.
        follows: Option<Cow<'a, str>>,
    },
    /// A reference by id to an item that the provider stored: a call, reasoning or a message.
    Reference {
        /// The item's id.
        id: Cow<'a, str>,
    },
    /// An unknown kind.
    Unknown {
        /// The name of the kind. Empty if it has none.
        kind: Cow<'a, str>,
    },
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call<'a> {
    /// The call's id. Some formats have none.
    pub id: Option<Cow<'a, str>>,
    /// The tool's name.
    pub name: Cow<'a, str>,
    /// The arguments: JSON, unless the model wrote something else.
    pub arguments: Cow<'a, str>,
    /// Whether a text result can answer it.
    pub can_be_answered: bool,
}

/// The result of a tool call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolResult<'a> {
    /// The id of its call. Some formats have none.
    pub call_id: Option<Cow<'a, str>>,
    /// The tool's name, if the result contains it.
    pub name: Option<Cow<'a, str>>,
    /// The result as text, or as JSON if it is an object.
    pub text: Cow<'a, str>,
    /// Whether the result is marked as a failure of the call.
    pub is_error: bool,
    /// Images and files in the result.
    pub media: Vec<Media<'a>>,
    /// Whether the text cannot be replaced, because the format has no field for another text.
    pub is_fixed: bool,
}

/// An image, an audio recording or a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Media<'a> {
    /// The media type, or else the format's name for the kind.
    pub kind: Cow<'a, str>,
    /// The readable name or address, if there is one.
    pub name: Option<Cow<'a, str>>,
}

impl<'a> Turn<'a> {
    /// Whether the turn has content of the user other than tool results.
    pub fn is_from_user(&self) -> bool {
        self.role == Role::User && self.parts.iter().any(|part| part.result().is_none())
    }

    /// Returns the turn's texts, without reasoning and results.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match &part.content {
            Content::Text(text) => Some(text.as_ref()),
            _ => None,
        })
    }

    /// Returns the turn's calls.
    pub fn calls(&self) -> impl Iterator<Item = &Call<'a>> {
        self.parts.iter().filter_map(Part::call)
    }
}

impl<'a> Part<'a> {
    /// Returns the call, if the part is one.
    pub fn call(&self) -> Option<&Call<'a>> {
        if let Content::Call(call) = &self.content { Some(call) } else { None }
    }

    /// Returns the result, if the part is one.
    pub fn result(&self) -> Option<&ToolResult<'a>> {
        if let Content::Result(result) = &self.content { Some(result) } else { None }
    }
}
