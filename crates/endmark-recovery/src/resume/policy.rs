//! The policy of a resume (PC-5, PC-9).

use super::Strategies;
use crate::stitch::ReasoningSigns;

/// Default maximum number of continuations (PC-5).
pub const MAX_RESUME_ATTEMPTS: u32 = 2;

/// The policy of a resume (PC-5, PC-9).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumePolicy {
    /// Maximum number of requested continuations. With 0, the reply is only judged.
    pub max_attempts: u32,
    /// What to do if several seams with different values are possible.
    pub on_ambiguous: OnAmbiguous,
    /// Number of bytes of the first reply that the client has received. A merge that would change one of them
    /// is rejected, because sent text cannot be retracted.
    pub sent: usize,
    /// A prompt that replaces the default. See [`check_prompt_template`](crate::check_prompt_template).
    pub prompt: Option<String>,
    /// The permitted strategies, in order of preference.
    pub strategies: Strategies,
    /// Whether the complete reply can be requested again. If it was cut at its limit, this needs a higher
    /// limit.
    pub room_to_restart: bool,
    /// Which regenerated replies may replace the cut reply.
    pub restart: Restart,
    /// Number of bytes of the first reply that the client wrote. A prompt always shows them.
    pub client_written_bytes: usize,
    /// The signs of reasoning in the request. A continuation may contain the same ones.
    pub known: ReasoningSigns,
}

impl Default for ResumePolicy {
    fn default() -> Self {
        Self {
            max_attempts: MAX_RESUME_ATTEMPTS,
            on_ambiguous: OnAmbiguous::default(),
            sent: 0,
            prompt: None,
            strategies: Strategies::default(),
            room_to_restart: false,
            restart: Restart::default(),
            client_written_bytes: 0,
            known: ReasoningSigns::default(),
        }
    }
}

/// What to do if several seams with different values are possible (PC-9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OnAmbiguous {
    /// Give up, and deliver the verified beginning.
    #[default]
    Stop,
    /// Use the best candidate. Its seam reports the number of other candidates.
    Best,
}

impl OnAmbiguous {
    /// Returns the name that the configuration uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Best => "best",
        }
    }
}

/// Which regenerated replies may replace the cut reply (PC-5). A regenerated reply must always end normally,
/// be whole, and not be clearly shorter than the cut reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Restart {
    /// Any regenerated reply.
    #[default]
    Any,
    /// A reply that repeats all complete content unchanged: the values of a document, or the whole text.
    Same,
    /// None. The reply is not requested again.
    Off,
}

impl Restart {
    /// Returns the name that the configuration uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Same => "same",
            Self::Off => "off",
        }
    }
}
