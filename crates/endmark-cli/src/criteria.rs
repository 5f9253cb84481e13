//! The criteria for artifacts, from a template and from the command line.

use std::io;
use std::path::Path;

use endmark_failure::CommandError;
use endmark_guard::{Guard, Template};

use crate::context::Context;
use crate::input::Input;

/// Maximum size of an artifact in bytes, about 1,000 times that of a typical document.
pub(crate) const MAX_ARTIFACT_BYTES: u64 = 256 << 20;

/// The requirements of an artifact.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RequestedCriteria<'a> {
    pub(crate) template: Option<&'a Path>,
    /// Minimum number of non-blank lines.
    pub(crate) min_lines: Option<u32>,
    /// Titles of required sections.
    pub(crate) sections: &'a [String],
    /// Forbidden phrases.
    pub(crate) forbidden: &'a [String],
    /// Whether only these phrases are forbidden, without the built-in ones.
    pub(crate) forbid_only: bool,
}

/// Builds the guard for these requirements.
pub(crate) fn build_guard(context: &Context, demands: &RequestedCriteria<'_>) -> Result<Guard, CommandError> {
    let template = demands.template.map(|path| read_template(context, path)).transpose()?;
    let mut template = template.unwrap_or_default();
    let criteria = &mut template.criteria;
    for (option, values) in [("--section", demands.sections), ("--forbid", demands.forbidden)] {
        if values.iter().any(|value| !value.contains(char::is_alphanumeric)) {
            let hint = format!("Omit {option}, or write a text with letters or digits.");
            return Err(CommandError::input("usage", format!("{option} has no letters or digits"), hint));
        }
    }
    criteria.min_lines =
        demands.min_lines.and_then(|lines| usize::try_from(lines).ok()).or(criteria.min_lines);
    criteria.required_sections.extend(demands.sections.iter().cloned());
    criteria.forbidden_phrases.extend(demands.forbidden.iter().cloned());
    criteria.handoffs_are_forbidden &= !demands.forbid_only;
    Ok(Guard::from_template(template))
}

/// Builds the guard of a template.
pub(crate) fn guard_from_template(context: &Context, template: &Path) -> Result<Guard, CommandError> {
    self::read_template(context, template).map(Guard::from_template)
}

/// Reads a template.
fn read_template(context: &Context, path: &Path) -> Result<Template, CommandError> {
    let text = Input::open_file(path, context.terminal)
        .and_then(Input::read_hand_written)
        .map_err(with_file_hint)?;
    Template::read(&path.to_string_lossy(), &text).map_err(|error| {
        CommandError::input("invalid_criteria", format!("`{}`: {error}", path.display()), error.hint())
    })
}

/// Adds a hint to the error of an unreadable file.
pub(crate) fn with_file_hint(error: CommandError) -> CommandError {
    let CommandError::Read { source, .. } = &error else { return error };
    let hint = match source.kind() {
        io::ErrorKind::NotFound => "Check the path.",
        io::ErrorKind::IsADirectory => "Name the files in the folder.",
        io::ErrorKind::PermissionDenied => {
            "Run the command as a user who may read the file, or copy the file."
        }
        _ => return error,
    };
    CommandError::input("unreadable", error.to_string(), hint)
}

/// Decodes the text of a file.
pub(crate) fn decode_text(file: &Path, bytes: Vec<u8>) -> Result<String, CommandError> {
    let is_utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    String::from_utf8(bytes).map_err(|error| {
        let name = display_name(file);
        let at = error.utf8_error().valid_up_to();
        let message = if is_utf16 {
            format!("`{name}` is UTF-16")
        } else {
            format!("`{name}` is not UTF-8: byte {at} is invalid")
        };
        CommandError::input("not_utf8", message, "Convert it first, as with `iconv -f UTF-16 -t UTF-8`.")
    })
}

pub(crate) fn is_standard_input(file: &Path) -> bool {
    file == Path::new("-")
}

pub(crate) fn display_name(file: &Path) -> String {
    if is_standard_input(file) { "standard input".to_owned() } else { file.display().to_string() }
}
