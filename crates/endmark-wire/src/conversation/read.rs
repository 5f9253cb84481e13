//! What the formats' readers of turns have in common.

use std::borrow::Cow;

use endmark_context::conversation::{Content, Media, Part, Role, Turn};

use crate::json::{Kind, Value, quoted};

/// A part, and where it stands in its turn.
#[derive(Debug, Clone)]
pub struct Placed<'a> {
    /// As it is written.
    pub value: Value<'a>,
    /// What it is.
    pub content: Content<'a>,
    /// Where it can be taken out.
    pub spot: Spot<'a>,
    /// Where its text can be changed.
    pub slot: Slot<'a>,
}

/// Where a part can be taken out.
#[derive(Debug, Clone, Copy)]
pub enum Spot<'a> {
    /// It is all that its turn says.
    Turn,
    /// A field of this object.
    Field(Value<'a>, &'static str),
    /// An item of a list that is this field of the object.
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

/// Where a part's text can be changed.
#[derive(Debug, Clone, Copy)]
pub enum Slot<'a> {
    /// Nowhere.
    None,
    /// A string.
    Text(Value<'a>),
    /// A field of this object, that becomes a string.
    Field(Value<'a>, &'static str),
    /// A field of this object that is an object itself: its member `output` becomes the text.
    Output(Value<'a>, &'static str),
    /// A list of this object that holds the output of shell commands, which becomes one that holds the text.
    Commands(Value<'a>, &'static str),
    /// A string where a call's arguments stand, which only its repair may change.
    Arguments {
        /// The string.
        value: Value<'a>,
        /// Whether arguments are a string that holds their JSON, and not the object itself.
        as_text: bool,
    },
}

/// A turn, and the places of its parts beside it.
pub(super) fn turn<'a>(
    item: Value<'a>,
    role: Role,
    placed: Vec<Placed<'a>>,
) -> (Turn<'a>, Vec<(Spot<'a>, Slot<'a>)>) {
    let mut parts = Vec::with_capacity(placed.len());
    let mut spots = Vec::with_capacity(placed.len());
    for mut part in placed {
        if let Content::Result(result) = &mut part.content {
            result.is_fixed = matches!(part.slot, Slot::None);
        }
        parts.push(Part { span: part.value.span(), content: part.content });
        spots.push((part.spot, part.slot));
    }
    // Some formats have results in turns of the user's: a turn that has nothing else is none.
    let is_of_tools = !parts.is_empty() && parts.iter().all(|part| part.result().is_some());
    let role = if role == Role::User && is_of_tools { Role::Tool } else { role };
    (Turn { role, span: item.span(), parts }, spots)
}

impl<'a> Slot<'a> {
    /// The slot of a call's arguments, where they are a string: what else they may be is the server's to judge.
    pub(crate) fn arguments(arguments: Option<Value<'a>>, as_text: bool) -> Self {
        let string = arguments.filter(|arguments| arguments.kind() == Kind::String);
        string.map_or(Self::None, |value| Self::Arguments { value, as_text })
    }
}

impl<'a> Placed<'a> {
    /// A field that is a text.
    pub(crate) fn text_field(object: Value<'a>, field: &'static str) -> Option<Self> {
        let value = object.field(field)?;
        let content = Content::Text(value.text()?);
        Some(Self { value, content, spot: Spot::Field(object, field), slot: Slot::Text(value) })
    }

    /// The items of a list, where `field` of this object is one.
    pub(crate) fn items(
        object: Value<'a>,
        field: &'static str,
        content: impl Fn(Value<'a>) -> (Content<'a>, Slot<'a>),
    ) -> impl Iterator<Item = Self> {
        let list = object.field(field).filter(|list| list.kind() == Kind::Array);
        list.into_iter().flat_map(|list| list.items().map(move |item| (list, item))).enumerate().map(
            move |(position, (list, value))| {
                let (content, slot) = content(value);
                Self { value, content, spot: Spot::Item { object, field, list, position }, slot }
            },
        )
    }

    /// A turn that is one part.
    pub(crate) fn turn(value: Value<'a>, content: Content<'a>, slot: Slot<'a>) -> Self {
        Self { value, content, spot: Spot::Turn, slot }
    }
}

/// The text of a value that is a string, or a list in which some parts have a `text`.
pub(crate) fn text_of_parts(value: Value<'_>) -> Cow<'_, str> {
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

/// The characters of a string, or another value as it is written.
pub(crate) fn text_or_json(value: Value<'_>) -> Cow<'_, str> {
    match value.kind() {
        Kind::String => value.text().unwrap_or_default(),
        Kind::Null => Cow::default(),
        Kind::Object | Kind::Array | Kind::Number | Kind::Bool => Cow::Borrowed(value.raw()),
    }
}

/// The images and files in a list of parts: all that have a kind and no text.
pub(crate) fn media_in(value: Value<'_>) -> Vec<Media<'_>> {
    let others = value.items().filter(|part| part.field("text").is_none());
    others.filter_map(|part| Some(Media { kind: part.field("type")?.text()?, name: None })).collect()
}

/// An item as it is written, with a role if it has none.
pub(crate) fn with_role(item: Value<'_>, role: &str) -> String {
    if item.field("role").is_some() {
        return item.raw().to_owned();
    }
    let inside = item.raw().trim_start_matches('{').trim_start();
    let comma = if inside == "}" { "" } else { "," };
    format!("{{\"role\":{}{comma}{inside}", quoted(role))
}
