//! What artifacts are held to: a template, and what is typed besides.

use std::io;
use std::path::Path;

use endmark_failure::CommandError;
use endmark_guard::{Guard, Template};

use super::arguments;
use crate::context::Context;
use crate::input::Input;

/// The guard that was asked for.
pub(in crate::commands) fn guard(
    context: &Context,
    arguments: &arguments::Guard,
) -> Result<Guard, CommandError> {
    let template = arguments.template.as_deref().map(|path| template(context, path)).transpose()?;
    let mut template = template.unwrap_or_default();
    let criteria = &mut template.criteria;
    for (option, values) in [("--section", &arguments.sections), ("--forbid", &arguments.forbidden)] {
        if values.iter().any(|value| !value.contains(char::is_alphanumeric)) {
            let hint = format!("Leave {option} out, or say what is meant.");
            return Err(CommandError::input(
                "usage",
                format!("{option} has neither a letter nor a digit"),
                hint,
            ));
        }
    }
    criteria.min_lines =
        arguments.min_lines.and_then(|lines| usize::try_from(lines).ok()).or(criteria.min_lines);
    criteria.required_sections.extend(arguments.sections.iter().cloned());
    criteria.forbidden_phrases.extend(arguments.forbidden.iter().cloned());
    criteria.handoffs_are_forbidden &= !arguments.forbid_only;
    Ok(Guard::of_template(template))
}

/// What a template demands.
pub(super) fn template(context: &Context, path: &Path) -> Result<Template, CommandError> {
    let text =
        Input::open_file(path, context.terminal).and_then(Input::written_text).map_err(with_next_step)?;
    Template::read(&path.to_string_lossy(), &text).map_err(|error| {
        CommandError::input("invalid_criteria", format!("`{}`: {error}", path.display()), error.hint())
    })
}

/// What to do about a file that cannot be read.
pub(super) fn with_next_step(error: CommandError) -> CommandError {
    let CommandError::Read { source, .. } = &error else { return error };
    let hint = match source.kind() {
        io::ErrorKind::NotFound => "Check the path.",
        io::ErrorKind::IsADirectory => "Name the files in it.",
        io::ErrorKind::PermissionDenied => "Read it as someone who may, or copy it to where you may.",
        _ => return error,
    };
    CommandError::input("unreadable", error.to_string(), hint)
}
