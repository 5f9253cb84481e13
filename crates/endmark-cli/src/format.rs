//! From the names of formats to formats.

use endmark_failure::CommandError;
use endmark_text::{Format, FormatError};

use crate::arguments::FormatArguments;

/// The format these arguments ask for; `auto` where they ask for none.
pub(crate) fn of_arguments(arguments: &FormatArguments) -> Result<Format, CommandError> {
    named(arguments.format.as_deref(), arguments.marker.as_deref(), &Format::Auto).map_err(|error| {
        CommandError::Input { code: "invalid_format", message: error.to_string(), hint: None }
    })
}

/// The format of this name; a marker alone means the format of that name, and nothing at all the default.
pub(crate) fn named(
    name: Option<&str>,
    marker: Option<&str>,
    default: &Format,
) -> Result<Format, FormatError> {
    match (name, marker) {
        (Some(name), marker) => Format::parse(name, marker),
        (None, Some(marker)) => Format::parse("marker", Some(marker)),
        (None, None) => Ok(default.clone()),
    }
}
