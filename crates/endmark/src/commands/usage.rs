//! `endmark usage`: tokens and dollars of upstream calls, by session, model, key, upstream, day or purpose. (CX-6)

pub(crate) mod arguments;
mod csv;
pub(super) mod sums;
mod text;

use endmark_store::Reader;
use serde::Serialize;

use crate::answer::{Answer, to_data};
use crate::config::models;
use crate::context::{Context, configuration_warnings};
use crate::error::CommandError;
use arguments::Usage as Arguments;
use sums::{Sums, Total};

/// A moment before every row, and one after it.
const EVER: (&str, &str) = ("0000-01-01 00:00:00", "9999-12-31 23:59:59");

/// What it answers.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(in crate::commands) struct Report {
    /// By what the calls are summed.
    by: &'static str,
    /// The sums, the dearest first; days in their order.
    #[cfg_attr(test, schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>"))]
    rows: Vec<serde_json::Map<String, serde_json::Value>>,
    /// All of them together.
    total: Total,
    /// The day that the table of prices is from.
    prices_as_of: String,
}

/// Reads the ledger and sums it.
pub(crate) fn run(context: &Context, arguments: &Arguments) -> Result<Answer, CommandError> {
    let effective = context.configuration(arguments.store.overrides())?;
    let failed = |error| CommandError::of_store(&error);
    let reader = Reader::open(&effective.settings.store).map_err(failed)?;
    let moment = |typed: &Option<String>, ever: &str| match typed {
        Some(typed) => moment(&reader, typed),
        None => Ok(ever.to_owned()),
    };
    let (since, until) = (moment(&arguments.since, EVER.0)?, moment(&arguments.until, EVER.1)?);
    let models = models(&effective.settings);
    let mut sums = Sums::new(arguments.by, &models);
    reader.each_call(&since, &until, |row| sums.add(&row)).map_err(failed)?;
    let (rows, total) = sums.finish();
    let text = if arguments.csv {
        csv::text(arguments.by, &rows)
    } else {
        text::text(arguments.by, &rows, &total, models.as_of(), context.terminal.output)
    };
    let report = Report {
        by: arguments.by.name(),
        rows: rows.iter().map(|row| row.named(arguments.by)).collect::<Result<_, _>>()?,
        total,
        prices_as_of: models.as_of().to_owned(),
    };
    Ok(Answer::yes(to_data(&report)?, text).with_warnings(configuration_warnings(&effective)))
}

/// A day (`2026-11-24`), or so long ago (`7d`), as the store writes moments.
fn moment(reader: &Reader, typed: &str) -> Result<String, CommandError> {
    if endmark_context::Day::parse(typed).is_some() {
        return Ok(format!("{typed} 00:00:00"));
    }
    let unusable = || {
        CommandError::input(
            "bad_moment",
            format!("`{typed}` is no day and no span of time"),
            "Write a day, as in `--since 2026-11-01`, or a number with m, h, d or w behind it, as in `--since 7d`.",
        )
    };
    let seconds = super::report::seconds(typed).map_err(|_| unusable())?;
    reader.before(seconds).map_err(|error| CommandError::of_store(&error))
}
