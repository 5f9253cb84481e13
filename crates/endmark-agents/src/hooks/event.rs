//! Parses the events that agents send to their hooks. The names of the fields are the same for all agents.

use std::path::{Path, PathBuf};

use endmark_config::Environment;
use endmark_failure::CommandError;
use endmark_text::replace_lone_surrogate_bytes;
use serde::Deserialize;
use serde_json::Value;

use super::agent::HookAgent;

/// Maximum size of an event in bytes. Agents cut results long before they reach this size.
pub const MAX_EVENT_BYTES: u64 = 256 << 20;

/// States of a task that has ended, so it will not wake the agent.
const FINISHED_STATES: [&str; 6] = ["completed", "failed", "killed", "stopped", "cancelled", "canceled"];

/// An event with the fields that Endmark uses.
#[derive(Debug, Default, Deserialize)]
pub struct HookInput {
    pub(super) session_id: Option<String>,
    pub(super) cwd: Option<PathBuf>,
    pub(super) transcript_path: Option<PathBuf>,
    pub(super) hook_event_name: Option<String>,
    /// The name of the tool that returned the result.
    pub tool_name: Option<String>,
    /// The id of the sub-agent that starts or stops.
    pub(super) agent_id: Option<String>,
    pub(super) agent_type: Option<String>,
    /// Whether a hook has already prevented this stop once. `None` if unknown.
    pub(super) stop_hook_active: Option<bool>,
    #[serde(default)]
    pub(super) tool_response: Value,
    /// The agent's last message, as sent by Claude Code and Codex.
    last_assistant_message: Option<String>,
    /// The agent's last message, as sent by Gemini CLI.
    prompt_response: Option<String>,
    /// Background tasks. While one runs, it will wake the agent.
    #[serde(default)]
    background_tasks: Value,
    #[serde(default)]
    session_crons: Value,
}

impl HookInput {
    /// Parses an event from the standard input of a hook.
    pub fn read(bytes: &[u8]) -> Result<Self, CommandError> {
        serde_json::from_slice(&replace_lone_surrogate_bytes(bytes)).map_err(|error| {
            CommandError::input(
                "not_an_event",
                format!("standard input is not an event of an agent: {error}"),
                "Agents run this command; `endmark hook install` puts it into their settings.",
            )
        })
    }

    /// Returns the session id. Fails if the event has none, because attempts are counted by session.
    pub fn session(&self) -> Result<&str, CommandError> {
        self.session_id.as_deref().filter(|id| !id.is_empty()).ok_or_else(|| {
            CommandError::input("not_an_event", "the event has no `session_id`", "Update the agent.")
        })
    }

    /// Returns the agent's last message. Empty if the event has none.
    pub fn last_message(&self) -> &str {
        self.last_assistant_message.as_deref().or(self.prompt_response.as_deref()).unwrap_or_default()
    }

    /// Whether a task is still running that will wake the agent.
    pub fn is_waiting(&self) -> bool {
        let runs = |task: &Value| {
            let status = task.get("status").and_then(Value::as_str);
            !status.is_some_and(|status| FINISHED_STATES.contains(&status))
        };
        let has_any = |list: &Value| list.as_array().is_some_and(|list| list.iter().any(runs));
        has_any(&self.background_tasks) || has_any(&self.session_crons)
    }

    /// Returns the absolute path of a file in the agent's project.
    pub fn resolve(&self, agent: HookAgent, environment: &Environment, path: &Path) -> PathBuf {
        let folder = agent.project_folder(environment).or_else(|| self.cwd.clone()).unwrap_or_default();
        folder.join(path)
    }
}
