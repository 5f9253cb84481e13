//! When and how cut replies are resumed (PC-9).

use std::str::FromStr;
use std::time::Duration;

use endmark_recovery::{MAX_RESUME_ATTEMPTS, OnAmbiguous, Restart, Strategies};

/// When and how cut replies are resumed (PC-9).
#[derive(Debug, Clone)]
pub struct ResumeSettings {
    /// When a cut reply is resumed, unless the request says otherwise.
    pub mode: Mode,
    /// Continuations that may be asked for, for each choice that a request asks for.
    pub max_attempts: u32,
    /// The output limit a continuation carries at least, in tokens.
    pub continuation_tokens: u64,
    /// In formats that want a limit in every request, one from which on it is taken for the model's and not for what
    /// the client wants, in tokens.
    pub treat_limit_as_cap: u64,
    /// Output tokens that all continuations of one request may be allowed together.
    pub max_extra_tokens: u64,
    /// In [`Mode::Auto`], how many times the limit that the client set all continuations of its reply may take together, in
    /// output tokens; at least 2,048.
    pub client_limit_factor: u64,
    /// For the recovery of a reply whose client set an output limit; longer if a reply of that limit, at the pace of the
    /// first one, would have taken longer.
    pub max_time: Duration,
    /// What to hand over when two seams are plausible.
    pub on_ambiguous: OnAmbiguous,
    /// Which text that was generated again may replace a cut one.
    pub restart: Restart,
    /// The user's own wording of the resume prompt.
    pub prompt: Option<String>,
    /// The ways to get the rest, in the order in which they are tried.
    pub strategies: Strategies,
}

impl Default for ResumeSettings {
    fn default() -> Self {
        Self {
            mode: Mode::Auto,
            max_attempts: MAX_RESUME_ATTEMPTS,
            continuation_tokens: 4_096,
            treat_limit_as_cap: 4_096,
            max_extra_tokens: 16_384,
            client_limit_factor: 4,
            max_time: Duration::from_mins(1),
            on_ambiguous: OnAmbiguous::Stop,
            restart: Restart::Any,
            prompt: None,
            strategies: Strategies::default(),
        }
    }
}

/// When a cut reply is resumed (PC-9, `x-endmark-resume`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// When the client cannot have wanted the cut.
    Auto,
    /// Always.
    On,
    /// Never; cuts are disclosed.
    Warn,
    /// Never, and nothing is looked at.
    Off,
}

impl Mode {
    /// The literal name, as it is typed.
    pub fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::On => "on",
            Self::Warn => "warn",
            Self::Off => "off",
        }
    }

    /// Whether what is wrong may be put right, and is not only told of.
    pub(crate) fn mends(self) -> bool {
        match self {
            Self::Auto | Self::On => true,
            Self::Warn | Self::Off => false,
        }
    }
}

/// A mode that is not `auto`, `on`, `warn` or `off`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown resume mode `{0}`: use auto, on, warn or off")]
pub struct UnknownMode(String);

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(name: &str) -> Result<Self, UnknownMode> {
        match name.trim() {
            "auto" => Ok(Self::Auto),
            "on" => Ok(Self::On),
            "warn" => Ok(Self::Warn),
            "off" => Ok(Self::Off),
            other => Err(UnknownMode(other.to_owned())),
        }
    }
}
