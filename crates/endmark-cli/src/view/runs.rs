//! Runs as the data of an answer and as rows of a table.

use endmark_failure::CommandError;
use endmark_runs::{AgentRun, RunEventReport};
use serde::Serialize;
use serde_json::Value;

use crate::view::answer::to_data;

use crate::view::paint::Paint;
use crate::view::table::{Cell, Column, Layout};

/// Width of the bar in characters.
const BAR_CHARS: u64 = 10;

const COLUMNS: [Column<'static>; 7] = [
    Column::fixed("run"),
    Column::fixed("state"),
    Column::fixed("try"),
    Column::fixed("context"),
    Column::number("tokens"),
    Column::text("artifact"),
    Column::text("reason"),
];

/// The answer of `runs`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RunsReport {
    /// The runs, the newest first.
    pub(crate) runs: Vec<AgentRun>,
    /// The events of the run; only with `runs show`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) events: Option<Vec<RunEventReport>>,
    /// The folder with the agent's output, if it exists; only with `runs show`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output_folder: Option<String>,
}

/// Returns runs as the data of an answer.
pub(crate) fn runs_data(runs: Vec<AgentRun>) -> Result<Value, CommandError> {
    to_data(&RunsReport { runs, events: None, output_folder: None })
}

/// Returns the headings and one line per run, with its machine if several share a database.
pub(crate) fn table_lines(runs: &[AgentRun], layout: Layout) -> Vec<String> {
    if runs.iter().all(|run| run.machine.is_none()) {
        return layout.lines(COLUMNS, runs.iter().map(cells));
    }
    let [run, state, attempt, context, tokens, artifact, reason] = COLUMNS;
    let columns = [run, Column::text("machine"), state, attempt, context, tokens, artifact, reason];
    let with_machine = |run: &AgentRun| {
        let [id, state, attempt, context, tokens, artifact, reason] = cells(run);
        let machine = run.machine.as_ref().map_or("", |machine| &machine.name).into();
        [id, machine, state, attempt, context, tokens, artifact, reason]
    };
    layout.lines(columns, runs.iter().map(with_machine))
}

fn cells(run: &AgentRun) -> [Cell; 7] {
    let paint = match run.state.as_str() {
        "succeeded" => Paint::Good,
        "failed" | "released" => Paint::Bad,
        "running" => Paint::Strong,
        _ => Paint::Doubt,
    };
    let risk = if run.context_exhaustion_risk { "!" } else { "" };
    let called = run.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
    [
        run.id.as_str().into(),
        Cell::painted(run.state.as_str(), paint),
        format!("{}/{}", run.attempt, run.max_attempts).into(),
        format!("{}{risk}", context_bar(run)).into(),
        run.token_usage.total.to_string().into(),
        format!("{}{called}", run.artifact).into(),
        match run.last_known_at() {
            Some(at) => format!("silent: as last known at {at}").into(),
            None => run.reason.as_deref().unwrap_or("-").into(),
        },
    ]
}

/// Shows the largest call relative to the model's limit, as a bar and a percentage.
fn context_bar(run: &AgentRun) -> String {
    let (Some(largest), Some(limit)) = (run.largest_call_tokens, run.limit_tokens.filter(|limit| *limit > 0))
    else {
        return "unknown".to_owned();
    };
    let percent = largest.saturating_mul(100) / limit;
    let full = (largest.saturating_mul(BAR_CHARS) / limit).min(BAR_CHARS);
    let sign = |count: u64, sign: &str| sign.repeat(usize::try_from(count).unwrap_or_default());
    format!("[{}{}] {percent:>3}%", sign(full, "#"), sign(BAR_CHARS - full, "."))
}
