//! `endmark usage`: tokens and dollars of upstream calls, by session, model, key, upstream, day or purpose (CX-6).

mod csv;
mod text;

use endmark_config::models;
use endmark_console::reports::span::{self, MomentError};
use endmark_console::reports::usage::{ALL_TIME, UsageReport};
use endmark_failure::CommandError;
use endmark_store::{Reader, StoreError, runtime, shared_sums};

use crate::arguments::usage::Usage as Arguments;
use crate::context::{Context, configuration_warnings, single_gateway_warning};
use crate::view::answer::{Answer, to_data};

/// Sums the calls of the store, or of all gateways that share the database.
pub(crate) fn run(context: &Context, arguments: &Arguments) -> Result<Answer, CommandError> {
    let effective = context.load_configuration(arguments.store.overrides())?;
    let moment = |typed: &Option<String>, ever: &str| match typed {
        Some(typed) => span::moment(typed).map_err(|error| invalid_moment_error(&error)),
        None => Ok(ever.to_owned()),
    };
    let (since, until) = (moment(&arguments.since, ALL_TIME.0)?, moment(&arguments.until, ALL_TIME.1)?);
    if since >= until {
        let message = format!("`--since` ({since}) is not before `--until` ({until}), UTC");
        return Err(CommandError::input(
            "empty_period",
            message,
            "Write the earlier day or span after `--since`.",
        ));
    }
    let models = models(&effective.settings);
    let (by, location) = (arguments.by.key(), &effective.settings.files.store);
    let mut warnings = configuration_warnings(&effective);
    let of_file = || -> Result<UsageReport, StoreError> {
        UsageReport::read(&Reader::open(location)?, by, &since, &until, &models)
    };
    let report = if location.postgres().is_some() {
        match runtime::block_on(shared_sums(location, by.dimension(), &since, &until))? {
            Ok(sums) => UsageReport::from_all_gateways(&sums.unwrap_or_default(), by, &models),
            Err(error) => {
                warnings.push(single_gateway_warning(&format!(
                    "these are the calls of this gateway alone: {error}"
                )));
                // Without a journal, report the error of the database.
                let report = of_file().map_err(|_| CommandError::from_store(&error))?;
                UsageReport { this_gateway_alone: true, ..report }
            }
        }
    } else {
        of_file().map_err(|error| CommandError::from_store(&error))?
    };
    let text = if arguments.csv {
        csv::render_csv(by, &report.rows)
    } else {
        text::render_text(by, &report.rows, &report.total, models.as_of(), context.terminal.table_layout())
    };
    Ok(Answer::yes(to_data(&report)?, text).with_warnings(warnings))
}

fn invalid_moment_error(error: &MomentError) -> CommandError {
    CommandError::input(
        "bad_moment",
        error.to_string(),
        "Write a day, as in `--since 2026-11-01`, or a number followed by m, h, d or w, as in `--since 7d`.",
    )
}
