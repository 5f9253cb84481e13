//! Finds the current topics of a conversation. Values that belong to them are kept first (CX-4).

use std::collections::HashSet;

use super::anchors;
use crate::conversation::{Conversation, Role};

/// Shorter words say nothing about a topic.
const MIN_WORD_CHARS: usize = 4;

/// Evidence that the values of a name are useful.
#[derive(Debug, Clone, Default)]
pub(super) struct Relevance {
    /// Argument names of earlier calls. Values of the same name in results will probably become arguments.
    arguments: HashSet<String>,
    /// Words of the first and the newest request, and of the model's newest text.
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

    /// Whether calls had arguments with this name.
    pub(super) fn is_argument(&self, name: &str) -> bool {
        self.arguments.contains(name)
    }

    /// Whether a word of this name belongs to the topics.
    pub(super) fn is_topic(&self, name: &str) -> bool {
        lowercase_words(name).any(|word| self.topics.contains(&word))
    }
}

/// Returns the lower-case words of a text or a name, without a plural `s`.
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
