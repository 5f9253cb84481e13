//! How many tokens turns and parts have, as an estimate.

use super::policy::Count;
use crate::conversation::{Content, Conversation, Part, Place};

/// What a message costs beside its parts.
pub(super) const TURN_TOKENS: u64 = 4;
/// What an image or a page costs, whatever the length of its bytes: Anthropic's for its largest image; other providers
/// take less.
pub(super) const MEDIA_TOKENS: u64 = 1_600;

/// Tokens of every part and turn.
#[derive(Debug, Clone, Default)]
pub(super) struct Sizes {
    parts: Vec<Vec<u64>>,
}

impl Sizes {
    pub(super) fn of(conversation: &Conversation<'_>, count: Count) -> Self {
        let turn = |parts: &Vec<Part<'_>>| parts.iter().map(|part| part_tokens(part, count)).collect();
        Self { parts: conversation.turns.iter().map(|it| turn(&it.parts)).collect() }
    }

    pub(super) fn part(&self, place: Place) -> u64 {
        self.parts.get(place.turn).and_then(|parts| parts.get(place.part)).copied().unwrap_or_default()
    }

    pub(super) fn turn(&self, turn: usize) -> u64 {
        self.parts.get(turn).map_or(0, |parts| parts.iter().sum::<u64>() + TURN_TOKENS)
    }

    /// All turns from this one.
    pub(super) fn from(&self, turn: usize) -> u64 {
        (turn..self.parts.len()).map(|turn| self.turn(turn)).sum()
    }
}

/// What is sealed, the provider's own or unknown counts nothing: its bytes say nothing of its tokens.
fn part_tokens(part: &Part<'_>, count: Count) -> u64 {
    match &part.content {
        Content::Text(text) | Content::Reasoning { text, .. } => count(text),
        Content::Call(call) => count(&call.name) + count(&call.arguments),
        Content::Result(result) => count(&result.text) + MEDIA_TOKENS * result.media.len() as u64,
        Content::Media(_) => MEDIA_TOKENS,
        Content::Server { .. } | Content::Unknown { .. } => 0,
    }
}
