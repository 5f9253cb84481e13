//! The agents with hooks: their events, their settings, and the output format of their hooks.
//!
//! The formats were tested with Claude Code 2.1.331, Codex 0.169.0 and Gemini CLI 0.61.0. Gemini CLI
//! documents `hookSpecificOutput.tool_output`, but ignores it.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use endmark_config::Environment;
use serde_json::{Value, json};

use crate::clients::{ClientChoice, configuration_path};

/// The agents that have hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HookAgent {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// Gemini CLI
    Gemini,
}

/// The purpose of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum HookKind {
    /// Cap tool results
    Tool,
    /// Check the agent's artifact before it stops
    Stop,
    /// Preserve values when a session is compacted (Claude Code)
    Compact,
    /// Give sub-agents the findings protocol (Claude Code)
    Findings,
}

/// An event at which an agent runs hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookEvent {
    /// The name of the event.
    pub event: &'static str,
    /// The tools or sources that the hook applies to. `None` if the agent does not support a selection.
    pub matcher: Option<&'static str>,
}

const fn hook_event(event: &'static str, matcher: Option<&'static str>) -> HookEvent {
    HookEvent { event, matcher }
}

/// The tools whose results are capped.
///
/// `Read` is not included: Claude Code numbers its lines after the hooks, so the numbers would be wrong after
/// a cut. Editing tools are not included, because the model does not read their results.
const CLAUDE_TOOLS: &str = "Bash|BashOutput|TaskOutput|Task|Agent|Grep|Glob|WebFetch|WebSearch|mcp__.*";
const CLAUDE_UNCAPPED_TOOLS: [&str; 6] =
    ["Read", "Edit", "MultiEdit", "Write", "NotebookEdit", "NotebookRead"];

/// Average number of characters in a token.
const CHARS_PER_TOKEN: u64 = 4;

/// Time limit of a hook in seconds.
const TIMEOUT_SECONDS: u64 = 60;

impl HookAgent {
    /// All agents with hooks.
    pub const ALL: [Self; 3] = [Self::Claude, Self::Codex, Self::Gemini];

