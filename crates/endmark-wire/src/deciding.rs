//! The fields of a request that decide which model answers and how much it may produce. Checks that all servers
//! read them in the same way.
//!
//! A JSON object may contain a field twice. Some servers use the first one, most use the last one, and Go's
//! `encoding/json` reads `Model` as `model`. If a limit depends on such a field, a request that servers can read in
//! two ways is rejected.

pub(crate) mod fields;

use std::borrow::Cow;

use crate::json::{Fields, Kind, Value};
use crate::request::Request;

/// A deciding field, in each of its spellings.
#[derive(Debug, Clone, Copy)]
pub struct DecidingField {
    /// The possible names of the field. A request may contain at most one of them, once.
    pub names: &'static [&'static str],
    /// What the field decides.
    pub role: FieldRole,
}

/// What a field decides.
#[derive(Debug, Clone, Copy)]
pub enum FieldRole {
    /// Which model answers.
    Model,
    /// Which other models may answer instead.
    FurtherModels,
    /// The maximum number of tokens in the reply. If there are several limits, the largest counts.
    Limit,
    /// The number of generated replies.
    Choices,
    /// The prompts. Each item of a list of texts or token lists gets its own reply.
    Prompts,
    /// An option that is `true` or `false`.
    Switch,
    /// Whether the reply is generated after the response. Its token counts then never arrive.
    Background,
    /// Something else that changes the price.
    Other,
    /// Fields inside this object.
    Group(&'static [DecidingField]),
    /// A list of requests with these fields.
    Items(&'static [DecidingField]),
}

/// Creates a deciding field.
pub(crate) const fn field(names: &'static [&'static str], role: FieldRole) -> DecidingField {
    DecidingField { names, role }
}

/// The restrictions that apply to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Restrictions {
    /// Whether only certain models may answer.
    pub models: bool,
    /// Whether a budget limits its cost.
    pub budget: bool,
}

/// Why a restriction cannot be enforced for a request. Each message states what to send instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnreliableField {
    /// A field occurs twice, with the same name or with two of its names.
    #[error("the request has `{0}` more than once, and servers differ in which one they read: send it once")]
    Duplicate(String),
    /// A field has a name that some servers treat as the name of another field.
    #[error("some servers read `{0}` as `{1}`: send `{1}`")]
    AmbiguousName(String, &'static str),
    /// A number is not a whole number.
    #[error("`{0}` is limited here and has to be a whole number that is not negative, or be left out")]
    NotANumber(&'static str),
    /// A switch is neither `true` nor `false`.
    #[error("`{0}` has to be true or false, or be left out")]
    NotABool(&'static str),
    /// The reply would be generated in the background.
    #[error(
        "`background` is not available where a budget applies: the reply comes later, and its cost would not be \
         counted; send the request without it, as a stream if it takes long"
    )]
    Background,
    /// The list of requests is not a list.
    #[error("`{0}` has to be a list")]
    NotAList(&'static str),
    /// The request names further models.
    #[error(
        "`{0}` names further models, but the key allows only certain models: send the request without it"
    )]
    FurtherModels(&'static str),
}

