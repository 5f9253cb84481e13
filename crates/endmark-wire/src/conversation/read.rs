//! Helpers shared by the formats' readers of turns.

use std::borrow::Cow;

use endmark_context::conversation::{Content, Media, Part, Role, Turn};

use crate::json::{Kind, Value, quote};

/// A part, and its position in its turn.
#[derive(Debug, Clone)]
pub struct PlacedPart<'a> {
    /// The part as written.
    pub value: Value<'a>,
    /// Its content.
    pub content: Content<'a>,
    /// The location at which it can be removed.
    pub spot: RemovablePart<'a>,
    /// The location of its editable text.
    pub slot: EditableText<'a>,
}

/// A location at which a part can be removed.
#[derive(Debug, Clone, Copy)]
pub enum RemovablePart<'a> {
    /// The part is all of its turn.
    Turn,
    /// The part is this field of the object.
    Field(Value<'a>, &'static str),
    /// The part is an item of the list in this field of the object.
    Item {
        /// The object.
        object: Value<'a>,
        /// Its field.
        field: &'static str,
        /// The list.
        list: Value<'a>,
        /// The position in it.
        position: usize,
    },
}

/// The location of a part's editable text.
#[derive(Debug, Clone, Copy)]
pub enum EditableText<'a> {
    /// It cannot be changed.
    None,
    /// A string.
    Text(Value<'a>),
    /// A field of this object, which becomes a string.
    Field(Value<'a>, &'static str),
    /// A field of this object that is itself an object: its member `output` becomes the text.
    Output(Value<'a>, &'static str),
    /// A list in this object with the output of shell commands, which is replaced by a list with the text.
    Commands(Value<'a>, &'static str),
    /// A string with a call's arguments, which only a repair may change.
    Arguments {
        /// The string.
        value: Value<'a>,
        /// Whether the format sends arguments as a string of JSON, and not as an object.
        as_text: bool,
    },
}

/// Returns a turn, and separately the positions of its parts.
pub(super) fn turn<'a>(
    item: Value<'a>,
    role: Role,
    placed: Vec<PlacedPart<'a>>,
) -> (Turn<'a>, Vec<(RemovablePart<'a>, EditableText<'a>)>) {
    let mut parts = Vec::with_capacity(placed.len());
    let mut spots = Vec::with_capacity(placed.len());
    for mut part in placed {
        if let Content::Result(result) = &mut part.content {
            result.is_fixed = matches!(part.slot, EditableText::None);
        }
        parts.push(Part { span: part.value.span(), content: part.content });
        spots.push((part.spot, part.slot));
    }
    // In some formats, results are in user turns. A turn that contains only results is not the user's.
    let is_of_tools = !parts.is_empty() && parts.iter().all(|part| part.result().is_some());
    let role = if role == Role::User && is_of_tools { Role::Tool } else { role };
    (Turn { role, span: item.span(), parts }, spots)
}

impl<'a> EditableText<'a> {
    /// Returns the slot of a call's arguments, if they are a string. Other values are for the server to judge.
    pub(crate) fn arguments(arguments: Option<Value<'a>>, as_text: bool) -> Self {
        let string = arguments.filter(|arguments| arguments.kind() == Kind::String);
        string.map_or(Self::None, |value| Self::Arguments { value, as_text })
    }
}

impl<'a> PlacedPart<'a> {
    /// Returns a field that is a text.
    pub(crate) fn text_field(object: Value<'a>, field: &'static str) -> Option<Self> {
        let value = object.field(field)?;
        let content = Content::Text(value.text()?);
        Some(Self {
            value,
            content,
            spot: RemovablePart::Field(object, field),
            slot: EditableText::Text(value),
        })
    }

    /// Returns the items of the list in `field` of this object, if it is a list.
    pub(crate) fn items(
        object: Value<'a>,
        field: &'static str,
        content: impl Fn(Value<'a>) -> (Content<'a>, EditableText<'a>),
    ) -> impl Iterator<Item = Self> {
        let list = object.field(field).filter(|list| list.kind() == Kind::Array);
        list.into_iter().flat_map(|list| list.items().map(move |item| (list, item))).enumerate().map(
            move |(position, (list, value))| {
                let (content, slot) = content(value);
                Self { value, content, spot: RemovablePart::Item { object, field, list, position }, slot }
            },
        )
    }

    /// Returns a turn that is a single part.
    pub(crate) fn turn(value: Value<'a>, content: Content<'a>, slot: EditableText<'a>) -> Self {
        Self { value, content, spot: RemovablePart::Turn, slot }
    }
}

/// Returns the text of a value that is a string, or a list in which some parts have a `text`.
pub(crate) fn parts_text(value: Value<'_>) -> Cow<'_, str> {
    if let Some(text) = value.text() {
        return text;
    }
    let texts = value.items().filter_map(|part| part.field("text").and_then(Value::text));
    let mut whole = Cow::Borrowed("");
    for text in texts {
        if whole.is_empty() {
            whole = text;
        } else {
            whole.to_mut().push('\n');
            whole.to_mut().push_str(&text);
        }
    }
    whole
}

/// Returns the characters of a string, or another value as written.
pub(crate) fn text_or_json(value: Value<'_>) -> Cow<'_, str> {
    match value.kind() {
        Kind::String => value.text().unwrap_or_default(),
        Kind::Null => Cow::default(),
        Kind::Object | Kind::Array | Kind::Number | Kind::Bool => Cow::Borrowed(value.raw()),
    }
}

/// Returns the images and files in a list of parts: all that have a type and no text.
pub(crate) fn collect_media(value: Value<'_>) -> Vec<Media<'_>> {
    let others = value.items().filter(|part| part.field("text").is_none());
    others.filter_map(|part| Some(Media { kind: part.field("type")?.text()?, name: None })).collect()
}

/// Returns an item as written, with a role added if it has none.
pub(crate) fn with_role(item: Value<'_>, role: &str) -> String {
    if item.field("role").is_some() {
        return item.raw().to_owned();
    }
    let inside = item.raw().trim_start_matches('{').trim_start();
    let comma = if inside == "}" { "" } else { "," };
    format!("{{\"role\":{}{comma}{inside}", quote(role))
}
