//! `endmark cap`: shortens a tool's output for a model, and marks what is left out. (CX-5)

mod batch;
mod limits;

use endmark_context::cap::{CappedValue, Capper};
use endmark_envelope::FieldPath;
use endmark_failure::CommandError;
use endmark_store::{CapRequest, Handle, cap_chunks_and_keep, cap_error};
use serde::Serialize;

use crate::arguments::cap::Cap;

use crate::context::{Context, configuration_warnings};
use crate::input::Input;
use crate::view::answer::{Answer, Outcome, to_data};

/// Caps one output, or one per line.
pub(crate) fn run(context: &Context, arguments: &Cap) -> Result<Outcome, CommandError> {
    let effective = context.load_configuration(arguments.store.overrides())?;
    let settings = &effective.settings;
    let cap_request = limits::from_arguments(arguments, settings)?;
    let input = Input::open(arguments.file.as_deref(), context.terminal)?;
    let mut keeper = settings.keeper();
    let outcome = if arguments.batch {
        batch::run(input, &cap_request, (!arguments.no_store).then_some(&mut keeper)).map(Outcome::Streamed)
    } else if arguments.no_store {
        cap_input(input, cap_request).and_then(|capped| answer(&capped, None)).map(Outcome::from)
    } else {
        let called = FieldPath::data().key("text");
        cap_chunks_and_keep(|take| input.each_chunk(take), cap_request, called, &mut keeper).and_then(
            |(capped, handle)| answer(&capped, handle.as_ref().map(Handle::as_str)).map(Outcome::from),
        )
    };
    keeper.close();
    outcome.map(|outcome| match outcome {
        Outcome::Answer(answer) => Outcome::from(answer.with_warnings(configuration_warnings(&effective))),
        Outcome::Streamed(exit) => Outcome::Streamed(exit),
    })
}

fn cap_input(input: Input, cap_request: CapRequest) -> Result<CappedValue, CommandError> {
    let capper = Capper::new(cap_request.format, cap_request.limits).map_err(|error| cap_error(&error))?;
    let mut capper = capper.with_path(FieldPath::data().key("text"));
    input.each_chunk(|chunk| capper.push(chunk).map_err(|error| cap_error(&error)))?;
    capper.finish().map_err(|error| cap_error(&error))
}

/// Returns the capped text, and all metadata for `--json`.
fn answer(capped: &CappedValue, handle: Option<&str>) -> Result<Answer, CommandError> {
    let data = to_data(&CapReport { text: &capped.text, handle, format: capped.format.name() })?;
    let mut answer = Answer::yes(data, capped.text.clone()).with_warnings(capped.warnings.iter().cloned());
    // The limits of `--max-*` already apply to the text, so the envelope gets no limit.
    answer.max_response_bytes = usize::MAX;
    Ok(answer)
}

/// Answer data of `cap`. The field names are public.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CapReport<'a> {
    /// The unchanged output, or the capped output with markers for omitted parts.
    text: &'a str,
    /// The handle of the stored full output; null if nothing is omitted or nothing is stored.
    handle: Option<&'a str>,
    /// The detected format: `text`, `json`, `jsonl`, `csv`, `diff` or `binary`.
    format: &'static str,
}