/// Checks that all servers read the deciding fields of this request in the same way, and that the
/// restrictions can be enforced.
///
/// ```
/// use endmark_wire::deciding::{Restrictions, check};
/// use endmark_wire::{format, json::Value};
/// let chat = format::find_by_name("openai_chat").unwrap();
/// let restrictions = Restrictions { budget: true, models: true };
/// let of = |body: &str| check(Value::parse_str(body).unwrap(), chat.facts().deciding_fields, restrictions);
/// assert!(of(r#"{"model":"a","max_tokens":9,"max_completion_tokens":7}"#).is_ok());
/// assert!(of(r#"{"model":"a","m\u006fdel":"b"}"#).is_err());
/// assert!(of(r#"{"model":"a","Max_Tokens":9}"#).is_err());
/// ```
///
/// # Errors
/// [`UnreliableField`] for the first field that fails the check.
pub fn check(
    root: Value<'_>,
    fields: &'static [DecidingField],
    limits: Restrictions,
) -> Result<(), UnreliableField> {
    let mut is_present = vec![false; fields.len()];
    for given in root.fields() {
        let Some(name) = given.key.text() else { continue };
        let has_this_name = |known: &DecidingField| known.names.iter().any(|known| names_match(known, &name));
        let Some(at) = fields.iter().position(has_this_name) else { continue };
        let known = &fields[at];
        let known_name = known.names.first().copied().unwrap_or_default();
        if std::mem::replace(&mut is_present[at], true) {
            return Err(UnreliableField::Duplicate(known_name.to_owned()));
        }
        if !known.names.contains(&name.as_ref()) {
            return Err(UnreliableField::AmbiguousName(name.into_owned(), known_name));
        }
        let (value, kind) = (given.value, given.value.kind());
        match known.role {
            FieldRole::Group(inner) => check(value, inner, limits)?,
            _ if kind == Kind::Null => {}
            FieldRole::Items(_) if kind != Kind::Array => return Err(UnreliableField::NotAList(known_name)),
            FieldRole::Items(inner) => value.items().try_for_each(|item| check(item, inner, limits))?,
            FieldRole::FurtherModels if limits.models => {
                return Err(UnreliableField::FurtherModels(known_name));
            }
            FieldRole::Background if limits.budget && value.as_bool() != Some(false) => {
                return Err(UnreliableField::Background);
            }
            FieldRole::Limit | FieldRole::Choices if limits.budget && value.as_u64().is_none() => {
                return Err(UnreliableField::NotANumber(known_name));
            }
            FieldRole::Switch if limits.budget && kind != Kind::Bool => {
                return Err(UnreliableField::NotABool(known_name));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns all models in the body of a checked request: its own, and those of tools that query another model. `None`
/// means that the model cannot be read.
pub fn models(root: Value<'_>) -> impl Iterator<Item = Option<Cow<'_, str>>> {
    let own = root.field("model").filter(|model| !model.is_null());
    let tools = root.field("tools").into_iter().flat_map(Value::items).flat_map(Value::fields);
    let of_tools = tools.filter(|field| field.key.text().is_some_and(|name| names_match(&name, "model")));
    own.into_iter().chain(of_tools.map(|field| field.value)).map(Value::text)
}

/// Returns the models of the items of a checked request that is a list of requests. `None` means that
/// the model cannot be read.
pub fn item_models<'a>(
    root: Value<'a>,
    fields: &'static [DecidingField],
) -> impl Iterator<Item = Option<Cow<'a, str>>> {
    let lists = fields.iter().filter(|known| matches!(known.role, FieldRole::Items(_)));
    let lists = lists.filter_map(move |known| known.names.iter().find_map(|name| root.field(name)));
    let models = lists.flat_map(Value::items).filter_map(|item| item.field("model"));
    models.filter(|model| !model.is_null()).map(Value::text)
}

/// Returns whether a request with these fields generates output. Such a request has a limit field.
pub fn generates_output(fields: &[DecidingField]) -> bool {
    fields.iter().any(|known| match known.role {
        FieldRole::Limit => true,
        FieldRole::Group(inner) => generates_output(inner),
        _ => false,
    })
}

/// Returns the maximum output of a checked request in tokens. This is its largest limit, or `assumed` if it
/// has no limit, multiplied by the number of prompts and replies. Returns 0 if the request generates nothing.
pub fn max_output_tokens(root: Value<'_>, fields: &[DecidingField], assumed: u64) -> u64 {
    if !generates_output(fields) {
        return 0;
    }
    let mut amounts = OutputFactors::default();
    amounts.read(root, fields);
    let replies = amounts.choices.unwrap_or(1).max(1).saturating_mul(amounts.prompts.max(1));
    amounts.limit.unwrap_or(assumed).saturating_mul(replies)
}

#[derive(Default)]
struct OutputFactors {
    limit: Option<u64>,
    choices: Option<u64>,
    prompts: u64,
}

impl OutputFactors {
    fn read(&mut self, root: Value<'_>, fields: &[DecidingField]) {
        let request_fields = Fields::new(root);
        for known in fields {
            let Some(value) = known.names.iter().find_map(|name| request_fields.get(name)) else { continue };
            match known.role {
                FieldRole::Limit => self.limit = self.limit.max(value.as_u64()),
                FieldRole::Choices => self.choices = self.choices.max(value.as_u64()),
                FieldRole::Prompts => {
                    let texts = value.items().filter(|item| item.kind() != Kind::Number);
                    self.prompts = texts.count() as u64;
                }
                FieldRole::Group(inner) => self.read(value, inner),
                _ => {}
            }
        }
    }
}

impl Request {
    /// See [`check`].
    ///
    /// # Errors
    /// [`UnreliableField`] for the first field that fails the check.
    pub fn check_deciding(&self, limits: Restrictions) -> Result<(), UnreliableField> {
        check(self.root(), self.format().facts().deciding_fields, limits)
    }

    /// See [`models`].
    pub fn models_in_body(&self) -> impl Iterator<Item = Option<Cow<'_, str>>> {
        models(self.root())
    }

    /// See [`max_output_tokens`].
    pub fn max_output_tokens(&self, assumed: u64) -> u64 {
        max_output_tokens(self.root(), self.format().facts().deciding_fields, assumed)
    }
}

/// Returns whether the most tolerant servers treat two names as equal. Go ignores case and folds two
/// non-ASCII letters, Google's servers accept `snake_case` and `camelCase`, and C ends a string at a NUL.
fn names_match(one: &str, other: &str) -> bool {
    fn fold_name(name: &str) -> impl Iterator<Item = char> {
        let letters = name.chars().take_while(|letter| *letter != '\0');
        letters.filter(|letter| !matches!(letter, '_' | '-')).map(|letter| match letter {
            '\u{17f}' => 's',
            '\u{212a}' => 'k',
            other => other.to_ascii_lowercase(),
        })
    }
    fold_name(one).eq(fold_name(other))
}

#[cfg(test)]
mod tests;
