//! Reports the events of runs to people on standard error, to a JSON Lines file, and to a webhook.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use endmark_config::Runs;
use endmark_failure::{CommandError, to_single_line};
use endmark_gateway::Webhook;
use endmark_process::open_to_write;
use endmark_runs::{AgentRun, RunEventReport};
use serde::Serialize;

use crate::view::paint::Paint;
use crate::view::terminal::Terminal;

/// Reports the runs that this process started.
pub(super) struct RunReporter {
    terminal: Terminal,
    events: Option<(PathBuf, File)>,
    webhook: Option<Webhook>,
    /// Whether an event could not be written, which is reported only once.
    is_missing_events: bool,
    /// Problems so far, for the answer's warnings.
    pub(super) warnings: Vec<String>,
}

/// One line of the event file.
#[derive(Serialize)]
struct EventLine<'a> {
    #[serde(flatten)]
    event: &'a RunEventReport,
    /// Milliseconds since 1970, UTC.
    at_ms: u64,
    // This name is part of the published interface.
    #[serde(rename = "agentRun")]
    agent_run: &'a AgentRun,
}

impl RunReporter {
    pub(super) fn new(terminal: Terminal, events: Option<&Path>, runs: &Runs) -> Result<Self, CommandError> {
        let events = match events {
            None => None,
            Some(path) => {
                let file =
                    open_to_write(OpenOptions::new().append(true).create(true), path).map_err(|error| {
                        CommandError::input(
                            "unwritable",
                            format!("cannot write events to `{}`: {error}", path.display()),
                            "Name a writable file.",
                        )
                    })?;
                Some((path.to_owned(), file))
            }
        };
        let webhook = match &runs.webhook {
            None => None,
            Some(address) => {
                let webhook = Webhook::new(address.reveal(), runs.webhook_secret.clone());
                Some(webhook.map_err(|error| {
                    CommandError::input(
                        "invalid_webhook",
                        error.to_string(),
                        "Correct --webhook or `[runs] webhook`.",
                    )
                })?)
            }
        };
        Ok(Self { terminal, events, webhook, is_missing_events: false, warnings: Vec::new() })
    }

    /// Returns the webhook that also receives the events, if one is configured.
    pub(super) fn webhook(&self) -> Option<Webhook> {
        self.webhook.clone()
    }

    /// Reports an event of a run.
    pub(super) fn report_event(&mut self, run: &AgentRun, event: &RunEventReport) {
        let paint = match event.event.as_str() {
            "agent_run.succeeded" => Paint::Good,
            "agent_run.started" => Paint::Strong,
            "agent_run.failed" | "agent_run.released" => Paint::Bad,
            _ => Paint::Doubt,
        };
        let reason = event.reason.as_ref().map(|reason| format!(" {reason}")).unwrap_or_default();
        let run_label =
            run.name.as_deref().map(|name| format!(" [{}]", to_single_line(name))).unwrap_or_default();
        let what = self.terminal.errors.paint(paint, &event.event);
        let message = to_single_line(&event.message);
        self.terminal.progress(&format!("{}{run_label} {what}{reason}: {message}", event.run));
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let at_ms = u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX);
        let line = EventLine { event, at_ms, agent_run: run };
        if let Some(webhook) = &self.webhook
            && let Ok(line) = serde_json::to_value(&line)
        {
            webhook.send(&line);
        }
        let Some((path, file)) = &mut self.events else { return };
        let line = serde_json::to_string(&line);
        let written = line
            .map_err(std::io::Error::other)
            .and_then(|line| file.write_all(format!("{line}\n").as_bytes()));
        if let Err(error) = written
            && !std::mem::replace(&mut self.is_missing_events, true)
        {
            let message = format!("events are missing from `{}`: {error}", path.display());
            self.warn(&message);
        }
    }

    /// Reports a problem that does not stop the runs.
    pub(super) fn warn(&mut self, message: &str) {
        self.terminal.warn(message);
        self.warnings.push(message.to_owned());
    }
}
