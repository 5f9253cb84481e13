//! `endmark findings`: the results that a team of agents delivers, whole or cut. (AR)

pub(crate) mod check;
pub(crate) mod fit;
pub(crate) mod merge;
mod pages;
pub(crate) mod plan;
pub(crate) mod progress;
pub(crate) mod protocol;
mod sources;
mod team;

use endmark_envelope::Warning;
use endmark_failure::CommandError;
use endmark_findings::Remark;
use serde::Serialize;
use serde_json::Value;

use crate::arguments::findings::{Findings, FindingsCommand};
use crate::context::Context;
use crate::view::answer::{Outcome, to_data};

/// Runs a subcommand.
pub(crate) fn run(context: &Context, arguments: &Findings) -> Result<Outcome, CommandError> {
    let answer = match &arguments.command {
        FindingsCommand::Check(arguments) => check::run(context, arguments),
        FindingsCommand::Fit(arguments) => fit::run(context, arguments),
        FindingsCommand::Protocol(arguments) => protocol::run(arguments),
        FindingsCommand::Progress(arguments) => progress::run(context, arguments),
        FindingsCommand::Plan(arguments) => plan::run(context, arguments),
        FindingsCommand::Merge(arguments) => merge::merge(context, arguments),
        FindingsCommand::Report(arguments) => merge::report(context, arguments),
    };
    answer.map(Outcome::from)
}

/// Returns the data of an answer, or null without `--json`.
///
/// For a large list the data needs 100 times the memory of the text.
fn data_if_json<T: Serialize>(
    context: &Context,
    report: impl FnOnce() -> Result<T, CommandError>,
) -> Result<Value, CommandError> {
    if context.global.json { to_data(&report()?) } else { Ok(Value::Null) }
}

/// Maximum number of remarks that are shown as separate warnings.
const MAX_WARNINGS: usize = 40;

/// Returns ignored or misunderstood input as warnings with file, line and column.
fn remark_warnings(remarks: &[(&str, &Remark)], omitted: usize) -> Vec<Warning> {
    let shown = remarks.iter().take(MAX_WARNINGS).map(|(origin, remark)| {
        Warning::notice(remark.kind.name().to_uppercase(), format!("{origin}: {remark}"))
    });
    let more = remarks.len().saturating_sub(MAX_WARNINGS) + omitted;
    let more =
        (more > 0).then(|| Warning::notice("MORE_REMARKS", format!("{more} more remarks of this kind")));
    shown.chain(more).collect()
}
