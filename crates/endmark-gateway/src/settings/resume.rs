//! Settings for when and how cut replies are resumed (PC-9).

use std::str::FromStr;
use std::time::Duration;

use endmark_recovery::{MAX_RESUME_ATTEMPTS, OnAmbiguous, Restart, Strategies};
use endmark_setting::{AtLeast, OneOf, Text, settings};

use super::value_types::{ON_AMBIGUOUS_VALUES, RESTART_VALUES, StrategyList};

settings! {
    /// When and how cut replies are resumed (PC-9).
    #[derive(Debug, Clone)]
    pub struct ResumeSettings {
        /// When a cut reply is resumed: auto, on, off or warn.
        mode: ResumeMode = ResumeMode::Auto, MODES;
        /// Continuation calls made for each choice before recovery gives up (`MAX_RESUME_ATTEMPTS`).
        max_attempts: u32 = MAX_RESUME_ATTEMPTS, AtLeast(0);
        /// Output limit of a continuation call, if the client's own is not larger.
        continuation_tokens: u64 = 4_096, AtLeast(1);
        /// Anthropic Messages requires an output limit in every request; it counts as the client's own only below this number.
        treat_limit_as_cap: u64 = 4_096, AtLeast(1);
        /// Output limit of all continuation calls of one request together.
        max_extra_tokens: u64 = 16_384, AtLeast(0);
        /// Output tokens of all continuation calls of a reply, as a multiple of the client's own limit; at least 2048.
        client_limit_factor: u64 = 4, AtLeast(1);
        /// Time for recovering a reply whose client set an output limit; longer if the reply itself was generated slowly.
        max_time as "max_seconds": Duration = Duration::from_mins(1), AtLeast(1);
        /// Handling of an ambiguous seam: stop, or take the best candidate.
        on_ambiguous: OnAmbiguous = OnAmbiguous::Stop, ON_AMBIGUOUS_VALUES;
        /// Which regenerated text or document may replace a cut one: any, only one with the same complete values, or none.
        restart: Restart = Restart::Any, RESTART_VALUES;
        /// The text that asks a model to continue, instead of the built-in one.
        prompt: Option<String> = None, Text;
        /// Strategies for getting the rest of a reply, in the order in which they are tried: prefill, prompt, restart.
        strategies: Strategies = Strategies::default(), StrategyList;
    }
}

/// When a cut reply is resumed (PC-9, `x-endmark-resume`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumeMode {
    /// Resumes a cut reply unless the client may have wanted the cut.
    Auto,
    /// Always resumes a cut reply.
    On,
    /// Never resumes; cuts are disclosed.
    Warn,
    /// Never resumes, and does not examine replies.
    Off,
}

/// Each mode with its name in the configuration.
pub const MODES: OneOf<ResumeMode> = OneOf(&[
    ("auto", ResumeMode::Auto),
    ("on", ResumeMode::On),
    ("off", ResumeMode::Off),
    ("warn", ResumeMode::Warn),
]);

impl ResumeMode {
    /// Returns the name in the configuration.
    pub fn name(self) -> &'static str {
        MODES.word(self)
    }

    /// Whether faults are corrected, and not only disclosed.
    pub(crate) fn corrects_faults(self) -> bool {
        match self {
            Self::Auto | Self::On => true,
            Self::Warn | Self::Off => false,
        }
    }
}

/// Error for a mode that is not `auto`, `on`, `warn` or `off`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown resume mode `{0}`: use auto, on, warn or off")]
pub struct UnknownMode(String);

impl FromStr for ResumeMode {
    type Err = UnknownMode;

    fn from_str(name: &str) -> Result<Self, UnknownMode> {
        MODES.find(name).ok_or_else(|| UnknownMode(name.trim().to_owned()))
    }
}
