//! `endmark usage`: tokens and dollars of upstream calls, by session, model, key, upstream, day or purpose. (CX-6)

mod csv;
mod text;

use endmark_config::models;
use endmark_console::reports::span::{self, MomentError};
use endmark_console::reports::usage::{EVER, UsageReport};
use endmark_failure::CommandError;
use endmark_store::Reader;

use crate::arguments::usage::Usage as Arguments;
use crate::context::{Context, report_warnings};
use crate::view::answer::{Answer, to_data};

/// Reads the ledger and sums it.
pub(crate) fn run(context: &Context, arguments: &Arguments) -> Result<Answer, CommandError> {
    let effective = context.configuration(arguments.store.overrides())?;
    let failed = |error| CommandError::of_store(&error);
    let reader = Reader::open(&effective.settings.files.store).map_err(failed)?;
    let moment = |typed: &Option<String>, ever: &str| match typed {
        Some(typed) => moment(&reader, typed),
        None => Ok(ever.to_owned()),
    };
    let (since, until) = (moment(&arguments.since, EVER.0)?, moment(&arguments.until, EVER.1)?);
    if since >= until {
        let message = format!("`--since` ({since}) is not before `--until` ({until}), UTC");
        return Err(CommandError::input("empty_period", message, "Write the earlier one after `--since`."));
    }
    let models = models(&effective.settings);
    let by = arguments.by.key();
    let report = UsageReport::read(&reader, by, &since, &until, &models).map_err(failed)?;
    let text = if arguments.csv {
        csv::text(by, &report.rows)
    } else {
        text::text(by, &report.rows, &report.total, models.as_of(), context.terminal.tables())
    };
    Ok(Answer::yes(to_data(&report)?, text).with_warnings(report_warnings(&effective)))
}

/// Parses a day (`2026-11-24`) or a time span before now (`7d`) into the store's form of a moment.
fn moment(reader: &Reader, typed: &str) -> Result<String, CommandError> {
    span::moment(reader, typed).map_err(|error| match error {
        MomentError::Store(error) => CommandError::of_store(&error),
        MomentError::Unusable(_) => CommandError::input(
            "bad_moment",
            error.to_string(),
            "Write a day, as in `--since 2026-11-01`, or a number with m, h, d or w after it, as in `--since 7d`.",
        ),
    })
}
