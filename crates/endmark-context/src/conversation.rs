//! A conversation as data, independent of its format (CX-3): turns, their parts, and edits by turn.
//!
//! The reader of each format builds a [`Conversation`]; spans locate each part in the bytes that were read. An
//! [`Edit`] names turns and parts by position, so that it does not depend on those bytes.

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
    /// The provider's requirements on their order.
    pub order: Order,
}

/// A provider's requirements on the order of turns. Without requirements, the ids alone pair calls and results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Order {
    /// The results of a turn's calls follow it directly, before anything else.
    pub results_behind_calls: bool,
    /// The turns that hold the results.
    pub turns_of_results: TurnsOfResults,
    /// The first turn after the system turns is a user turn.
    pub user_first: bool,
}

/// How the results of a turn's calls are distributed over turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TurnsOfResults {
    /// Each result has a turn of its own.
    Each,
    /// A turn may hold several results, and other parts.
    #[default]
    Shared,
    /// One turn holds all results, and nothing else.
    OneAlone,
}

/// A message of a conversation, or an item of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn<'a> {
    /// The author of the turn.
    pub role: Role,
    /// Its bytes in the body. Empty for an inserted turn.
    pub span: Range<usize>,
    /// Its parts.
    pub parts: Vec<Part<'a>>,
}

/// The author of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The operator of the agent: system and developer messages.
    System,
    /// The user, or an agent that acts as one. In some formats also tool results.
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
    /// Its bytes in the body, without those of any other part. Empty for an inserted part.
    pub span: Range<usize>,
    /// Its content.
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
        /// Whether it is signed or encrypted. It then stays unchanged, or is dropped as a whole.
        sealed: bool,
    },
    /// An image, an audio recording or a file.
    Media(Media<'a>),
    /// An opaque item of the provider, such as a compaction item or a search that its server made.
    Server {
        /// The provider's name for it.
        kind: Cow<'a, str>,
        /// The id of the item that it followed from, such as the approval of a call.
        follows: Option<Cow<'a, str>>,
    },
    /// A stored item of the provider, identified by its id: a call, reasoning or a message.
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
    /// Its id. Some formats have none.
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
    /// Its text, or its JSON if it is an object.
    pub text: Cow<'a, str>,
    /// Whether the result is marked as a failure of the call.
    pub is_error: bool,
    /// Images and files in the result.
    pub media: Vec<Media<'a>>,
    /// Whether its text cannot be replaced, because the format has no place for another one.
    pub is_fixed: bool,
}

/// An image, an audio recording or a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Media<'a> {
    /// Its media type, otherwise the format's name for its kind.
    pub kind: Cow<'a, str>,
    /// Its name or address, if it has a readable one.
    pub name: Option<Cow<'a, str>>,
}

impl<'a> Turn<'a> {
    /// Whether a user is the author, with more than tool results.
    pub fn is_of_user(&self) -> bool {
        self.role == Role::User && self.parts.iter().any(|part| part.result().is_none())
    }

    /// Returns its texts, without reasoning and results.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match &part.content {
            Content::Text(text) => Some(text.as_ref()),
            _ => None,
        })
    }

    /// Returns its calls.
    pub fn calls(&self) -> impl Iterator<Item = &Call<'a>> {
        self.parts.iter().filter_map(Part::call)
    }
}

impl<'a> Part<'a> {
    /// Returns the call, if it is one.
    pub fn call(&self) -> Option<&Call<'a>> {
        if let Content::Call(call) = &self.content { Some(call) } else { None }
    }

    /// Returns the result, if it is one.
    pub fn result(&self) -> Option<&ToolResult<'a>> {
        if let Content::Result(result) = &self.content { Some(result) } else { None }
    }
}
