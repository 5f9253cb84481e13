//! `endmark cap`: a tool's output, small enough for a model, and honest about what is left out. (CX-5)

pub(crate) mod arguments;
mod batch;
mod keeper;
mod limits;
mod share;

use endmark_context::cap::{CapError, Capped, Capper, cap};
use endmark_envelope::FieldPath;
use endmark_failure::CommandError;
use endmark_store::Handle;
use serde::Serialize;

use arguments::Cap;
pub(super) use keeper::Keeper;
pub(super) use keeper::LOCAL_USER;
pub(super) use limits::{Asked, for_hook, most};
pub(super) use share::{LEAST_SHARE, share, size};

use crate::answer::{Answer, Outcome, to_data};
use crate::context::{Context, configuration_warnings};
use crate::input::Input;

/// Caps one output, or one a line.
pub(crate) fn run(context: &Context, arguments: &Cap) -> Result<Outcome, CommandError> {
    let effective = context.configuration(arguments.store.overrides())?;
    let settings = &effective.settings;
    let asked = limits::of_arguments(arguments, &settings.cap)?;
    let input = Input::open(arguments.file.as_deref(), context.terminal)?;
    let mut keeper = Keeper::new(settings);
    let outcome = if arguments.batch {
        batch::run(input, &asked, (!arguments.no_store).then_some(&mut keeper)).map(Outcome::Streamed)
    } else if arguments.no_store {
        capped(input, asked).and_then(|capped| answer(&capped, None)).map(Outcome::from)
    } else {
        capped_and_kept(input, asked, FieldPath::data().key("text"), &mut keeper).and_then(
            |(capped, handle)| answer(&capped, handle.as_ref().map(Handle::as_str)).map(Outcome::from),
        )
    };
    keeper.close();
    outcome.map(|outcome| match outcome {
        Outcome::Answer(answer) => Outcome::from(answer.with_warnings(configuration_warnings(&effective))),
        Outcome::Streamed(exit) => Outcome::Streamed(exit),
    })
}

fn reading(asked: Asked, called: FieldPath) -> Result<Capper, CommandError> {
    let reading = Capper::new(asked.format, asked.limits).map_err(|error| refused(&error))?;
    Ok(reading.called(called))
}

fn capped(input: Input, asked: Asked) -> Result<Capped, CommandError> {
    let mut reading = reading(asked, FieldPath::data().key("text"))?;
    input.each_chunk(|chunk| reading.push(chunk).map_err(|error| refused(&error)))?;
    reading.finish().map_err(|error| refused(&error))
}

/// The same, with the full output in the store if anything is left out. One that is refused is kept as well: it may come
/// from a pipe, and would be lost.
pub(super) fn capped_and_kept(
    input: Input,
    mut asked: Asked,
    called: FieldPath,
    keeper: &mut Keeper,
) -> Result<(Capped, Option<Handle>), CommandError> {
    let mut keeping = keeper.begin()?;
    asked.limits.handle = Some(keeping.handle().to_owned());
    let mut reading = reading(asked, called)?;
    let mut pushed = Ok(());
    input.each_chunk(|chunk| {
        if pushed.is_ok() {
            pushed = reading.push(chunk);
        }
        keeping.push(chunk);
        Ok(())
    })?;
    match pushed.and_then(|()| reading.finish()) {
        Ok(capped) => Ok(keeping.settle(capped)),
        Err(error) => {
            let handle = keeping.handle().to_owned();
            let error = refused(&error);
            Err(match (keeping.keep("binary"), error) {
                (Ok(()), CommandError::Input { code, message, hint }) => {
                    let hint = hint.unwrap_or_default();
                    let hint = format!("{hint} All of it is kept: `endmark read {handle}`.");
                    CommandError::Input { code, message, hint: Some(hint) }
                }
                (_, error) => error,
            })
        }
    }
}

/// Caps an output that is in memory, and keeps it in full where there is a keeper and anything is left out.
pub(super) fn cap_and_keep(
    raw: &[u8],
    mut asked: Asked,
    keeper: Option<&mut Keeper>,
) -> Result<(Capped, Option<Handle>), CommandError> {
    let keeping = keeper.map(Keeper::begin).transpose()?;
    asked.limits.handle = keeping.as_ref().map(|keeping| keeping.handle().to_owned());
    let capped = cap(raw, asked.format, &asked.limits).map_err(|error| refused(&error))?;
    Ok(match keeping {
        Some(mut keeping) if capped.is_cut => {
            keeping.push(raw);
            keeping.settle(capped)
        }
        Some(_) | None => (capped, None),
    })
}

/// The capped text for people, and all there is to know for programs.
fn answer(capped: &Capped, handle: Option<&str>) -> Result<Answer, CommandError> {
    let data = to_data(&Report { text: &capped.text, handle, format: capped.format.name() })?;
    let mut answer = Answer::yes(data, capped.text.clone()).with_warnings(capped.warnings.iter().cloned());
    // The limit is the one that was asked for; it was kept already.
    answer.max_response_bytes = usize::MAX;
    Ok(answer)
}

pub(super) fn refused(error: &CapError) -> CommandError {
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
