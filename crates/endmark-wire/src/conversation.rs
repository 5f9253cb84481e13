//! The conversation in a request's body, and edits of it by turn (CX-3).
//!
//! The [`Conversation`] read from a body is independent of the format. A [`Dialogue`] adds the position of
//! each of its parts in the bytes. Bytes that are not edited stay unchanged.

mod apply;
mod read;

use std::borrow::Cow;

use endmark_context::conversation::{Conversation, ConversationChanges, Edit, EditError};

use crate::edit::Edits;
use crate::json::{JsonError, Kind, Value};
use crate::wire_format::WireFormat;
pub use read::{EditableText, PlacedPart, RemovablePart};
pub(crate) use read::{collect_media, parts_text, text_or_json, with_role};

/// The field with which clients of Anthropic mark the end of the prompt prefix to cache.
const CACHE_MARKER: &str = "cache_control";

/// Returns JSON without the cache markers.
fn without_cache_markers(json: &str) -> String {
    let Ok(root) = Value::parse_str(json) else { return json.to_owned() };
    let mut edits = Edits::for_document(root);
    let mut open = vec![root];
    // The parser limits the nesting depth. Tool-call arguments are the model's own JSON and stay unchanged.
    while let Some(value) = open.pop() {
        match value.kind() {
            Kind::Array => open.extend(value.items()),
            Kind::Object => {
                for field in value.fields() {
                    if field.has_name(CACHE_MARKER) {
                        edits.remove_field(value, CACHE_MARKER);
                    } else if !field.has_name("input") && !field.has_name("arguments") {
                        open.push(field.value);
                    }
                }
            }
            Kind::String | Kind::Number | Kind::Bool | Kind::Null => {}
        }
    }
    String::from_utf8(edits.finish()).unwrap_or_else(|_| json.to_owned())
}

/// Error of bytes that are not a conversation of a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConversationError {
    /// The bytes are not JSON.
    #[error("the conversation is not JSON: {0}")]
    Json(#[source] JsonError),
    /// The bytes are neither a request with a list of turns nor such a list.
    #[error(
        "this is not a conversation in {title}: a request with `{field}`, or a list of its items, was expected"
    )]
    NoConversation {
        /// The format's display name.
        title: &'static str,
        /// The request field that contains the conversation.
        field: &'static str,
    },
    /// An item of the list is not a turn.
    #[error("this is not a conversation in {title}: item {position} (byte {offset}) {reason}")]
    InvalidItem {
        /// The format's display name.
        title: &'static str,
        /// The position of the item, from 0.
        position: usize,
        /// The item's first byte in the document.
        offset: usize,
        /// Why the item is invalid.
        reason: &'static str,
    },
}

/// A conversation in a request's body, or in a bare list of messages.
///
/// ```
/// use endmark_context::conversation::{Edit, Role};
/// use endmark_wire::conversation::Dialogue;
/// use endmark_wire::format::find_by_name;
/// let format = find_by_name("openai_chat").unwrap();
/// let body = br#"{"model": "m", "messages": [ {"role":"user","content":"Hi"}, {"role":"assistant","content":"Hello"} ]}"#;
/// let dialogue = Dialogue::read(format, body)?;
/// assert_eq!(dialogue.conversation().turns[1].role, Role::Assistant);
/// let edited = dialogue.edit(&[Edit::DropTurn(1)])?;
/// assert_eq!(edited, br#"{"model": "m", "messages": [ {"role":"user","content":"Hi"} ]}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Dialogue<'a> {
    format: &'static dyn WireFormat,
    root: Value<'a>,
    /// The list of turns, or the string that is the only turn.
    list: Value<'a>,
    items: Vec<Value<'a>>,
    conversation: Conversation<'a>,
    part_locations: Vec<Vec<(RemovablePart<'a>, EditableText<'a>)>>,
}

impl<'a> Dialogue<'a> {
    /// Reads the conversation of a request's body, or a bare list of messages.
    pub fn read(format: &'static dyn WireFormat, bytes: &'a [u8]) -> Result<Self, ConversationError> {
        Self::new(format, Value::parse_body(bytes).map_err(ConversationError::Json)?)
    }

