//! The agents: their events, their settings, and the format of their hooks' output.
//!
//! Claude Code 2.1.331, Codex 0.169.0 and Gemini CLI 0.61.0 were observed to accept these formats. Gemini CLI documents
//! `hookSpecificOutput.tool_output`, which has no effect there.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use endmark_config::Environment;
use serde_json::{Value, json};

use crate::clients::{ClientChoice, file};

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

/// An event for which an agent runs hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookEvent {
    /// The event's name.
    pub event: &'static str,
    /// The tools or sources that the hook applies to, if the agent supports a choice.
    pub matcher: Option<&'static str>,
}

const fn hook_event(event: &'static str, matcher: Option<&'static str>) -> HookEvent {
    HookEvent { event, matcher }
}

/// Tools whose results are capped.
///
/// Claude Code numbers the lines of `Read` after its hooks ran, so the numbers would be wrong after a cut. The model
/// does not read the results of editing tools.
const CLAUDE_TOOLS: &str = "Bash|BashOutput|TaskOutput|Task|Agent|Grep|Glob|WebFetch|WebSearch|mcp__.*";
const CLAUDE_UNCAPPED_TOOLS: [&str; 6] =
    ["Read", "Edit", "MultiEdit", "Write", "NotebookEdit", "NotebookRead"];

/// Approximate characters of a token.
const CHARS_PER_TOKEN: u64 = 4;

/// The time limit of a hook, in seconds.
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

    /// Returns the agent's title.
    pub fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
        }
    }

    /// Returns the events for hooks of this kind; empty if the agent has none.
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

    /// Returns the limit in characters above which the agent itself cuts a result, regardless of content. The cap stays
    /// below this limit.
    pub fn own_limit(self) -> u64 {
        match self {
            // `BASH_MAX_OUTPUT_LENGTH`.
            Self::Claude => 30_000,
            // The part of a command's output that Codex passes to hooks and models by default.
            Self::Codex => 10_000,
            // `truncateToolOutputThreshold`.
            Self::Gemini => 40_000,
        }
    }

    /// Returns how much of a hook's output the agent keeps at most, in tokens or characters. No setting changes it.
    pub(super) fn keeps_at_most(self, in_tokens: bool) -> Option<u64> {
        match self {
            Self::Codex if in_tokens => Some(self.own_limit() / CHARS_PER_TOKEN),
            Self::Codex => Some(self.own_limit()),
            Self::Claude | Self::Gemini => None,
        }
    }

    /// Whether results of this tool may be shortened.
    pub fn is_capped(self, tool: &str) -> bool {
        self != Self::Claude || !CLAUDE_UNCAPPED_TOOLS.contains(&tool)
    }

    /// Returns the path of the user's settings, or those of the project in the current folder.
    pub fn settings(self, is_project: bool, environment: &Environment) -> Option<PathBuf> {
        let (client, folder, name) = match self {
            Self::Claude => (ClientChoice::Claude, ".claude", "settings.json"),
            Self::Codex => (ClientChoice::Codex, ".codex", "hooks.json"),
            Self::Gemini => (ClientChoice::Gemini, ".gemini", "settings.json"),
        };
        if is_project {
            return Some(Path::new(folder).join(name));
        }
        file(client, environment).map(|file| file.with_file_name(name))
    }

    /// Returns the folder that relative paths start from, if the agent states it.
    pub(super) fn project_folder(self, environment: &Environment) -> Option<PathBuf> {
        let name = match self {
            Self::Claude => "CLAUDE_PROJECT_DIR",
            Self::Gemini => "GEMINI_PROJECT_DIR",
            Self::Codex => return None,
        };
        environment.get(name).map(PathBuf::from).filter(|folder| folder.is_absolute())
    }

    /// Returns the entry for the settings that runs the command at the event.
    pub(super) fn entry(self, at: HookEvent, kind: HookKind, command: &str) -> Value {
        let hook = match self {
            Self::Claude | Self::Codex => {
                json!({"type": "command", "command": command, "timeout": TIMEOUT_SECONDS})
            }
            // Gemini CLI has timeouts in milliseconds.
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

    /// Returns notes about the agent's hooks, one sentence each.
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

    /// Returns the output that replaces the tool's result by a shortened one.
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

    /// Returns the output that lets the agent continue and shows this message to its user.
    pub(super) fn message_answer(message: &str) -> Value {
        json!({"systemMessage": message})
    }
}

/// A shortened tool result, in the form that the agent accepts.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ShortenedResult {
    /// The same value with shorter texts, because agents silently ignore any other shape.
    Shaped(Value),
    /// A text.
    Text(String),
}

impl HookKind {
    /// All kinds.
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
