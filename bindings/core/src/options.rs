//! Parses options that several functions share.

use std::borrow::Cow;

use endmark::{AskedFrom, Format};
use endmark_failure::nearest;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::offsets::Unit;

/// The names of option types, as messages call them.
const TYPES: [(&str, &str); 5] = [
    ("usize", "a whole number from 0"),
    ("u64", "a whole number from 0"),
    ("u32", "a whole number from 0"),
    ("u8", "a whole number from 0 to 255"),
    ("f64", "a number"),
];

/// Parses the options of a function. The error names the option that is invalid.
pub(crate) fn parse<'o, T: Deserialize<'o>>(options: &'o str) -> Result<T, Failure> {
    let mut deserializer = serde_json::Deserializer::from_str(options);
    let read = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        let message = error.inner().to_string();
        // The package writes the options, so their column numbers are meaningless to its user.
        let message = message.split(" at line ").next().unwrap_or_default();
        if let Some(named) = message.strip_prefix("unknown field ") {
            let known = quoted_words(named).skip(1);
            return unknown_option(&path, &known.collect::<Vec<_>>());
        }
        let kind = TYPES.iter().find(|(kind, _)| message.ends_with(&format!("expected {kind}")));
        let message = kind.map_or(message.to_owned(), |(kind, shown)| message.replace(kind, shown));
        if path == "." {
            let missing: Vec<&str> = quoted_words(&message).collect();
            return Failure::invalid("invalid_options", &message).about(&missing);
        }
        Failure::invalid("invalid_options", format!("`{path}`: {message}")).about(&[&path])
    })?;
    let ended = deserializer.end();
    ended.map(|()| read).map_err(|error| Failure::invalid("invalid_options", error))
}

/// Returns the words of a message that are in back quotes.
fn quoted_words(message: &str) -> impl Iterator<Item = &str> {
    message.split('`').skip(1).step_by(2)
}

/// Returns the failure for an unknown option, and suggests the option that was probably meant. In a path,
/// `known` are the names of its last part.
fn unknown_option(path: &str, known: &[&str]) -> Failure {
    let (before, name) = path.rsplit_once('.').map_or(("", path), |(before, name)| (before, name));
    let full = |name: &str| if before.is_empty() { name.to_owned() } else { format!("{before}.{name}") };
    let Some(suggestion) = nearest(name, known.iter().map(ToString::to_string)) else {
        let names: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
        let message = format!("unknown option `{path}`: use {}", names.join(", "));
        let mentioned: Vec<&str> = [path].into_iter().chain(known.iter().copied()).collect();
        return Failure::invalid("invalid_options", message).about(&mentioned);
    };
    let suggestion = full(&suggestion);
    let message = format!("unknown option `{path}`: did you mean `{suggestion}`?");
    Failure::invalid("invalid_options", message).about(&[path, &suggestion])
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Names<'n> {
    #[serde(borrow)]
    given: Vec<Cow<'n, str>>,
    #[serde(borrow)]
    known: Vec<Cow<'n, str>>,
}

/// Rejects unknown names of options that a package parses itself, as [`parse`] does for all other options.
pub(crate) fn check_names(_: &[&[u8]], options: &str) -> Result<String, Failure> {
    let Names { given, known } = parse(options)?;
    let known: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
    match given.iter().find(|name| !known.contains(&name.as_ref())) {
        Some(name) => Err(unknown_option(name, &known)),
        None => answer(&()),
    }
}

/// Serializes the result of a function.
pub(crate) fn answer(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure::internal(&error.to_string()))
}

/// Returns the input at this position.
pub(crate) fn find_input<'i>(inputs: &[&'i [u8]], index: usize) -> Result<&'i [u8], Failure> {
    let missing = || Failure::invalid("missing_input", "is missing").for_input(index);
    inputs.get(index).copied().ok_or_else(missing)
}

/// Returns the input at this position as text.
pub(crate) fn input_text<'i>(inputs: &[&'i [u8]], index: usize) -> Result<&'i str, Failure> {
    let raw = find_input(inputs, index)?;
    str::from_utf8(raw).map_err(|error| {
        let message = format!("is not UTF-8: byte {} is invalid", error.valid_up_to());
        Failure::invalid("not_utf8", message).for_input(index)
    })
}

/// Returns the format with this name.
pub(crate) fn format(name: &str, marker: Option<&str>) -> Result<Format, Failure> {
    Format::parse(name, marker)
        .map_err(|error| Failure::invalid("invalid_format", format!("`format`: {error}")).about(&["format"]))
}

/// Parses the position at which the model was asked to continue.
pub(crate) fn parse_asked_from(name: &str) -> Result<AskedFrom, Failure> {
    let unknown = || format!("unknown `from`: `{name}`: use cut, token or unknown");
    AskedFrom::parse(name).ok_or_else(|| Failure::invalid("invalid_from", unknown()).about(&["from"]))
}

/// Returns the failure for a value that an option does not accept.
pub(crate) fn unknown_word(option: &str, word: &str, known: &str) -> Failure {
    let message = format!("unknown `{option}`: `{word}`: use {known}");
    Failure::invalid("invalid_options", message).about(&[option])
}

/// Returns the failure for a method that an object does not have.
pub(crate) fn unknown_method(method: &str) -> Failure {
    Failure::invalid("unknown_method", format!("there is no method `{method}`"))
}

/// The options that describe a format.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NamedFormat {
    format: String,
    #[serde(default)]
    marker: Option<String>,
    #[serde(default)]
    pub(crate) offsets: Unit,
}

impl NamedFormat {
    pub(crate) fn read(&self) -> Result<Format, Failure> {
        format(&self.format, self.marker.as_deref())
    }
}
