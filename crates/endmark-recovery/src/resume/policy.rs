//! The policy of a resume (PC-5, PC-9).

use super::Strategies;
use crate::stitch::ReasoningSigns;

/// Continuations that are requested by default (PC-5).
pub const MAX_RESUME_ATTEMPTS: u32 = 2;

/// The policy of a resume (PC-5, PC-9).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumePolicy {
    /// Maximum number of continuations that are requested. With 0, the reply is only judged.
    pub max_attempts: u32,
    /// How to handle several possible seams with different values.
    pub on_ambiguous: OnAmbiguous,
    /// Bytes at the beginning of the first reply that the client already has. A merge that would change one of them
    /// is rejected, because sent text is never retracted.
    pub sent: usize,
    /// A prompt that replaces the default one. See [`check_prompt_template`](crate::check_prompt_template).
    pub prompt: Option<String>,
    /// The permitted strategies, in their order.
    pub strategies: Strategies,
    /// Whether the complete reply can be requested again. If it reached its limit, this needs a higher limit.
    pub room_to_restart: bool,
    /// Which regenerated replies may replace the cut one.
    pub restart: Restart,
    /// Bytes at the beginning of the first reply that the client wrote. They are always shown.
    pub begun_by_client: usize,
    /// The signs of reasoning in the request. A continuation may contain them too.
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
            begun_by_client: 0,
            known: ReasoningSigns::default(),
        }
    }
}

/// How to handle several possible seams with different values (PC-9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OnAmbiguous {
    /// Give up and deliver the verified beginning.
    #[default]
    Stop,
    /// Use the best candidate. Its seam reports the number of other candidates.
    Best,
}

impl OnAmbiguous {
    /// Returns the literal name, as in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Best => "best",
        }
    }
}

/// Which regenerated replies may replace the cut one (PC-5). Every such reply must end normally, be whole, and have
/// no less content than the cut one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Restart {
    /// Any reply.
    #[default]
    Any,
    /// A reply that repeats all complete content unchanged: the values of a document, or the text.
    Same,
    /// No reply. The reply is not requested again.
    Off,
}

impl Restart {
    /// Returns the literal name, as in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Same => "same",
            Self::Off => "off",
        }
    }
}
