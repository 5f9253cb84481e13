//! What the options of several functions have in common.

use endmark::{AskedFrom, Format};
use serde::Deserialize;
use serde::Serialize;

use crate::failure::Failure;

/// The names of option types in messages.
const TYPES: [(&str, &str); 5] = [
    ("usize", "a whole number from 0"),
    ("u64", "a whole number from 0"),
    ("u32", "a whole number from 0"),
    ("u8", "a whole number from 0 to 255"),
    ("f64", "a number"),
];

/// Reads the options of a function. An error names the option.
pub(crate) fn parse<'o, T: Deserialize<'o>>(options: &'o str) -> Result<T, Failure> {
    let mut deserializer = serde_json::Deserializer::from_str(options);
    let read = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        let message = error.inner().to_string();
        // The options are written by the package, so that their columns say nothing to its user.
        let message = message.split(" at line ").next().unwrap_or_default();
        let kind = TYPES.iter().find(|(kind, _)| message.ends_with(&format!("expected {kind}")));
        let message = kind.map_or(message.to_owned(), |(kind, shown)| message.replace(kind, shown));
        let is_named = path == "." || message.contains(&format!("`{path}`"));
        Failure::invalid("invalid_options", if is_named { message } else { format!("`{path}`: {message}") })
    })?;
    let ended = deserializer.end();
    ended.map(|()| read).map_err(|error| Failure::invalid("invalid_options", error))
}

/// Writes the answer of a function.
pub(crate) fn answer(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure::bug(&error.to_string()))
}

/// The input at a position.
pub(crate) fn input<'i>(inputs: &[&'i [u8]], index: usize) -> Result<&'i [u8], Failure> {
    let missing = || Failure::invalid("missing_input", "is missing").of_input(index);
    inputs.get(index).copied().ok_or_else(missing)
}

/// The same as text.
pub(crate) fn text<'i>(inputs: &[&'i [u8]], index: usize) -> Result<&'i str, Failure> {
    let raw = input(inputs, index)?;
    str::from_utf8(raw).map_err(|error| {
        let message = format!("is not UTF-8: byte {} is invalid", error.valid_up_to());
        Failure::invalid("not_utf8", message).of_input(index)
    })
}

/// A format by its name.
pub(crate) fn format(name: &str, marker: Option<&str>) -> Result<Format, Failure> {
    Format::parse(name, marker)
        .map_err(|error| Failure::invalid("invalid_format", format!("`format`: {error}")))
}

/// From where the model was asked to continue.
pub(crate) fn asked_from(name: &str) -> Result<AskedFrom, Failure> {
    let unknown = || format!("unknown `from`: `{name}`: use cut, token or unknown");
    AskedFrom::parse(name).ok_or_else(|| Failure::invalid("invalid_from", unknown()))
}

/// The failure for a word that an option does not have.
pub(crate) fn unknown(option: &str, word: &str, known: &str) -> Failure {
    Failure::invalid("invalid_options", format!("unknown `{option}`: `{word}`: use {known}"))
}

/// The failure for a method that an object does not have.
pub(crate) fn unknown_method(method: &str) -> Failure {
    Failure::invalid("unknown_method", format!("there is no method `{method}`"))
}

/// The name of a format.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NamedFormat {
    format: String,
    #[serde(default)]
    marker: Option<String>,
}

impl NamedFormat {
    pub(crate) fn read(&self) -> Result<Format, Failure> {
        format(&self.format, self.marker.as_deref())
    }
}
