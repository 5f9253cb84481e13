//! Finds the current topics of a conversation (CX-4). Values that belong to them are kept first.

use std::collections::HashSet;

use super::anchors;
use crate::conversation::{Conversation, Role};

/// Shorter words do not identify a topic.
const MIN_WORD_CHARS: usize = 4;

/// Evidence about which names have useful values.
#[derive(Debug, Clone, Default)]
pub(super) struct Relevance {
    /// Argument names of earlier calls. If a result has values with these names, they will probably become
    /// arguments.
    arguments: HashSet<String>,
    /// Words of the first request, the newest request, and the model's newest text.
    topics: HashSet<String>,
    /// Number of turns.
    pub(super) turns: usize,
}

impl Relevance {
    pub(super) fn of(conversation: &Conversation<'_>) -> Self {
        let turns = &conversation.turns;
        let mut topics = HashSet::new();
        let of_user = || turns.iter().filter(|turn| turn.is_from_user());
        let last_reply =
            turns.iter().rfind(|turn| turn.role == Role::Assistant && turn.texts().next().is_some());
        for turn in of_user().next().into_iter().chain(of_user().next_back()).chain(last_reply) {
            turn.texts().for_each(|text| topics.extend(lowercase_words(text)));
        }
        Self { arguments: anchors::argument_names(conversation), topics, turns: turns.len() }
    }

    /// Whether an earlier call had an argument with this name.
    pub(super) fn is_argument(&self, name: &str) -> bool {
        self.arguments.contains(name)
    }

    /// Whether the name contains a word of the current topics.
    pub(super) fn is_topic(&self, name: &str) -> bool {
        lowercase_words(name).any(|word| self.topics.contains(&word))
    }
}

/// Returns the lower-case words of a text or a name, without plural endings.
fn lowercase_words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|character: char| !character.is_alphabetic());
    words.filter(|word| word.chars().nth(MIN_WORD_CHARS - 1).is_some()).map(|word| {
        let lower = word.to_lowercase();
        lower.strip_suffix('s').map_or_else(|| lower.clone(), str::to_owned)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn singular_and_plural_names_match() {
        let topics = lowercase_words("Cancel my Reservations, and the order").collect();
        let relevance = Relevance { topics, ..Relevance::default() };
        assert!(relevance.is_topic("reservation_id") && relevance.is_topic("reservations"));
        assert!(!relevance.is_topic("payment_methods") && !relevance.is_topic("id"));
    }
}
