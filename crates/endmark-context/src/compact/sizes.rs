//! Estimates the tokens of turns and parts.

use std::sync::Arc;

use super::policy::Count;
use crate::conversation::{Content, Conversation, Part, Place, Turn};

/// Tokens of a message in addition to its parts.
pub(super) const TURN_TOKENS: u64 = 4;
/// Tokens of an image or a page, regardless of its bytes: Anthropic's figure for its largest image. Other providers
/// charge less.
pub(super) const MEDIA_TOKENS: u64 = 1_600;

/// Tokens of every part and turn of a conversation.
#[derive(Debug, Clone, Default)]
pub struct Sizes {
    parts: Vec<Arc<[u64]>>,
}

impl Sizes {
    /// Counts a whole conversation.
    pub fn of(conversation: &Conversation<'_>, count: Count) -> Self {
        Self::from_known(conversation, |_, turn| turn_sizes(turn, count))
    }

    /// Uses known sizes of each turn, by position, from earlier calls of [`turn_sizes`].
    pub fn from_known(
        conversation: &Conversation<'_>,
        mut sizes: impl FnMut(usize, &Turn<'_>) -> Arc<[u64]>,
    ) -> Self {
        Self { parts: conversation.turns.iter().enumerate().map(|(at, turn)| sizes(at, turn)).collect() }
    }

    pub(super) fn part(&self, place: Place) -> u64 {
        self.parts.get(place.turn).and_then(|parts| parts.get(place.part)).copied().unwrap_or_default()
    }

    pub(super) fn turn(&self, turn: usize) -> u64 {
        self.parts.get(turn).map_or(0, |parts| parts.iter().sum::<u64>() + TURN_TOKENS)
    }

    /// Returns the tokens of this turn and all later ones.
    pub(super) fn tokens_from(&self, turn: usize) -> u64 {
        (turn..self.parts.len()).map(|turn| self.turn(turn)).sum()
    }
}

/// Returns the tokens of each part of a turn. They depend only on the turn.
pub fn turn_sizes(turn: &Turn<'_>, count: Count) -> Arc<[u64]> {
    turn.parts.iter().map(|part| part_tokens(part, count)).collect()
}

/// Opaque and unknown parts count as 0, because their bytes do not indicate their tokens.
fn part_tokens(part: &Part<'_>, count: Count) -> u64 {
    match &part.content {
        Content::Text(text) | Content::Reasoning { text, .. } => count(text),
        Content::Call(call) => count(&call.name) + count(&call.arguments),
        Content::Result(result) => count(&result.text) + MEDIA_TOKENS * result.media.len() as u64,
        Content::Media(_) => MEDIA_TOKENS,
        Content::Server { .. } | Content::Reference { .. } | Content::Unknown { .. } => 0,
    }
}
