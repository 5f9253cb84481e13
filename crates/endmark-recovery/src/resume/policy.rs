//! What a resume may do (PC-5, PC-9).

use super::Strategies;
use crate::stitch::ReasoningSigns;

/// How many continuations are asked for by default (PC-5).
pub const MAX_RESUME_ATTEMPTS: u32 = 2;

/// What a resume may do (PC-5, PC-9).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumePolicy {
    /// How many continuations are asked for at most; 0 asks for none and only judges.
    pub max_attempts: u32,
    /// What to do where several seams are plausible and give different values.
    pub on_ambiguous: OnAmbiguous,
    /// How many bytes at the beginning of the first reply the client has already. A merge that would change
    /// one of them is refused: what was sent is never retracted.
    pub sent: usize,
    /// The prompt that asks for the rest, if it is not the default one; see
    /// [`check_prompt_template`](crate::check_prompt_template).
    pub prompt: Option<String>,
    /// The ways that may be used, in their order.
    pub strategies: Strategies,
    /// Whether all of the reply can be asked for again: with a larger limit, where it reached its own.
    pub room_to_restart: bool,
    /// Which replies that were generated again are accepted instead of the cut one.
    pub restart: Restart,
    /// How many bytes at the beginning of the first reply the client itself began it with: they are always shown.
    pub begun_by_client: usize,
    /// The signs of reasoning that the request has: a continuation may have them, too.
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

/// What to do where several seams are plausible and give different values (PC-9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OnAmbiguous {
    /// Give up with the true beginning.
    #[default]
    Stop,
    /// Take the best candidate; its seam says how many others there are.
    Best,
}

impl OnAmbiguous {
    /// The literal name, as in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Best => "best",
        }
    }
}

/// Which reply that was generated again is accepted instead of the cut one (PC-5). It is never accepted if it did not end
/// normally, is not whole, or is poorer than the cut one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Restart {
    /// Any.
    #[default]
    Any,
    /// One that contains everything that was received complete, unchanged: the values of a document, else the text.
    Same,
    /// None: the reply is not asked for again.
    Off,
}

impl Restart {
    /// The literal name, as in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Same => "same",
            Self::Off => "off",
        }
    }
}