    /// Returns the agent's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
        }
    }

    /// Returns the agent's name for display.
    pub fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
        }
    }

    /// Returns the events at which hooks of this kind run. Empty if the agent does not support the kind.
    pub fn events(self, kind: HookKind) -> &'static [HookEvent] {
        match (self, kind) {
            (Self::Claude, HookKind::Tool) => const { &[hook_event("PostToolUse", Some(CLAUDE_TOOLS))] },
            (Self::Codex, HookKind::Tool) => const { &[hook_event("PostToolUse", None)] },
            (Self::Gemini, HookKind::Tool) => const { &[hook_event("AfterTool", Some("*"))] },
            (Self::Claude | Self::Codex, HookKind::Stop) => const { &[hook_event("Stop", None)] },
            (Self::Gemini, HookKind::Stop) => const { &[hook_event("AfterAgent", Some("*"))] },
            (Self::Claude, HookKind::Compact) => {
                const { &[hook_event("PreCompact", None), hook_event("SessionStart", Some("compact"))] }
            }
            (Self::Claude, HookKind::Findings) => {
                const { &[hook_event("SubagentStart", None), hook_event("SubagentStop", None)] }
            }
            (Self::Codex | Self::Gemini, HookKind::Compact | HookKind::Findings) => &[],
        }
    }

    /// Returns the size in characters above which the agent itself cuts any result. The cap stays below this
    /// size.
    pub fn own_limit_chars(self) -> u64 {
        match self {
            // The default of `BASH_MAX_OUTPUT_LENGTH`.
            Self::Claude => 30_000,
            // By default, Codex passes at most this much of a command's output to hooks and models.
            Self::Codex => 10_000,
            // The default of `truncateToolOutputThreshold`.
            Self::Gemini => 40_000,
        }
    }

    /// Returns how much of a hook's output the agent keeps, in tokens or in characters. No setting changes
    /// this limit.
    pub(super) fn max_kept_output(self, in_tokens: bool) -> Option<u64> {
        match self {
            Self::Codex if in_tokens => Some(self.own_limit_chars() / CHARS_PER_TOKEN),
            Self::Codex => Some(self.own_limit_chars()),
            Self::Claude | Self::Gemini => None,
        }
    }

    /// Whether the results of this tool may be shortened.
    pub fn is_capped(self, tool: &str) -> bool {
        self != Self::Claude || !CLAUDE_UNCAPPED_TOOLS.contains(&tool)
    }

    /// Returns the path of the agent's settings: those of the user, or those of the project in the current
    /// folder.
    pub fn settings_path(self, is_project: bool, environment: &Environment) -> Option<PathBuf> {
        let (client, folder, name) = match self {
            Self::Claude => (ClientChoice::Claude, ".claude", "settings.json"),
            Self::Codex => (ClientChoice::Codex, ".codex", "hooks.json"),
            Self::Gemini => (ClientChoice::Gemini, ".gemini", "settings.json"),
        };
        if is_project {
            return Some(Path::new(folder).join(name));
        }
        configuration_path(client, environment).map(|file| file.with_file_name(name))
    }

    /// Returns the folder that relative paths refer to. Returns `None` if the agent does not state it.
    pub(super) fn project_folder(self, environment: &Environment) -> Option<PathBuf> {
        let name = match self {
            Self::Claude => "CLAUDE_PROJECT_DIR",
            Self::Gemini => "GEMINI_PROJECT_DIR",
            Self::Codex => return None,
        };
        environment.get(name).map(PathBuf::from).filter(|folder| folder.is_absolute())
    }

    /// Returns the entry in the agent's settings that runs a command at an event.
    pub(super) fn settings_entry(self, at: HookEvent, kind: HookKind, command: &str) -> Value {
        let hook = match self {
            Self::Claude | Self::Codex => {
                json!({"type": "command", "command": command, "timeout": TIMEOUT_SECONDS})
            }
            // Gemini CLI expects the time limit in milliseconds.
            Self::Gemini => json!({
                "name": format!("endmark-{}", kind.name()), "type": "command", "command": command,
                "timeout": TIMEOUT_SECONDS * 1000,
            }),
        };
        match at.matcher {
            Some(matcher) => json!({"matcher": matcher, "hooks": [hook]}),
            None => json!({"hooks": [hook]}),
        }
    }

    /// Returns notes for the user about the agent's hooks, one sentence each.
    pub fn notes(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &["Claude Code 2.1.163 to 2.1.177 ignores results that hooks have changed."],
            Self::Codex => &[
                "Codex runs only trusted hooks: trust them once with `/hooks` in a session, or in headless runs with \
                 --dangerously-bypass-hook-trust; otherwise Codex silently skips them.",
                "Codex cuts outputs before its hooks see them: set a high `tool_output_token_limit` in its config.toml, such as 400000. \
                 Hooks cannot restore text that Codex has cut.",
            ],
            Self::Gemini => &[
                "Gemini CLI shows a capped result as an error of the tool; the text states that it is not one.",
            ],
        }
    }

    /// Returns the output that replaces a tool's result by a shortened one.
    pub(super) fn replacement_answer(self, result: ShortenedResult) -> Value {
        match (self, result) {
            (_, ShortenedResult::Shaped(value)) => json!({
                "hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": value},
            }),
            (agent, ShortenedResult::Text(text)) => agent.continue_answer(&text),
        }
    }

    /// Returns the output that makes the agent continue with this prompt.
    pub(super) fn continue_answer(self, reason: &str) -> Value {
        match self {
            Self::Claude | Self::Codex => json!({"decision": "block", "reason": reason}),
            Self::Gemini => json!({"decision": "deny", "reason": reason}),
        }
    }

    /// Returns the output that lets the agent continue, and shows a message to its user.
    pub(super) fn message_answer(message: &str) -> Value {
        json!({"systemMessage": message})
    }
}

/// A shortened tool result in the form that the agent accepts.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ShortenedResult {
    /// The original value with shorter texts. Agents silently ignore a value of another shape.
    Shaped(Value),
    /// A plain text.
    Text(String),
}

impl HookKind {
    /// All kinds of hooks.
    pub const ALL: [Self; 4] = [Self::Tool, Self::Stop, Self::Compact, Self::Findings];

    /// Returns the kind's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Stop => "stop",
            Self::Compact => "compact",
            Self::Findings => "findings",
        }
    }
}
