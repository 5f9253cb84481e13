//! Shows runs live: a table that is redrawn at a terminal, or one line per event otherwise (CG-6).

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};
use std::time::Duration;

use endmark_failure::{CommandError, ExitStatus, to_single_line};
use endmark_runs::{AgentRun, RunEventReport};
use endmark_store::{Reader, StoreError};

use crate::context::Context;
use crate::view::paint::{Paint, Painter};
use crate::view::runs as table;
use crate::view::table::Layout;
use crate::view::terminal::{self, JsonOutput};

/// How often the store is queried for changes.
const POLL_INTERVAL: Duration = Duration::from_millis(300);
/// Maximum number of events per query.
const MAX_EVENTS_PER_QUERY: u32 = 1_000;
/// The assumed width of a terminal that does not report it.
const DEFAULT_COLUMNS: usize = 100;
/// The assumed height of a terminal that does not report it.
const DEFAULT_LINES: usize = 24;

/// Shows runs until interrupted, or with `--until-idle` until no run is active.
pub(super) fn watch(
    context: &Context,
    reader: &Reader,
    limit: u32,
    until_idle: bool,
) -> Result<ExitStatus, CommandError> {
    let is_drawn = io::stdout().is_terminal() && !context.terminal.json;
    let shown = if is_drawn {
        draw(reader, limit, until_idle, context.terminal.output)
    } else {
        follow(reader, limit, until_idle, context.terminal.output, context.terminal.json)
    };
    match shown {
        Ok(()) => Ok(ExitStatus::Success),
        Err(WatchError::Write(error)) => Err(CommandError::Write(error)),
        Err(WatchError::Store(error)) => Err(CommandError::from_store(&error)),
    }
}

enum WatchError {
    Write(io::Error),
    Store(StoreError),
}

impl From<io::Error> for WatchError {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

impl From<StoreError> for WatchError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

fn load_runs(reader: &Reader, limit: u32) -> Result<Vec<AgentRun>, StoreError> {
    Ok(reader.runs(limit)?.into_iter().map(AgentRun::from).collect())
}

fn is_idle(runs: &[AgentRun]) -> bool {
    runs.iter().all(|run| run.has_ended() || !run.is_supervised)
}

/// Redraws the table in the same place. Earlier terminal output stays.
fn draw(reader: &Reader, limit: u32, until_idle: bool, painter: Painter) -> Result<(), WatchError> {
    let mut drawn = 0;
    loop {
        let runs = load_runs(reader, limit)?;
        let width = terminal::columns().unwrap_or(DEFAULT_COLUMNS);
        let height = terminal::lines().unwrap_or(DEFAULT_LINES);
        let mut lines = table::table_lines(&runs, Layout { painter, width: Some(width) });
        lines.truncate(height.saturating_sub(1).max(1));
        let mut frame = String::new();
        if drawn > 0 {
            // Writing to a string cannot fail.
            let _ = write!(frame, "\x1b[{drawn}A");
        }
        for line in &lines {
            frame.push_str("\x1b[2K");
            frame.push_str(line);
            frame.push_str("\r\n");
        }
        // Clears the rest, in case the table became shorter.
        frame.push_str("\x1b[J");
        drawn = lines.len();
        let mut output = io::stdout().lock();
        output.write_all(frame.as_bytes())?;
        output.flush()?;
        drop(output);
        if until_idle && is_idle(&runs) {
            return Ok(());
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Writes a line for each new event.
fn follow(
    reader: &Reader,
    limit: u32,
    until_idle: bool,
    painter: Painter,
    json: bool,
) -> Result<(), WatchError> {
    let mut newest = reader.newest_run_event()?;
    loop {
        // Checked before the events are read, so that an event in between is still shown.
        let is_idle = until_idle && is_idle(&load_runs(reader, limit)?);
        let events = reader.run_events(None, newest, MAX_EVENTS_PER_QUERY)?;
        let mut output = io::stdout().lock();
        for event in events {
            newest = event.id;
            let event = RunEventReport::from(event);
            if json {
                let event = serde_json::to_string(&event).map_err(io::Error::other)?;
                writeln!(JsonOutput::new(&mut output), "{event}")?;
            } else {
                writeln!(output, "{}", format_event(&event, painter))?;
            }
        }
        output.flush()?;
        drop(output);
        if is_idle {
            return Ok(());
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Formats an event as one line.
pub(super) fn format_event(event: &RunEventReport, painter: Painter) -> String {
    let paint = match event.state.as_str() {
        "succeeded" => Paint::Good,
        "failed" | "released" => Paint::Bad,
        _ => Paint::Strong,
    };
    let at = event.at.as_deref().unwrap_or_default();
    let reason = event.reason.as_ref().map(|reason| format!(" {reason}")).unwrap_or_default();
    let name = painter.paint(paint, &event.event);
    format!("{at} {} {name}{reason}: {}", to_single_line(&event.run), to_single_line(&event.message))
}
