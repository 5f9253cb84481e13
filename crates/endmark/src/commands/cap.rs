//! `endmark cap`: a tool's output, small enough for a model, and honest about what is left out. (CX-5)

pub(crate) mod arguments;
mod batch;
mod limits;

use endmark_context::cap::{CapError, Capped, Capper};
use endmark_envelope::FieldPath;
use serde::Serialize;

use arguments::Cap;

use crate::answer::{Answer, Outcome, to_data};
use crate::context::{Context, configuration_warnings};
use crate::error::CommandError;
use crate::input::Input;

/// Caps one output, or one a line.
pub(crate) fn run(context: &Context, arguments: &Cap) -> Result<Outcome, CommandError> {
    let effective = context.configuration(Vec::new())?;
    let asked = limits::of_arguments(arguments, &effective.settings.cap)?;
    let input = Input::open(arguments.file.as_deref(), context.terminal)?;
    if arguments.batch {
        return batch::run(input, &asked).map(Outcome::Streamed);
    }
    let reading = Capper::new(asked.format, asked.limits).map_err(|error| refused(&error))?;
    let mut reading = reading.called(FieldPath::data().key("text"));
    input.each_chunk(|chunk| reading.push(chunk).map_err(|error| refused(&error)))?;
    let capped = reading.finish().map_err(|error| refused(&error))?;
    let answer = answer(&capped, None)?;
    Ok(Outcome::from(answer.with_warnings(configuration_warnings(&effective))))
}

/// The capped text for people, and all there is to know for programs.
fn answer(capped: &Capped, handle: Option<&str>) -> Result<Answer, CommandError> {
    let data = to_data(&Report { text: &capped.text, handle, format: capped.format.name() })?;
    let mut answer = Answer::yes(data, capped.text.clone()).with_warnings(capped.warnings.iter().cloned());
    // The limit is the one that was asked for; it was kept already.
    answer.max_response_bytes = usize::MAX;
    Ok(answer)
}

fn refused(error: &CapError) -> CommandError {
    match error {
        CapError::Limits(error) => {
            CommandError::input("invalid_limit", error.to_string(), "Give a larger limit.")
        }
        CapError::NotUtf8 { .. } => CommandError::input(
            "not_utf8",
            error.to_string(),
            "With `--format auto` such bytes are shown as U+FFFD, and a binary value is named.",
        ),
    }
}

/// What a capped output is, under the names that others rely on.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Report<'a> {
    /// The output as it was, or with markers where something is left out.
    text: &'a str,
    /// Under what name the full output is kept; null where nothing is left out, or none is kept.
    handle: Option<&'a str>,
    /// What it was taken for: `text`, `json`, `jsonl`, `csv`, `diff` or `binary`.
    format: &'static str,
}
