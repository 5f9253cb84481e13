//! `endmark log`: which replies were cut, and the outcome of each (PC-7).

mod calls;
mod show;

use endmark_console::reports::recoveries::{list_report, request_report};
use endmark_failure::CommandError;
use endmark_store::{
    FinalStatus, Fleet, FleetRecords, LogFilter, SharedReader, StoreError, StoreLocation, runtime,
};
use serde_json::Value;

use crate::arguments::{Log, LogCommand, StatusChoice};
use crate::context::{Context, configuration_warnings, single_gateway_warning};
use crate::view::answer::{Answer, to_data};
use crate::view::paint::Painter;
use crate::view::recoveries as recoveries_view;
use crate::view::table::Layout;

/// Lists recoveries of all gateways, or explains one.
pub(crate) fn run(context: &Context, arguments: &Log) -> Result<Answer, CommandError> {
    let effective = context.load_configuration(arguments.overrides())?;
    let location = &effective.settings.files.store;
    let answer = match &arguments.command {
        Some(LogCommand::Show { id, .. }) => show_entry(location, id, context.terminal.output)?,
        None => {
            let filter =
                LogFilter { final_status: arguments.status.map(final_status), ..LogFilter::default() };
            list_recoveries(location, &filter, arguments.limit, context.terminal.table_layout())?
        }
    };
    let mut warnings = configuration_warnings(&effective);
    warnings.extend(answer.warnings.iter().cloned());
    Ok(answer.with_warnings(warnings))
}

/// Lists the recoveries of all gateways, or of this one if the shared database fails.
fn list_recoveries(
    location: &StoreLocation,
    filter: &LogFilter,
    limit: u32,
    layout: Layout,
) -> Result<Answer, CommandError> {
    let own = filter.clone();
    let of_all = async |reader: SharedReader| reader.recent(limit, filter).await;
    let fleet = Fleet::at(location);
    let found = fleet.read(of_all, move |reader| reader.recent(limit, &own));
    let found = runtime::block_on(found)?.map_err(|error| CommandError::from_store(&error))?;
    let FleetRecords { records: rows, failure } = found;
    let data = to_data(&list_report(&rows, failure.is_some()))?;
    let text = recoveries_view::render_text(&rows, layout) + &recoveries_view::describe_reasons(&rows);
    let alone = failure.map(|error| {
        single_gateway_warning(&format!("these are the recoveries of this gateway alone: {error}"))
    });
    Ok(Answer::yes(data, text).with_warnings(alone))
}

/// Shows what is recorded about a recovery or a request: its cut parts, and the upstream calls for it.
fn show_entry(location: &StoreLocation, id: &str, painter: Painter) -> Result<Answer, CommandError> {
    let failed = |error: StoreError| CommandError::from_store(&error);
    let found = runtime::block_on(Fleet::at(location).request(id))?.map_err(failed)?;
    if found.recovery.is_none() && found.request.is_none() {
        let hint = "`endmark log` lists recoveries. For a chat request, use the id from its header x-endmark-request.";
        let message = format!("no recovery or request `{id}` is recorded");
        return Ok(Answer::no(Value::Null, "not_found", message, Some(hint.to_owned())));
    }
    let cuts =
        found.recovery.as_ref().map(|recovery| show::render_text(recovery, painter)).unwrap_or_default();
    let calls = calls::render_text(found.calls(), painter);
    let between = if cuts.is_empty() || calls.is_empty() { "" } else { "\n" };
    Ok(Answer::yes(to_data(&request_report(&found))?, [cuts, calls].join(between)))
}

fn final_status(choice: StatusChoice) -> FinalStatus {
    match choice {
        StatusChoice::Resolved => FinalStatus::Resolved,
        StatusChoice::Exhausted => FinalStatus::Exhausted,
    }
}
