//! `endmark report`: how many replies were cut, of which kind, what became of them, and what resuming costs. (PC-9)

mod text;

use endmark_config::models;
use endmark_console::reports::cuts::{Found, Report};
use endmark_console::reports::span;
use endmark_failure::CommandError;
use endmark_store::Reader;

use crate::answer::{Answer, to_data};
use crate::arguments::Report as Arguments;
use crate::context::{Context, configuration_warnings};

/// Reads the ledger and says what is in it.
pub(crate) fn run(context: &Context, arguments: &Arguments) -> Result<Answer, CommandError> {
    let seconds = seconds(&arguments.since)?;
    let effective = context.configuration(arguments.store.overrides())?;
    let failed = |error| CommandError::of_store(&error);
    let reader = Reader::open(&effective.settings.store).map_err(failed)?;
    let found = Found::read(&reader, seconds, &models(&effective.settings)).map_err(failed)?;
    let report = Report::of(&found, &arguments.since, effective.settings.resume.continuation_tokens);
    let text = text::text(&report, context.terminal.tables());
    Ok(Answer::yes(to_data(&report)?, text).with_warnings(configuration_warnings(&effective)))
}

/// A span of time as it is typed: `90m`, `12h`, `7d`, `4w`.
pub(super) fn seconds(typed: &str) -> Result<u64, CommandError> {
    span::seconds(typed).ok_or_else(|| {
        CommandError::input(
            "bad_since",
            format!("`{typed}` is no span of time"),
            "Write a number with m, h, d or w behind it, as in `--since 7d`.",
        )
    })
}
