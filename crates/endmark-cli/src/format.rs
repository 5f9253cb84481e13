//! Maps format names to formats.

use endmark_failure::CommandError;
use endmark_text::{Format, FormatError};

use crate::arguments::FormatArguments;

/// Returns the format of these arguments, or `auto` if no format is given.
pub(crate) fn from_arguments(arguments: &FormatArguments) -> Result<Format, CommandError> {
    find_format(arguments.format.as_deref(), arguments.marker.as_deref(), &Format::Auto).map_err(|error| {
        CommandError::Input { code: "invalid_format", message: error.to_string(), hint: None }
    })
}

/// Returns the format with this name. A marker alone means the marker format; without both, returns the default.
pub(crate) fn find_format(
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
