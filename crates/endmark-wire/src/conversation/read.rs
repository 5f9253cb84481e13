//! Helpers shared by the formats' readers of turns.

use std::borrow::Cow;

use endmark_context::conversation::{Content, Media, Part, Role, Turn};

use crate::json::{Kind, Value, quote};

/// A part with its positions in the bytes.
#[derive(Debug, Clone)]
pub struct PlacedPart<'a> {
    /// The part as written.
    pub value: Value<'a>,
    /// Its content.
    pub content: Content<'a>,
    /// How to remove the part.
    pub removable: RemovablePart<'a>,
    /// Where to change its text.
    pub editable_text: EditableText<'a>,
}

/// How a part can be removed.
#[derive(Debug, Clone, Copy)]
pub enum RemovablePart<'a> {
    /// The part is the whole turn.
    Turn,
    /// The part is this field of the object.
    Field(Value<'a>, &'static str),
    /// The part is an item of the list in this field of the object.
    Item {
        /// The object with the list.
        object: Value<'a>,
        /// The name of the list's field.
        field: &'static str,
        /// The list.
        list: Value<'a>,
        /// The position of the item in the list.
        position: usize,
    },
}

/// The location of a part's editable text.
#[derive(Debug, Clone, Copy)]
pub enum EditableText<'a> {
    /// The text cannot be changed.
    None,
    /// A string.
    Text(Value<'a>),
    /// A field of this object, which becomes a string.
    Field(Value<'a>, &'static str),
    /// A field of this object that contains an object, in which the member `output` gets the text.
    Output(Value<'a>, &'static str),
    /// A field of this object that contains a list with the output of shell commands. A list with the text
    /// replaces it.
    Commands(Value<'a>, &'static str),
    /// A string with a call's arguments, which only a repair may change.
    Arguments {
        /// The string.
        value: Value<'a>,
        /// Whether the format sends arguments as a string of JSON, and not as an object.
        as_text: bool,
    },
}

/// Returns a turn and the positions of its parts.
pub(super) fn turn<'a>(
    item: Value<'a>,
    role: Role,
    placed: Vec<PlacedPart<'a>>,
) -> (Turn<'a>, Vec<(RemovablePart<'a>, EditableText<'a>)>) {
    let mut parts = Vec::with_capacity(placed.len());
    let mut locations = Vec::with_capacity(placed.len());
    for mut part in placed {
        if let Content::Result(result) = &mut part.content {
            result.is_fixed = matches!(part.editable_text, EditableText::None);
        }
        parts.push(Part { span: part.value.span(), content: part.content });
        locations.push((part.removable, part.editable_text));
    }
    // In some formats, user turns contain results. A turn that contains only results is not the user's.
    let has_only_results = !parts.is_empty() && parts.iter().all(|part| part.result().is_some());
    let role = if role == Role::User && has_only_results { Role::Tool } else { role };
    (Turn { role, span: item.span(), parts }, locations)
}

impl<'a> EditableText<'a> {
    /// Returns the editable text of a call's arguments, if they are a string. Only the server can judge other
    /// values.
    pub(crate) fn arguments(arguments: Option<Value<'a>>, as_text: bool) -> Self {
        let string = arguments.filter(|arguments| arguments.kind() == Kind::String);
        string.map_or(Self::None, |value| Self::Arguments { value, as_text })
    }
}

impl<'a> PlacedPart<'a> {
    /// Returns the part in a text field of this object, or `None` if the field is not a text.
    pub(crate) fn text_field(object: Value<'a>, field: &'static str) -> Option<Self> {
        let value = object.field(field)?;
        let content = Content::Text(value.text()?);
        Some(Self {
            value,
            content,
            removable: RemovablePart::Field(object, field),
            editable_text: EditableText::Text(value),
        })
    }

    /// Returns the parts in the list in `field` of this object. Returns no parts if the field is not a list.
    pub(crate) fn items(
        object: Value<'a>,
        field: &'static str,
        content: impl Fn(Value<'a>) -> (Content<'a>, EditableText<'a>),
    ) -> impl Iterator<Item = Self> {
        let list = object.field(field).filter(|list| list.kind() == Kind::Array);
        list.into_iter().flat_map(|list| list.items().map(move |item| (list, item))).enumerate().map(
            move |(position, (list, value))| {
                let (content, slot) = content(value);
                Self {
                    value,
                    content,
                    removable: RemovablePart::Item { object, field, list, position },
                    editable_text: slot,
                }
            },
        )
    }

    /// Returns a part that is the whole turn.
    pub(crate) fn turn(value: Value<'a>, content: Content<'a>, slot: EditableText<'a>) -> Self {
        Self { value, content, removable: RemovablePart::Turn, editable_text: slot }
    }
}

/// Returns the text of a string, or the joined `text`s of a list of parts.
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

/// Returns the characters of a string, or any other value as JSON.
pub(crate) fn text_or_json(value: Value<'_>) -> Cow<'_, str> {
    match value.kind() {
        Kind::String => value.text().unwrap_or_default(),
        Kind::Null => Cow::default(),
        Kind::Object | Kind::Array | Kind::Number | Kind::Bool => Cow::Borrowed(value.raw()),
    }
}

/// Returns the images and files in a list of parts. These are all parts with a type and without a text.
pub(crate) fn collect_media(value: Value<'_>) -> Vec<Media<'_>> {
    let non_texts = value.items().filter(|part| part.field("text").is_none());
    non_texts.filter_map(|part| Some(Media { kind: part.field("type")?.text()?, name: None })).collect()
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
