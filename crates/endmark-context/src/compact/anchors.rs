//! Finds the values in a turn that an agent may need again (CX-4).
//!
//! It recognises them by shape and location, independent of the words of a particular system.

mod call;
mod shape;
mod text;
mod tree;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use super::repair::is_absent;
use crate::conversation::{Content, Conversation, Pairs, Place, Role, Turn};

pub(crate) use shape::{Shape, is_strange, word_shape, words};
pub(crate) use text::{add_exact_values, clip, is_error_line};

/// Kind of an anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AnchorKind {
    /// A line of the user: a request, a constraint or a decision.
    UserLine,
    /// An open step of a plan.
    Todo,
    /// A decision that the model stated.
    Decision,
    /// A line that reports an error.
    Error,
    /// A call and its outcome.
    Command,
    /// A file.
    File,
    /// A URL.
    Url,
    /// An id, a name or a date, which is useful only if it is exact.
    Identifier,
    /// A number.
    Number,
    /// A statement or thought of the model, which is in the narrative.
    Conclusion,
    /// A call of which only the name, the ending and the number of similar calls are kept.
    GroupedCall,
}

/// A value or line to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Anchor<'a> {
    pub(crate) kind: AnchorKind,
    /// Its field or call; empty without either.
    pub(crate) key: Cow<'a, str>,
    pub(crate) value: Cow<'a, str>,
    pub(crate) place: Source,
}

impl Anchor<'_> {
    /// Returns an owned copy of the anchor.
    pub(crate) fn into_owned(self) -> Anchor<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        Anchor { kind: self.kind, key: owned(self.key), value: owned(self.value), place: self.place }
    }
}

/// Where an anchor was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// In a text of the user.
    User,
    /// In a text of the model.
    Assistant,
    /// In the arguments of a call.
    Argument,
    /// In the result of a call.
    Result,
    /// In the ledger of an earlier summary.
    Ledger,
}

/// Returns the argument names of all calls in the conversation.
pub(crate) fn argument_names(conversation: &Conversation<'_>) -> HashSet<String> {
    let mut names = HashSet::new();
    for call in conversation.turns.iter().flat_map(Turn::calls) {
        tree::names(&call.arguments, &mut names);
    }
    names
}

/// Returns the anchors of all turns. `own` returns those of a turn that is an earlier summary.
pub(crate) fn anchors_by_turn<'c>(
    conversation: &'c Conversation<'_>,
    pairs: &Pairs,
    own: impl Fn(usize) -> Option<Vec<Anchor<'c>>>,
) -> Vec<Vec<Anchor<'c>>> {
    // Begins with the newest turn, so that a call finds the outcome of its result, which is parsed only once.
    let mut outcomes = BTreeMap::new();
    let turns = (0..conversation.turns.len()).rev();
    let mut found: Vec<_> = turns
        .map(|turn| own(turn).unwrap_or_else(|| turn_anchors(conversation, pairs, turn, &mut outcomes)))
        .collect();
    found.reverse();
    found
}

/// Returns the anchors of a turn, in order. Adds the outcomes of its results to those of later turns.
fn turn_anchors<'c>(
    conversation: &'c Conversation<'_>,
    pairs: &Pairs,
    position: usize,
    outcomes: &mut BTreeMap<Place, String>,
) -> Vec<Anchor<'c>> {
    let mut anchors = Vec::new();
    let Some(turn) = conversation.turns.get(position) else { return anchors };
    for (part, standing) in turn.parts.iter().enumerate() {
        match &standing.content {
            Content::Text(text) if turn.role == Role::User => text::add_user_lines(text, &mut anchors),
            Content::Text(text) => text::add_assistant_lines(text, &mut anchors),
            Content::Call(call) => {
                let place = pairs.result_of(Place { turn: position, part });
                let known = place.and_then(|place| outcomes.remove(&place));
                let outcome = known.unwrap_or_else(|| {
                    let result = |at: Place| conversation.turns.get(at.turn)?.parts.get(at.part)?.result();
                    call::outcome(place.and_then(result))
                });
                call::anchors(call, outcome, &mut anchors);
            }
            Content::Result(result) if is_absent(&result.text) => {}
            Content::Result(result) => {
                let form = add_result_anchors(&result.text, result.is_error, &mut anchors);
                outcomes.insert(Place { turn: position, part }, call::ending(result, &form));
            }
            Content::Media(media) => anchors.extend(media.name.as_ref().map(|name| Anchor {
                kind: AnchorKind::File,
                key: Cow::default(),
                value: clip(name, text::MAX_VALUE_CHARS),
                place: Source::User,
            })),
            Content::Reasoning { .. }
            | Content::Server { .. }
            | Content::Reference { .. }
            | Content::Unknown { .. } => {}
        }
    }
    anchors
}

/// Adds the words of a text to `visible`.
pub(crate) fn exact_words(text: &str, visible: &mut HashSet<String>) {
    for word in words(text) {
        if !visible.contains(word) {
            visible.insert(word.to_owned());
        }
    }
}

/// The form of a result's text.
pub(crate) enum ResultForm<'r> {
    /// JSON.
    Json(Value),
    /// Any other text.
    Lines {
        /// Its first line that reports an error.
        first_error: Option<&'r str>,
    },
}

/// Adds the anchors of a result's text, and returns its form.
pub(crate) fn add_result_anchors<'a>(
    text: &'a str,
    is_error: bool,
    anchors: &mut Vec<Anchor<'a>>,
) -> ResultForm<'a> {
    let Some(value) = tree::parse(text) else {
        return ResultForm::Lines { first_error: text::add_output_lines(text, is_error, anchors) };
    };
    tree::anchors(&value, Source::Result, anchors);
    if is_error {
        text::add_first_error(text, anchors);
    }
    ResultForm::Json(value)
}

#[cfg(test)]
mod tests;
