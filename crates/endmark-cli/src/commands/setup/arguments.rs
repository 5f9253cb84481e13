//! What can be typed behind `endmark setup`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use endmark_envelope::Limits;

/// The arguments of `setup`.
#[derive(Debug, Args, Limits)]
pub(crate) struct Setup {
    /// The client: an agent, or the libraries of a provider
    #[arg(value_name = "CLIENT")]
    #[limits(skip)]
    pub(crate) client: ClientChoice,
    /// Write it into the client's configuration; a copy of what was there is kept
    #[arg(long, conflicts_with = "undo")]
    pub(crate) write: bool,
    /// Take it back: the file becomes what it was before `--write`
    #[arg(long)]
    pub(crate) undo: bool,
    /// Where the gateway is, if not where the configuration says
    #[arg(long, value_name = "URL")]
    #[limits(max_bytes = 2048)]
    pub(crate) url: Option<String>,
    /// Use this upstream of several, and not the first
    #[arg(long, value_name = "NAME")]
    #[limits(max_bytes = 255)]
    pub(crate) upstream: Option<String>,
    /// The model that a client asks for by name (opencode)
    #[arg(long, value_name = "MODEL")]
    #[limits(max_bytes = 255)]
    pub(crate) model: Option<String>,
    /// The configuration file, if not where the client looks for it
    #[arg(long, value_name = "FILE")]
    #[limits(skip)]
    pub(crate) file: Option<PathBuf>,
}

/// The clients that can be pointed at Endmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClientChoice {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// Gemini CLI
    Gemini,
    /// opencode
    Opencode,
    /// The OpenAI libraries, and whatever reads `OPENAI_BASE_URL`
    Openai,
    /// The Anthropic libraries, and whatever reads `ANTHROPIC_BASE_URL`
    Anthropic,
}

impl ClientChoice {
    /// As it is typed.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Openai => "openai",
            Self::Anthropic => "anthropic",
        }
    }
}
