//! `endmark report`: how many replies were cut, with the kinds of cut, the outcomes, and the cost of resuming (PC-9).

mod text;

use endmark_config::models;
use endmark_console::reports::cuts::{CutsReport, FoundCuts};
use endmark_failure::CommandError;
use endmark_store::Reader;

use crate::arguments::Report as Arguments;
use crate::context::{Context, report_warnings};
use crate::time_span::seconds;
use crate::view::answer::{Answer, to_data};

/// Reads the ledger and summarises it.
pub(crate) fn run(context: &Context, arguments: &Arguments) -> Result<Answer, CommandError> {
    let seconds = seconds(&arguments.since)?;
    let effective = context.configuration(arguments.store.overrides())?;
    let failed = |error| CommandError::from_store(&error);
    let reader = Reader::open(&effective.settings.files.store).map_err(failed)?;
    let found = FoundCuts::read(&reader, seconds, &models(&effective.settings)).map_err(failed)?;
    let report =
        CutsReport::new(&found, &arguments.since, effective.settings.gateway.resume.continuation_tokens);
    let text = text::text(&report, context.terminal.tables());
    Ok(Answer::yes(to_data(&report)?, text).with_warnings(report_warnings(&effective)))
}
