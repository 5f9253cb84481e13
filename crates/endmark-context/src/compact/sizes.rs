//! Estimates how many tokens turns and parts have.

use std::sync::Arc;

use super::policy::TokenCounter;
use crate::conversation::{Content, Conversation, Part, PartPosition, Turn};

/// Tokens of a message, in addition to the tokens of its parts.
pub(super) const TURN_TOKENS: u64 = 4;
/// Tokens of an image or a page, whatever its size: Anthropic's figure for the largest image. Other providers
/// charge less.
pub(super) const MEDIA_TOKENS: u64 = 1_600;

/// The number of tokens of each part of a conversation.
#[derive(Debug, Clone, Default)]
pub struct PartSizes {
    parts: Vec<Arc<[u64]>>,
}

impl PartSizes {
    /// Counts the tokens of a whole conversation.
    pub fn of(conversation: &Conversation<'_>, count: TokenCounter) -> Self {
        Self::from_known(conversation, |_, turn| turn_sizes(turn, count))
    }

    /// Uses sizes that earlier calls of [`turn_sizes`] returned, by the index of the turn.
    pub fn from_known(
        conversation: &Conversation<'_>,
        mut sizes: impl FnMut(usize, &Turn<'_>) -> Arc<[u64]>,
    ) -> Self {
        Self { parts: conversation.turns.iter().enumerate().map(|(at, turn)| sizes(at, turn)).collect() }
    }

    pub(super) fn part(&self, place: PartPosition) -> u64 {
        self.parts.get(place.turn).and_then(|parts| parts.get(place.part)).copied().unwrap_or_default()
    }

    pub(super) fn turn(&self, turn: usize) -> u64 {
        self.parts.get(turn).map_or(0, |parts| parts.iter().sum::<u64>() + TURN_TOKENS)
    }

    /// Returns the number of tokens in this turn and all later ones.
    pub(super) fn tokens_from(&self, turn: usize) -> u64 {
        (turn..self.parts.len()).map(|turn| self.turn(turn)).sum()
    }
}

/// Returns the number of tokens in each part of a turn. The numbers do not depend on other turns.
pub fn turn_sizes(turn: &Turn<'_>, count: TokenCounter) -> Arc<[u64]> {
    turn.parts.iter().map(|part| part_tokens(part, count)).collect()
}

/// Opaque and unknown parts count as 0, because their length in bytes does not indicate their tokens.
fn part_tokens(part: &Part<'_>, count: TokenCounter) -> u64 {
    match &part.content {
        Content::Text(text) | Content::Reasoning { text, .. } => count(text),
        Content::Call(call) => count(&call.name) + count(&call.arguments),
        Content::Result(result) => count(&result.text) + MEDIA_TOKENS * result.media.len() as u64,
        Content::Media(_) => MEDIA_TOKENS,
        Content::Server { .. } | Content::Reference { .. } | Content::Unknown { .. } => 0,
    }
}