    /// Reads the conversation from a value that was parsed before.
    pub(crate) fn new(format: &'static dyn WireFormat, root: Value<'a>) -> Result<Self, ConversationError> {
        let field = format.facts().conversation_field;
        let no_list = ConversationError::NoConversation { title: format.title(), field };
        let list = match root.kind() {
            Kind::Array => Some(root),
            Kind::Object => root.field(field),
            Kind::String | Kind::Number | Kind::Bool | Kind::Null => None,
        };
        let list = list.filter(|list| list.kind() == Kind::Array || format.is_single_turn(*list));
        let list = list.ok_or(no_list)?;
        let is_list = list.kind() == Kind::Array;
        let items: Vec<Value<'a>> = if is_list { list.items().collect() } else { vec![list] };
        let mut conversation = Conversation { turns: Vec::new(), order: format.facts().turn_order };
        let mut places = Vec::with_capacity(items.len());
        for (position, item) in items.iter().enumerate() {
            let (role, parts) = format.turn(*item).map_err(|reason| ConversationError::InvalidItem {
                title: format.title(),
                position,
                offset: item.span().start,
                reason,
            })?;
            let (turn, spots) = read::turn(*item, role, parts);
            conversation.turns.push(turn);
            places.push(spots);
        }
        Ok(Self { format, root, list, items, conversation, part_locations: places })
    }

    /// Returns the turns and their parts.
    pub fn conversation(&self) -> &Conversation<'a> {
        &self.conversation
    }

    /// Returns the parts of the document before and after the conversation, including instructions and tools.
    pub fn surroundings(&self) -> [&'a str; 2] {
        let (document, list) = (self.list.document(), self.list.span());
        [document.get(..list.start), document.get(list.end..)].map(Option::unwrap_or_default)
    }

    /// Returns the list of turns as written.
    pub fn source(&self) -> &'a str {
        self.list.raw()
    }

    /// Returns the items of the list as written. Empty if the conversation is a single string.
    pub fn items(&self) -> impl Iterator<Item = &'a str> {
        let is_list = self.list.kind() == Kind::Array;
        self.items.iter().filter(move |_| is_list).map(|item| item.raw())
    }

    /// Returns an item without its cache markers, because clients move these from turn to turn.
    ///
    /// ```
    /// use endmark_wire::conversation::Dialogue;
    /// let format = endmark_wire::format::find_by_name("anthropic_messages").unwrap();
    /// let body = br#"[{"role":"user","content":[{"type":"text","text":"Hi","cache_control":{"type":"ephemeral"}}]}]"#;
    /// let dialogue = Dialogue::read(format, body)?;
    /// assert_eq!(dialogue.item_without_cache_markers(0).unwrap(), r#"{"role":"user","content":[{"type":"text","text":"Hi"}]}"#);
    /// # Ok::<(), endmark_wire::conversation::ConversationError>(())
    /// ```
    pub fn item_without_cache_markers(&self, position: usize) -> Option<Cow<'a, str>> {
        let raw = self.items.get(position)?.raw();
        Some(if raw.contains(CACHE_MARKER) {
            Cow::Owned(without_cache_markers(raw))
        } else {
            Cow::Borrowed(raw)
        })
    }

    /// Returns the document with its first `turns` items replaced by `items`.
    ///
    /// ```
    /// use endmark_wire::conversation::Dialogue;
    /// let format = endmark_wire::format::find_by_name("gemini").unwrap();
    /// let body = br#"{"contents":[{"parts":[]},{"parts":[]},{"parts":[{"text":"c"}]}],"x":1.0}"#;
    /// let dialogue = Dialogue::read(format, body)?;
    /// let shorter = dialogue.with_replaced_beginning(2, &[r#"{"parts":[{"text":"both"}]}"#]);
    /// assert_eq!(shorter, br#"{"contents":[{"parts":[{"text":"both"}]},{"parts":[{"text":"c"}]}],"x":1.0}"#);
    /// # Ok::<(), endmark_wire::conversation::ConversationError>(())
    /// ```
    pub fn with_replaced_beginning(&self, turns: usize, items: &[impl AsRef<str>]) -> Vec<u8> {
        let mut edits = Edits::for_document(self.root);
        if self.list.kind() == Kind::Array {
            let turns = turns.min(self.items.len());
            for turn in 0..turns {
                edits.remove_item(self.list, turn);
            }
            for item in items {
                edits.insert_item(self.list, turns, item.as_ref());
            }
        }
        edits.finish()
    }

    /// Returns the document with these edits.
    pub fn edit(&self, edits: &[Edit]) -> Result<Vec<u8>, EditError> {
        let changes = ConversationChanges::new(&self.conversation, edits)?;
        apply::apply_changes(self, &changes)
    }
}
