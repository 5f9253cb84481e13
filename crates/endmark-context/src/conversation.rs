//! A conversation as data, whatever format it stands in (CX-3): turns, their parts, and edits by turn.
//!
//! Who reads a format makes a [`Conversation`] of it; spans say where each part stands in the bytes that were read.
//! An [`Edit`] names turns and parts by their positions, so that it can be decided without knowing those bytes.

mod edit;
mod pairs;

use std::borrow::Cow;
use std::ops::Range;

pub use edit::{Changes, Edit, EditError, Message, NewResult};
pub use pairs::{Pairs, Place};

/// The turns of a conversation, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conversation<'a> {
    /// The turns.
    pub turns: Vec<Turn<'a>>,
    /// What the provider demands of their order.
    pub order: Order,
}

/// What a provider demands of the order of turns; one that demands nothing pairs calls and results by their ids alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Order {
    /// The results of a turn's calls come right behind it, before anything else.
    pub results_behind_calls: bool,
    /// The turns in which they stand.
    pub turns_of_results: TurnsOfResults,
    /// The first turn that is not the system's is the user's.
    pub user_first: bool,
}

/// The turns in which the results of a turn's calls stand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TurnsOfResults {
    /// Each is one of its own.
    Each,
    /// One may hold several, and other parts.
    #[default]
    Shared,
    /// All are in one, and nothing else is.
    OneAlone,
}

/// A message of a conversation, or an item of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn<'a> {
    /// Who speaks.
    pub role: Role,
    /// Its bytes in the body; empty for a turn that an edit has put in.
    pub span: Range<usize>,
    /// What it consists of.
    pub parts: Vec<Part<'a>>,
}

/// Who speaks in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Who runs the agent: system and developer messages.
    System,
    /// The user, or whoever speaks for one; in some formats results of tools, too.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
    /// A role that is not known.
    Other,
}

/// A part of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part<'a> {
    /// Its bytes in the body, apart from those of all other parts; empty for a part that an edit has put in.
    pub span: Range<usize>,
    /// What it is.
    pub content: Content<'a>,
}

/// What a part is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content<'a> {
    /// Text for people or the model.
    Text(Cow<'a, str>),
    /// A call of one of the client's tools.
    Call(Call<'a>),
    /// What such a call came to.
    Result(ToolResult<'a>),
    /// The model's reasoning.
    Reasoning {
        /// What can be read of it.
        text: Cow<'a, str>,
        /// It is signed or encrypted: it stays as it is, or goes as a whole.
        sealed: bool,
    },
    /// An image, sound or file.
    Media(Media<'a>),
    /// Something of the provider's own, such as a compaction item or a search that its server made: opaque.
    Server {
        /// What the provider calls it.
        kind: Cow<'a, str>,
        /// The id of the item that it followed from, as a call from its approval.
        follows: Option<Cow<'a, str>>,
    },
    /// An item that the provider stored, by its id alone: a call, reasoning, or a message.
    Reference {
        /// The item's id.
        id: Cow<'a, str>,
    },
    /// A kind that is not known.
    Unknown {
        /// What it calls itself; empty where it does not.
        kind: Cow<'a, str>,
    },
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call<'a> {
    /// Its id; some formats have none.
    pub id: Option<Cow<'a, str>>,
    /// The tool's name.
    pub name: Cow<'a, str>,
    /// The arguments: JSON, unless the model wrote something else.
    pub arguments: Cow<'a, str>,
    /// Whether a result that is a text can answer it.
    pub can_be_answered: bool,
}

/// The result of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolResult<'a> {
    /// The id of its call; some formats have none.
    pub call_id: Option<Cow<'a, str>>,
    /// The tool's name, where the result says it.
    pub name: Option<Cow<'a, str>>,
    /// Its text, or its JSON where it is an object.
    pub text: Cow<'a, str>,
    /// Whether it says of itself that the call failed.
    pub is_error: bool,
    /// Images and files in it.
    pub media: Vec<Media<'a>>,
    /// Its text cannot be replaced, since its format has no place for another one.
    pub is_fixed: bool,
}

/// An image, sound or file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Media<'a> {
    /// Its media type, else what the format calls its kind.
    pub kind: Cow<'a, str>,
    /// Its name or address, where it has one that can be read.
    pub name: Option<Cow<'a, str>>,
}

impl<'a> Turn<'a> {
    /// Whether a user speaks in it: more than results of tools.
    pub fn is_of_user(&self) -> bool {
        self.role == Role::User && self.parts.iter().any(|part| part.result().is_none())
    }

    /// The texts in it, without reasoning and results.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match &part.content {
            Content::Text(text) => Some(text.as_ref()),
            _ => None,
        })
    }

    /// The calls in it.
    pub fn calls(&self) -> impl Iterator<Item = &Call<'a>> {
        self.parts.iter().filter_map(Part::call)
    }
}

impl<'a> Part<'a> {
    /// The call, if it is one.
    pub fn call(&self) -> Option<&Call<'a>> {
        if let Content::Call(call) = &self.content { Some(call) } else { None }
    }

    /// The result, if it is one.
    pub fn result(&self) -> Option<&ToolResult<'a>> {
        if let Content::Result(result) = &self.content { Some(result) } else { None }
    }
}
