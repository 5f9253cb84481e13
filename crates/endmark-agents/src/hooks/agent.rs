//! The agents: their events, their settings, and their format of answers.
//!
//! The formats are those that Claude Code 2.1.331, Codex 0.169.0 and Gemini CLI 0.61.0 were observed to accept.
//! Gemini CLI documents `hookSpecificOutput.tool_output`, which has no effect there.

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
    /// Keep values over a compaction (Claude Code)
    Compact,
    /// Give sub-agents the findings protocol (Claude Code)
    Findings,
}

/// An event at which an agent runs hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookEvent {
    /// Its name.
    pub event: &'static str,
    /// The tools or sources, if there is a choice.
    pub matcher: Option<&'static str>,
}

const fn at(event: &'static str, matcher: Option<&'static str>) -> HookEvent {
    HookEvent { event, matcher }
}

/// Tools whose results are capped. Claude Code numbers the lines of `Read` after its hooks, which would be wrong
/// after a cut. The model does not read the results of editing tools.
const CLAUDE_TOOLS: &str = "Bash|BashOutput|TaskOutput|Task|Agent|Grep|Glob|WebFetch|WebSearch|mcp__.*";
const CLAUDE_UNTOUCHED: [&str; 6] = ["Read", "Edit", "MultiEdit", "Write", "NotebookEdit", "NotebookRead"];

/// Approximate characters of a token.
const CHARS_PER_TOKEN: u64 = 4;

/// The time limit of a hook, in seconds.
const TIMEOUT_SECONDS: u64 = 60;

impl HookAgent {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Claude, Self::Codex, Self::Gemini];

    /// Returns its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
        }
    }

    /// Returns its title.
    pub fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
        }
    }

    /// Returns the events at which a hook of this kind runs; empty if the agent has none.
    pub fn events(self, kind: HookKind) -> &'static [HookEvent] {
        match (self, kind) {
            (Self::Claude, HookKind::Tool) => const { &[at("PostToolUse", Some(CLAUDE_TOOLS))] },
            (Self::Codex, HookKind::Tool) => const { &[at("PostToolUse", None)] },
            (Self::Gemini, HookKind::Tool) => const { &[at("AfterTool", Some("*"))] },
            (Self::Claude | Self::Codex, HookKind::Stop) => const { &[at("Stop", None)] },
            (Self::Gemini, HookKind::Stop) => const { &[at("AfterAgent", Some("*"))] },
            (Self::Claude, HookKind::Compact) => {
                const { &[at("PreCompact", None), at("SessionStart", Some("compact"))] }
            }
            (Self::Claude, HookKind::Findings) => {
                const { &[at("SubagentStart", None), at("SubagentStop", None)] }
            }
            (Self::Codex | Self::Gemini, HookKind::Compact | HookKind::Findings) => &[],
        }
    }

    /// Returns the limit above which the agent itself cuts, without regard to content, in characters. The cap stays
    /// below.
    pub fn own_limit(self) -> u64 {
        match self {
            // `BASH_MAX_OUTPUT_LENGTH`.
            Self::Claude => 30_000,
            // The part of a command's output that it passes to hooks and models by default.
            Self::Codex => 10_000,
            // `truncateToolOutputThreshold`.
            Self::Gemini => 40_000,
        }
    }

    /// Returns the most that the agent keeps of a hook's answer whatever its settings, in tokens or characters.
    pub(super) fn keeps_at_most(self, in_tokens: bool) -> Option<u64> {
        match self {
            Self::Codex if in_tokens => Some(self.own_limit() / CHARS_PER_TOKEN),
            Self::Codex => Some(self.own_limit()),
            Self::Claude | Self::Gemini => None,
        }
    }

    /// Whether the results of this tool can be shortened.
    pub fn is_capped(self, tool: &str) -> bool {
        self != Self::Claude || !CLAUDE_UNTOUCHED.contains(&tool)
    }

    /// Returns the path of the settings with hooks: the user's own, or those of the project in the current folder.
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

    /// Returns the folder of relative paths, if the agent states it.
    pub(super) fn project_folder(self, environment: &Environment) -> Option<PathBuf> {
        let name = match self {
            Self::Claude => "CLAUDE_PROJECT_DIR",
            Self::Gemini => "GEMINI_PROJECT_DIR",
            Self::Codex => return None,
        };
        environment.get(name).map(PathBuf::from).filter(|folder| folder.is_absolute())
    }

    /// Returns the entry in the settings that runs the command at the event.
    pub(super) fn entry(self, at: HookEvent, kind: HookKind, command: &str) -> Value {
        let hook = match self {
            Self::Claude | Self::Codex => {
                json!({"type": "command", "command": command, "timeout": TIMEOUT_SECONDS})
            }
            // Its timeouts are in milliseconds.
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

    /// Returns notes about its hooks, one sentence each.
    pub fn notes(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &["Claude Code 2.1.163 to 2.1.177 ignores what hooks make of a tool's result."],
            Self::Codex => &[
                "Codex runs hooks only after they were trusted: once with `/hooks` in a session, or in headless runs with \
                 --dangerously-bypass-hook-trust; else it leaves them out without a word.",
                "Codex cuts outputs before its hooks see them: set `tool_output_token_limit` in its config.toml high, as to 400000. \
                 No hook can restore what it has cut.",
            ],
            Self::Gemini => &[
                "Gemini CLI shows a capped result as an error of the tool; the text states that it is not one.",
            ],
        }
    }

    /// Returns the answer that replaces the tool's result by a shortened one.
    pub(super) fn replaced(self, result: ShortenedResult) -> Value {
        match (self, result) {
            (_, ShortenedResult::Shaped(value)) => json!({
                "hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": value},
            }),
            (agent, ShortenedResult::Text(text)) => agent.refused(&text),
        }
    }

    /// Returns the answer after which the agent continues with this prompt.
    pub(super) fn refused(self, reason: &str) -> Value {
        match self {
            Self::Claude | Self::Codex => json!({"decision": "block", "reason": reason}),
            Self::Gemini => json!({"decision": "deny", "reason": reason}),
        }
    }

    /// Returns the answer that lets any agent continue, and shows this message to its user.
    pub(super) fn said(message: &str) -> Value {
        json!({"systemMessage": message})
    }
}

/// A shortened tool result, in its agent's form.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ShortenedResult {
    /// The same value with shorter texts in it: agents silently ignore any other shape.
    Shaped(Value),
    /// A text alone.
    Text(String),
}

impl HookKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Tool, Self::Stop, Self::Compact, Self::Findings];

    /// Returns its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Stop => "stop",
            Self::Compact => "compact",
            Self::Findings => "findings",
        }
    }
}
