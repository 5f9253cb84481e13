//! The agents: which events they have, where their settings are, and how each wants to be answered.
//!
//! The spellings are those that Claude Code 2.1.331, Codex 0.169.0 and Gemini CLI 0.61.0 were seen to obey; what the
//! documentation of Gemini CLI says (`hookSpecificOutput.tool_output`) has no effect there.

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

/// What a hook is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum HookKind {
    /// Cap results of tools
    Tool,
    /// Hold the agent to its artifact
    Stop,
    /// Keep values over a compaction (Claude Code)
    Compact,
    /// Have sub-agents hand over whole findings (Claude Code)
    Findings,
}

/// An event that an agent runs hooks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    /// Its name.
    pub event: &'static str,
    /// For which tools, or sources; none where there is nothing to choose.
    pub matcher: Option<&'static str>,
}

const fn at(event: &'static str, matcher: Option<&'static str>) -> At {
    At { event, matcher }
}

/// Tools whose results are capped. The lines of `Read` are numbered by Claude Code after its hooks, and would be numbered
/// wrongly behind a cut; what editing tools return the model does not read.
const CLAUDE_TOOLS: &str = "Bash|BashOutput|TaskOutput|Task|Agent|Grep|Glob|WebFetch|WebSearch|mcp__.*";
const CLAUDE_UNTOUCHED: [&str; 6] = ["Read", "Edit", "MultiEdit", "Write", "NotebookEdit", "NotebookRead"];

/// Characters of a token, about.
const CHARS_PER_TOKEN: u64 = 4;

/// How long a hook may take, in seconds.
const TIMEOUT_SECONDS: u64 = 60;

impl HookAgent {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Claude, Self::Codex, Self::Gemini];

    /// As it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
        }
    }

    /// What people call it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
        }
    }

    /// The events that a hook of this kind is run at; none where the agent has none.
    pub fn events(self, kind: HookKind) -> &'static [At] {
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

    /// The agent itself cuts what is longer, and not by what it says: so the cap stays below, in characters.
    pub fn own_limit(self) -> u64 {
        match self {
            // `BASH_MAX_OUTPUT_LENGTH`.
            Self::Claude => 30_000,
            // What it hands to hooks and models of a command's output, where nothing else is set.
            Self::Codex => 10_000,
            // `truncateToolOutputThreshold`.
            Self::Gemini => 40_000,
        }
    }

    /// The most that the agent keeps of a hook's answer whatever its settings are, in tokens or characters.
    pub(super) fn keeps_at_most(self, in_tokens: bool) -> Option<u64> {
        match self {
            Self::Codex if in_tokens => Some(self.own_limit() / CHARS_PER_TOKEN),
            Self::Codex => Some(self.own_limit()),
            Self::Claude | Self::Gemini => None,
        }
    }

    /// Whether the results of this tool can be shortened at all.
    pub fn is_capped(self, tool: &str) -> bool {
        self != Self::Claude || !CLAUDE_UNTOUCHED.contains(&tool)
    }

    /// The settings that hooks stand in: the user's own, or those of the project in the current folder.
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

    /// The folder that relative paths begin at, if the agent says so.
    pub(super) fn project_folder(self, environment: &Environment) -> Option<PathBuf> {
        let name = match self {
            Self::Claude => "CLAUDE_PROJECT_DIR",
            Self::Gemini => "GEMINI_PROJECT_DIR",
            Self::Codex => return None,
        };
        environment.get(name).map(PathBuf::from).filter(|folder| folder.is_absolute())
    }

    /// What stands in the settings so that the command is run at the event.
    pub(super) fn entry(self, at: At, kind: HookKind, command: &str) -> Value {
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

    /// What has to be known of its hooks; each a sentence.
    pub fn notes(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &["Claude Code 2.1.163 to 2.1.177 ignores what hooks make of a tool's result."],
            Self::Codex => &[
                "Codex runs hooks only after they were trusted: once with `/hooks` in a session, or in headless runs with \
                 --dangerously-bypass-hook-trust; else it leaves them out without a word.",
                "Codex cuts outputs before its hooks see them: set `tool_output_token_limit` in its config.toml high, as to 400000. \
                 What it has cut, no hook can bring back.",
            ],
            Self::Gemini => {
                &["Gemini CLI shows a capped result as an error of the tool; the text says that it is none."]
            }
        }
    }

    /// The answer that puts a shortened result in the place of the tool's own.
    pub(super) fn replaced(self, result: Shortened) -> Value {
        match (self, result) {
            (_, Shortened::Shaped(value)) => json!({
                "hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": value},
            }),
            (agent, Shortened::Text(text)) => agent.refused(&text),
        }
    }

    /// The answer after which the agent goes on with this as its prompt.
    pub(super) fn refused(self, reason: &str) -> Value {
        match self {
            Self::Claude | Self::Codex => json!({"decision": "block", "reason": reason}),
            Self::Gemini => json!({"decision": "deny", "reason": reason}),
        }
    }

    /// The answer by which any agent goes its way, and its user reads this.
    pub(super) fn said(message: &str) -> Value {
        json!({"systemMessage": message})
    }
}

/// A tool's result that was shortened, as its agent takes it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shortened {
    /// The same value with shorter texts in it: any other shape is ignored in silence.
    Shaped(Value),
    /// A text alone.
    Text(String),
}

impl HookKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Tool, Self::Stop, Self::Compact, Self::Findings];

    /// As it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Stop => "stop",
            Self::Compact => "compact",
            Self::Findings => "findings",
        }
    }
}
