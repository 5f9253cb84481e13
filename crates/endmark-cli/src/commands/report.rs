//! `endmark report`: how many replies were cut, with the kinds of cut, the outcomes, and the cost of resuming (PC-9).

mod text;

use endmark_config::models;
use endmark_console::reports::cuts::{CutData, CutsReport};
use endmark_console::reports::span::moment_before;
use endmark_console::reports::usage::ALL_TIME;
use endmark_failure::CommandError;
use endmark_store::{Fleet, FleetRecords, SharedReader, runtime};

use crate::arguments::Report as Arguments;
use crate::context::{Context, configuration_warnings, single_gateway_warning};
use crate::time_span::parse_seconds;
use crate::view::answer::{Answer, to_data};

/// Reads the ledger of all gateways, or of this one if the shared database fails, and summarises it.
pub(crate) fn run(context: &Context, arguments: &Arguments) -> Result<Answer, CommandError> {
    let seconds = parse_seconds(&arguments.since)?;
    let effective = context.load_configuration(arguments.store.overrides())?;
    let models = models(&effective.settings);
    let of_file = models.clone();
    let of_all = async |reader: SharedReader| {
        Ok(CutData::of_all(&reader.report(&moment_before(seconds), ALL_TIME.1).await?, &models))
    };
    let fleet = Fleet::at(&effective.settings.files.store);
    let found = fleet.read(of_all, move |reader| CutData::read(reader, seconds, &of_file));
    let found = runtime::block_on(found)?.map_err(|error| CommandError::from_store(&error))?;
    let FleetRecords { records: mut found, failure } = found;
    found.this_gateway_alone = failure.is_some();
    let report =
        CutsReport::new(&found, &arguments.since, effective.settings.gateway.resume.continuation_tokens);
    let text = text::render_text(&report, context.terminal.table_layout());
    let mut warnings = configuration_warnings(&effective);
    warnings.extend(
        failure.map(|error| {
            single_gateway_warning(&format!("this is the report of this gateway alone: {error}"))
        }),
    );
    Ok(Answer::yes(to_data(&report)?, text).with_warnings(warnings))
}
