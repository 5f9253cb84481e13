//! What the conversation is about now: values that belong to it are kept before others (CX-4).

use std::collections::HashSet;

use super::anchors;
use crate::conversation::{Conversation, Role};

/// Shorter words say nothing of a subject.
const LEAST_WORD_CHARS: usize = 4;

/// What speaks for the values under a name.
#[derive(Debug, Clone, Default)]
pub(super) struct Relevance {
    /// The names of arguments that calls had: what stands in results under the same names is likely to be asked with.
    arguments: HashSet<String>,
    /// The words of the first and the newest requests, and of the model's newest text.
    topics: HashSet<String>,
    /// How many turns there are.
    pub(super) turns: usize,
}

impl Relevance {
    pub(super) fn of(conversation: &Conversation<'_>) -> Self {
        let turns = &conversation.turns;
        let mut topics = HashSet::new();
        let of_user = || turns.iter().filter(|turn| turn.is_of_user());
        let said = turns.iter().rfind(|turn| turn.role == Role::Assistant && turn.texts().next().is_some());
        for turn in of_user().next().into_iter().chain(of_user().next_back()).chain(said) {
            turn.texts().for_each(|text| topics.extend(words_of(text)));
        }
        Self { arguments: anchors::argument_names(conversation), topics, turns: turns.len() }
    }

    /// Whether calls were made with arguments of this name.
    pub(super) fn is_argument(&self, name: &str) -> bool {
        self.arguments.contains(name)
    }

    /// Whether a word of this name is spoken of.
    pub(super) fn is_topic(&self, name: &str) -> bool {
        words_of(name).any(|word| self.topics.contains(&word))
    }
}

/// The words of a text or a name, in lower case and without the sign of a plural.
fn words_of(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|character: char| !character.is_alphabetic());
    words.filter(|word| word.chars().nth(LEAST_WORD_CHARS - 1).is_some()).map(|word| {
        let lower = word.to_lowercase();
        lower.strip_suffix('s').map_or_else(|| lower.clone(), str::to_owned)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_spoken_of_in_any_number() {
        let topics = words_of("Cancel my Reservations, and the order").collect();
        let relevance = Relevance { topics, ..Relevance::default() };
        assert!(relevance.is_topic("reservation_id") && relevance.is_topic("reservations"));
        assert!(!relevance.is_topic("payment_methods") && !relevance.is_topic("id"));
    }
}
