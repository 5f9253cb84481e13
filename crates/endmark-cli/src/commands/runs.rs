//! `endmark runs`: lists supervised runs, shows one in full, or watches them live. (CG-6)

mod record;
mod watch;

use std::fmt::Write;
use std::path::Path;

use endmark_context::dollars_for_people;
use endmark_failure::{CommandError, to_single_line};
use endmark_runs::{AgentRun, RunEventReport};
use endmark_store::{Fleet, FleetRuns, Reader, Store, StoreError, StoreLocation, runtime};
use serde_json::Value;

use crate::arguments::runs as arguments;
use crate::arguments::runs::RunsCommand;
use crate::context::{Context, configuration_warnings, single_gateway_warning};
use crate::supervision::{resume_runs, runs_folder};
use crate::view::answer::{Answer, Outcome, to_data};
use crate::view::runs::{self, RunsReport, runs_data};
use crate::view::table::Layout;

/// Maximum number of events of a run that are shown.
const MAX_SHOWN_EVENTS: u32 = 10_000;

/// Lists runs, shows one, or watches them.
pub(crate) fn run(context: &Context, arguments: &arguments::Runs) -> Result<Outcome, CommandError> {
    let effective = context.load_configuration(arguments.overrides())?;
    if let Some(RunsCommand::Resume(resume)) = &arguments.command {
        return resume_runs(context, resume, &effective).map(Outcome::from);
    }
    if let Some(RunsCommand::Record(record)) = &arguments.command {
        return record::run(context, record, &effective).map(Outcome::from);
    }
    let failed = |error: StoreError| CommandError::from_store(&error);
    let location = &effective.settings.files.store;
    // A machine that only reads a shared database needs no journal.
    if location.postgres().is_none() || location.path().exists() {
        let reader = Reader::open(location).map_err(failed)?;
        if has_lost_runs(&reader, arguments.limit).map_err(failed)? {
            // Opening the store for writing marks lost runs.
            let store = Store::open_for_runs(location).map_err(failed)?;
            runtime::block_on(store.close())?;
        }
    }
    let layout = context.terminal.table_layout();
    let answer = match &arguments.command {
        Some(RunsCommand::Watch { until_idle, .. }) => {
            let reader = Reader::open(location).map_err(failed)?;
            return watch::watch(context, &reader, arguments.limit, *until_idle).map(Outcome::Streamed);
        }
        Some(RunsCommand::Show { id, .. }) => {
            show_run(location, id, &runs_folder(&effective.settings), layout)?
        }
        Some(RunsCommand::Resume(_) | RunsCommand::Record(_)) | None => {
            list_runs(location, arguments.limit, layout)?
        }
    };
    Ok(answer.with_warnings(configuration_warnings(&effective)).into())
}

/// Lists the runs of all machines, or of this one if the shared database fails.
fn list_runs(location: &StoreLocation, limit: u32, layout: Layout) -> Result<Answer, CommandError> {
    let found = runtime::block_on(Fleet::at(location).runs(None, limit))?;
    let FleetRuns { runs, failure } = found.map_err(|error| CommandError::from_store(&error))?;
    let runs: Vec<AgentRun> = runs.into_iter().map(AgentRun::from).collect();
    let text = if runs.is_empty() {
        "No run is recorded yet; `endmark run` starts one.\n".to_owned()
    } else {
        runs::table_lines(&runs, layout).join("\n") + "\n"
    };
    let alone = failure
        .map(|error| single_gateway_warning(&format!("only the runs of this machine are listed: {error}")));
    Ok(Answer::yes(runs_data(runs)?, text).with_warnings(alone))
}

/// Whether a run is recorded as active although its supervisor has ended.
fn has_lost_runs(reader: &Reader, limit: u32) -> Result<bool, StoreError> {
    let is_lost = |run: endmark_store::StoredRun| {
        let is_supervised = run.is_supervised;
        !is_supervised && !AgentRun::from(run).has_ended()
    };
    Ok(reader.runs(limit)?.into_iter().any(is_lost))
}

fn show_run(
    location: &StoreLocation,
    id: &str,
    outputs: &Path,
    layout: Layout,
) -> Result<Answer, CommandError> {
    let found = runtime::block_on(Fleet::at(location).run(id, MAX_SHOWN_EVENTS))?;
    let Some((run, events)) = found.map_err(|error| CommandError::from_store(&error))? else {
        let hint = "`endmark runs` lists them.".to_owned();
        let message = format!("there is no run `{id}`, or several begin with this id");
        return Ok(Answer::no(Value::Null, "not_found", message, Some(hint)));
    };
    let run = AgentRun::from(run);
    let events: Vec<RunEventReport> = events.into_iter().map(RunEventReport::from).collect();
    let output_folder = Some(outputs.join(&run.id)).filter(|folder| folder.is_dir());
    let output_folder = output_folder.map(|folder| folder.display().to_string());
    let text = describe_run(&run, &events, output_folder.as_deref(), layout);
    Ok(Answer::yes(to_data(&RunsReport { runs: vec![run], events: Some(events), output_folder })?, text))
}

/// Returns one run as readable text.
fn describe_run(run: &AgentRun, events: &[RunEventReport], output: Option<&str>, layout: Layout) -> String {
    let mut text = runs::table_lines(std::slice::from_ref(run), layout).join("\n");
    text.push('\n');
    let mut fact = |name: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {name:<10} {}", to_single_line(&value));
    };
    fact("command", run.command.join(" "));
    fact("folder", run.folder.clone());
    if let Some(machine) = &run.machine {
        fact("machine", format!("{} (instance {})", machine.name, machine.instance));
    }
    if let Some(at) = run.last_known_at() {
        fact("silent", format!("its machine has not reported since {at}; this is its state of that time"));
    }
    if let Some(template) = &run.template {
        fact("template", template.clone());
    }
    for (name, value) in [
        ("session", &run.session),
        ("model", &run.model),
        ("started", &run.started_at),
        ("ended", &run.ended_at),
    ] {
        if let Some(value) = value {
            fact(name, value.clone());
        }
    }
    let usage = run.token_usage;
    match usage.total {
        0 => fact("tokens", "the agent reported none".to_owned()),
        total => fact("tokens", format!("{} in, {} out, {total} in all", usage.input, usage.output)),
    }
    let limit = run.limit_tokens.map(|limit| limit.to_string());
    match (run.largest_call_tokens, limit) {
        (Some(largest), Some(limit)) => fact("context", format!("the largest call had {largest} of {limit}")),
        (Some(largest), None) => {
            fact("context", format!("the largest call had {largest}; the limit is unknown"));
        }
        (None, Some(limit)) => fact("context", format!("{limit}; the agent does not report its calls")),
        (None, None) => {}
    }
    if let Some(cost) = &run.cost_usd {
        fact("cost", format!("${}", format_dollars(cost)));
    }
    if let Some(verdict) = &run.verdict {
        fact("verdict", format!("{verdict}: {}", run.evidence.join("; ")));
    }
    if let Some(folder) = output {
        fact("output", folder.to_owned());
    }
    text.push('\n');
    for event in events {
        // The heading contains the run's id already.
        let _ = writeln!(
            text,
            "  {}",
            watch::format_event(event, layout.painter).replacen(&format!(" {}", run.id), "", 1)
        );
    }
    text
}

/// Converts a dollar amount with nine decimal places to a readable one.
fn format_dollars(usd: &str) -> String {
    usd.replace('.', "").parse().map_or_else(|_| usd.to_owned(), dollars_for_people)
}
